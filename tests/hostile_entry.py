"""What a hostile input is: a file, and the result we chose for it under every `on_error`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Result = tuple[str, ...] | str
"""The texts that come out, or a regex of the one error."""


@dataclass(frozen=True)
class HostileInput:
    file: str
    kind: str
    data: bytes
    error: Result
    skip: Result
    replace: Result
    options: Mapping[str, object] = field(default_factory=dict)
    """Settings of the reader besides `on_error`."""


def accepted(file: str, kind: str, data: bytes | str, texts: Sequence[str], **options: object) -> HostileInput:
    """Odd but sound: the same texts whatever `on_error` says."""
    found = tuple(texts)
    return HostileInput(file, kind, _bytes(data), found, found, found, options)


def faulty(file: str, kind: str, data: bytes | str, error: str, left: Sequence[str], **options: object) -> HostileInput:
    """Has documents that cannot be read: an error, or left out; `replace` does not help."""
    return HostileInput(file, kind, _bytes(data), error, tuple(left), error, options)


def undecodable(
    file: str, kind: str, data: bytes, error: str, left: Sequence[str], mended: Sequence[str]
) -> HostileInput:
    return HostileInput(file, kind, data, error, tuple(left), tuple(mended))


def broken(file: str, kind: str, data: bytes | str, error: str, **options: object) -> HostileInput:
    """Wrong as a whole file: an error whatever `on_error` says."""
    return HostileInput(file, kind, _bytes(data), error, error, error, options)


def _bytes(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else data


def json_lines(*records: object) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def documents(*texts: str) -> str:
    return json_lines(*({"id": f"d{number}", "text": text} for number, text in enumerate(texts)))
