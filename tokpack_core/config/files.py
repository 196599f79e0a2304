"""Reads the configuration folder: every `.yaml` file in it, names unique across files.

All faults are gathered into one ConfigError, a line each: file, line, key, what is wrong and the nearest right key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from tokpack_core.config import CorpusConfig, DatasetConfig, EngineConfig, Project, ScheduleConfig, TokenizerConfig
from tokpack_core.config.agreement import check_agreement
from tokpack_core.config.faults import Entry, Faults, line_of, nearest
from tokpack_core.config.values import NO_TEXT, is_text
from tokpack_core.errors import ConfigError

NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")
SECTIONS: dict[str, type[BaseModel]] = {
    "corpora": CorpusConfig,
    "tokenizers": TokenizerConfig,
    "datasets": DatasetConfig,
    "schedules": ScheduleConfig,
}
ENGINE = "engine"
"""A section of settings, not of names; it stands in one file."""


@dataclass(frozen=True)
class LoadedConfig:
    """What the files say: the entries without a fault as a project, where every entry stands, and all faults."""

    project: Project
    entries: list[Entry]
    faults: Faults


def load_project(folder: Path) -> Project:
    """Reads and checks every configuration file in `folder`.

    Raises:
        ConfigError: with a line for every fault found.
    """
    loaded = load_config(folder)
    loaded.faults.stop()
    return loaded.project


def load_config(folder: Path) -> LoadedConfig:
    """Reads every configuration file in `folder` and gathers all that is wrong.

    Raises:
        ConfigError: the folder holds no configuration file.
    """
    files = sorted(p for p in folder.glob("*") if p.suffix in (".yaml", ".yml")) if folder.is_dir() else []
    if not files:
        raise ConfigError(
            f"{folder}: no configuration found; put a .yaml file with corpora, tokenizers and datasets there, "
            "or name another folder in TOKPACK_CONFIGS"
        )
    faults = Faults()
    entries = [entry for file in files for entry in read_entries(file, faults)]
    all_names_known = not faults.found
    report_duplicates(entries, faults)
    models = {(e.section, e.name): validate(e, faults) for e in entries}
    engine = models.get((ENGINE, ENGINE))
    project = Project(
        folder.resolve().parent,
        section_models(models, "corpora"),
        section_models(models, "tokenizers"),
        section_models(models, "datasets"),
        section_models(models, "schedules"),
        engine if isinstance(engine, EngineConfig) else EngineConfig(),
    )
    if all_names_known:
        for entry in entries:
            if models[entry.section, entry.name] is not None:
                check_agreement(entry, project, declared_names(entries), faults)
    return LoadedConfig(project, entries, faults)


def declared_names(entries: Iterable[Entry]) -> dict[str, list[str]]:
    """Names by section, those of entries with faults too."""
    names: dict[str, list[str]] = {section: [] for section in SECTIONS}
    for entry in entries:
        if entry.section != ENGINE:
            names[entry.section].append(entry.name)
    return names


def section_models(models: dict[tuple[str, str], Any], section: str) -> dict[str, Any]:
    return {name: model for (of, name), model in sorted(models.items()) if of == section and model is not None}


def read_entries(file: Path, faults: Faults) -> Iterator[Entry]:
    try:
        document = YAML(typ="rt").load(file.read_text(encoding="utf-8"))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = " ".join(str(error.problem or error.context or "not valid YAML").split())
        faults.add(file, line, f"not valid YAML: {problem}")
        return
    except (YAMLError, UnicodeDecodeError, OSError) as error:
        faults.add(file, 1, f"cannot be read: {' '.join(str(error).split())}")
        return
    if document is None:
        return
    if not isinstance(document, CommentedMap):
        faults.add(file, 1, f"expected the sections {', '.join(SECTIONS)}, found a {type(document).__name__}")
        return
    for section, body in document.items():
        if section == ENGINE:
            yield Entry(file, ENGINE, ENGINE, body, line_of(document, (section,)) or 1)
        else:
            yield from section_entries(file, document, section, body, faults)


def section_entries(file: Path, document: CommentedMap, section: Any, body: Any, faults: Faults) -> Iterator[Entry]:
    line = line_of(document, (section,))
    if section not in SECTIONS:
        faults.add(file, line, f"unknown section `{section}`{nearest(str(section), [*SECTIONS, ENGINE])}")
    elif body is None:
        return
    elif not isinstance(body, CommentedMap):
        faults.add(file, line, f"`{section}` must map names to settings")
    else:
        for name, node in body.items():
            at = line_of(document, (section, name))
            if isinstance(name, str) and NAME.fullmatch(name):
                yield Entry(file, section, name, node, at)
            else:
                faults.add(
                    file,
                    at,
                    f"the name `{name}` in {section} must match [a-z][a-z0-9_]* and have at most 100 characters",
                )


def report_duplicates(entries: Iterable[Entry], faults: Faults) -> None:
    first: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        other = first.setdefault((entry.section, entry.name), entry)
        if other is not entry:
            faults.add(
                entry.file, entry.line, f"{entry.where} is already defined at {other.file}:{other.line}; rename one"
            )


def validate(entry: Entry, faults: Faults) -> BaseModel | None:
    model = EngineConfig if entry.section == ENGINE else SECTIONS[entry.section]
    if not isinstance(entry.node, CommentedMap) and not (entry.section == ENGINE and isinstance(entry.node, str)):
        faults.add(entry.file, entry.line, f"{entry.where} must be a mapping of settings")
        return None
    for path in no_text(entry.node):
        faults.add_at(entry, path, f"this {NO_TEXT}")
        return None
    try:
        return model.model_validate(plain(entry.node))
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            path = tuple(fault["loc"])
            key = ".".join([entry.where, *map(str, path)])
            line = (line_of(entry.node, path) if isinstance(entry.node, CommentedMap) else None) or entry.line
            faults.add(entry.file, line, f"{key}: {explain(fault, model, path)}")
        return None


def explain(fault: Any, model: type[BaseModel], path: tuple[Any, ...]) -> str:
    if fault["type"] == "extra_forbidden":
        return f"unknown key{nearest(str(path[-1]), known_keys(model, path[:-1]))}"
    if fault["type"] == "missing":
        return "this key is required"
    message = fault["msg"].removeprefix("Value error, ")
    message = message.replace("valid tuple", "list").replace("valid dictionary", "map")
    if fault["type"] in ("value_error", "missing") or isinstance(fault["input"], dict | list):
        return message
    suggestion = nearest(str(fault["input"]), re.findall(r"'([^']*)'", message), sentence=True)
    return f"{message}, not {fault['input']!r}{suggestion}"


def known_keys(model: type[BaseModel], path: tuple[Any, ...]) -> list[str]:
    for key in path:
        annotation = model.model_fields[key].annotation if key in model.model_fields else None
        choices = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
        models = [kind for kind in choices if issubclass(kind, BaseModel)]
        if not models:
            return []
        model = models[0]
    return list(model.model_fields)


def no_text(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where strings stand that no UTF-8 can be written of."""
    if isinstance(node, str) and not is_text(node):
        yield path
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        if isinstance(key, str) and not is_text(key):
            yield path
        else:
            yield from no_text(value, (*path, key))


def plain(node: Any) -> Any:
    """ruamel's containers and scalars as plain Python ones, so that messages show values as the user wrote them."""
    if isinstance(node, dict):
        return {plain(key): plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [plain(value) for value in node]
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node
