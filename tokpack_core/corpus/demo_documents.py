"""Documents of the demo corpus, and how short strings become documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

SHORTEST_STRING = 4
CATALOGUE_DOCUMENT = 4000
"""Characters of a document that is made of the strings of a message catalogue."""


@dataclass(frozen=True)
class Document:
    id: str
    """Begins with the source, so ids of several sources do not collide."""
    text: str
    lang: str
    source: str


def catalogue_documents(strings: Iterable[str], prefix: str, lang: str, source: str) -> Iterator[Document]:
    """Distinct strings, one a line, in documents of about `CATALOGUE_DOCUMENT` characters, numbered from 0."""
    lines: list[str] = []
    size = number = 0
    for line in dict.fromkeys(string.strip() for string in strings):
        if len(line) < SHORTEST_STRING:
            continue
        lines.append(line)
        size += len(line)
        if size >= CATALOGUE_DOCUMENT:
            yield Document(f"{source}:{prefix}/{number}", "\n".join(lines), lang, source)
            lines, size, number = [], 0, number + 1
    if lines:
        yield Document(f"{source}:{prefix}/{number}", "\n".join(lines), lang, source)
