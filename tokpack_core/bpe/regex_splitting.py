"""Splits text by any regex with the `regex` module: for small texts, and for patterns that have no automaton.

The result is that of the automata: what lies between matches is a pretoken too, and characters have the categories of
Unicode 16.0 though `regex` knows a newer version: those that changed are replaced by one of the right category while
the text is split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

import regex

from tokpack_core.bpe.unicode_categories import category_lines
from tokpack_core.errors import InputError

UNASSIGNED_IN_BOTH = 0x0378


def count_words(texts: Iterable[str], splits: tuple[str, ...]) -> Counter[bytes]:
    """Unique pretokens in UTF-8 and how often each occurs. Raises InputError for a regex that does not compile."""
    words: Counter[str] = Counter()
    patterns = compiled(splits)
    for text in texts:
        words.update(pretokens(text, patterns))
    return Counter({word.encode(): count for word, count in words.items()})


def compiled(splits: tuple[str, ...]) -> list[Any]:
    patterns = []
    for pattern in splits:
        try:
            patterns.append(regex.compile(pattern))
        except regex.error as error:
            raise InputError(f"the pretokenizer {pattern!r} is no regular expression ({error}): correct it") from None
    return patterns


def pretokens(text: str, patterns: list[Any]) -> list[str]:
    known = text if text.isascii() else text.translate(category_of_16())
    pieces = [(0, len(text))]
    for pattern in patterns:
        pieces = [part for first, stop in pieces for part in isolated(pattern, known[first:stop], first)]
    return [text[first:stop] for first, stop in pieces]


def isolated(pattern: Any, text: str, first: int) -> list[tuple[int, int]]:
    """Where the matches and what lies between them begin and end; `text` stands at `first`."""
    parts = []
    done = 0
    for match in pattern.finditer(text):
        start, stop = match.span()
        if start > done:
            parts.append((first + done, first + start))
        if stop > start:
            parts.append((first + start, first + stop))
        done = stop
    if done < len(text):
        parts.append((first + done, first + len(text)))
    return parts


@cache
def category_of_16() -> dict[int, int]:
    """For `str.translate`: what `regex` takes for another category than 16.0 does, as a character of the right one."""
    alike: dict[str, int] = {"Cn": UNASSIGNED_IN_BOTH}
    changed: dict[int, str] = {}
    for first, last, old, new in category_lines():
        if old == new:
            alike.setdefault(old, first)
        else:
            changed |= dict.fromkeys(range(first, last + 1), old)
    return {code: alike[category] for code, category in changed.items()}
