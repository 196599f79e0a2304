"""Faults of the configuration, each with the file and line where it stands and the nearest right word."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from tokpack_core.errors import ConfigError


@dataclass(frozen=True)
class Entry:
    """One named entry of a section and where it stands."""

    file: Path
    section: str
    name: str
    node: Any
    line: int

    @property
    def where(self) -> str:
        return self.section if self.name == self.section else f"{self.section}.{self.name}"


@dataclass
class Faults:
    found: list[tuple[Path, int, str]] = field(default_factory=list)

    def add(self, file: Path, line: int, message: str) -> None:
        self.found.append((file, line, message))

    def add_at(self, entry: Entry, path: tuple[str | int, ...], message: str) -> None:
        """A fault of the value at `path` within an entry."""
        key = ".".join([entry.where, *map(str, path)])
        self.add(entry.file, line_of(entry.node, path) or entry.line, f"{key}: {message}")

    def stop(self) -> None:
        if self.found:
            raise ConfigError("\n".join(f"{file}:{line}: {message}" for file, line, message in sorted(self.found)))


def nearest(word: str, candidates: Iterable[str], sentence: bool = False) -> str:
    names = list(candidates)
    close = difflib.get_close_matches(word, names, 1, cutoff=0.5)
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; known: {', '.join(names)}" if names and not sentence else ""


def line_of(node: Any, path: tuple[Any, ...]) -> int:
    """The 1-based line of the deepest key of `path` that exists, 0 if none does."""
    line = 0
    for key in path:
        if isinstance(node, CommentedMap) and key in node:
            line = node.lc.key(key)[0] + 1
        elif isinstance(node, CommentedSeq) and isinstance(key, int) and key < len(node):
            line = node.lc.item(key)[0] + 1
        else:
            break
        node = node[key]
    return line
