"""A vision scheme as options of a command name it."""

from __future__ import annotations

from typing import Any

import orjson
from pydantic import ValidationError

from tokpack_core.config.vision import VisionConfig
from tokpack_core.errors import InputError


def vision_config(scheme: str | None, parameters: list[str]) -> VisionConfig | None:
    """A scheme and its parameters as NAME=VALUE; raises InputError for what does not go together."""
    if scheme is None:
        if parameters:
            raise InputError("--vision-parameter belongs to a scheme: name one with --vision")
        return None
    values: dict[str, Any] = {"scheme": scheme}
    for text in parameters:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise InputError(f"--vision-parameter {text}: write NAME=VALUE, as max_pixels=1003520")
        try:
            values[name] = orjson.loads(value)
        except orjson.JSONDecodeError:
            values[name] = value
    try:
        return VisionConfig(**values)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}: " for part in first["loc"])
        raise InputError(f"--vision {scheme}: {where}{first['msg'].removeprefix('Value error, ')}") from None
