"""`tokpack config schema`: the JSON Schema of a configuration file, for editors.

Written as draft 7, which every editor's YAML support reads. What hangs on more than one key, such as names that must
exist, is beyond a schema: `tokpack config check` tells it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from tokpack_core import config
from tokpack_core.config import EngineConfig
from tokpack_core.config.files import ENGINE, NAME, SECTIONS
from tokpack_core.config.key_descriptions import key_descriptions

DIALECT = "http://json-schema.org/draft-07/schema#"


def config_schema() -> dict[str, Any]:
    """One file of the configuration folder: sections, each a map of names to settings, each possibly empty."""
    kinds: list[type[BaseModel]] = [*SECTIONS.values(), EngineConfig]
    models, document = models_json_schema([(model, "validation") for model in kinds], ref_template="#/$defs/{model}")
    describe_keys(document["$defs"])
    sections = {section: section_schema(models[model, "validation"]) for section, model in SECTIONS.items()}
    return {
        "$schema": DIALECT,
        "title": "tokpack configuration",
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": sections | {ENGINE: engine_schema(models[EngineConfig, "validation"], document["$defs"])},
        "$defs": without_titles(document["$defs"]),
    }


def describe_keys(definitions: dict[str, Any]) -> None:
    for model in with_subclasses(BaseModel):
        if model.__module__.startswith(f"{config.__name__}.") and model.__name__ in definitions:
            properties = definitions[model.__name__]["properties"]
            for key, text in key_descriptions(model).items():
                properties[key].setdefault("description", text)


def with_subclasses(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for kind in model.__subclasses__():
        yield from with_subclasses(kind)


def section_schema(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": ["object", "null"],
        "propertyNames": {"pattern": f"^{NAME.pattern}$"},
        "additionalProperties": entry,
    }


def engine_schema(engine: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Settings, or the name alone."""
    name = definitions[EngineConfig.__name__]["properties"]["name"]
    return {"anyOf": [{"enum": name["enum"]}, engine]}


def without_titles(value: Any) -> Any:
    """Without the titles that pydantic makes of field names, which editors would show in place of descriptions."""
    if isinstance(value, list):
        return [without_titles(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: without_titles(item) for key, item in value.items() if key != "title" or not isinstance(item, str)}
