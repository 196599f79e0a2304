"""Splits text by any regex with the `regex` module: for small texts, and for patterns that have no automaton.

The result is that of the automata: what lies between matches is a pretoken too, and characters have the categories of
Unicode 16.0 though `regex` knows a newer version: those that changed are replaced by one of the right category while
the text is split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import regex

from tokpack_core.bpe.automaton import compile_splits
from tokpack_core.bpe.regex_syntax import THREES_FROM_RIGHT, Unsupported
from tokpack_core.bpe.unicode_categories import category_lines
from tokpack_core.errors import InputError

UNASSIGNED_IN_BOTH = 0x0378
LAST_NAMED = 0xFF
"""Patterns name characters up to here one by one; those beyond are better likenesses."""
Piece = tuple[int, int, bool]
"""First character, the one after the last, and whether a regex matched it."""
REPEATED_GROUP = regex.compile(r"\)[*+{]")
PATIENCE = 20.0
SLOWEST = 20_000
"""Characters a second; ordinary patterns are 200 times as fast."""
RUN = r"(?P<threes>\p{N}+)"


def count_words(texts: Iterable[str], splits: tuple[str, ...]) -> Counter[bytes]:
    return count_pieces(texts, splits)[0]


def count_pieces(texts: Iterable[str], splits: tuple[str, ...]) -> tuple[Counter[bytes], int]:
    """Unique pretokens in UTF-8 and how often each occurs; bytes of text that no regex matched.

    Raises InputError for a regex that does not compile.
    """
    words: Counter[str] = Counter()
    patterns = compiled(splits)
    unmatched = 0
    for text in texts:
        matches = whole_matches(text, patterns)
        if matches is not None:
            words.update(matches)
            continue
        pieces = pieces_of(text, patterns)
        words.update([text[first:stop] for first, stop, _ in pieces])
        unmatched += sum(len(text[first:stop].encode()) for first, stop, matched in pieces if not matched)
    return Counter({word.encode(): count for word, count in words.items() if word}), unmatched


def whole_matches(text: str, patterns: list[Any]) -> list[str] | None:
    """What one regex matches, perhaps the empty string among it, if it leaves nothing out; None of any other case."""
    if len(patterns) != 1 or patterns[0].groups or as_in_16(text) is not text:
        return None
    with patience(patterns[0], text) as limit:
        matches = patterns[0].findall(text, **limit)
    return matches if sum(map(len, matches)) == len(text) else None


def compiled(splits: tuple[str, ...]) -> list[Any]:
    patterns = []
    for pattern in splits:
        try:
            patterns.append(regex.compile(linear(pattern)))
        except regex.error as error:
            raise InputError(f"the pretokenizer `{pattern}` is no regular expression ({error}): correct it") from None
    return patterns


def linear(pattern: str) -> str:
    """Finds whole runs of digits, which `isolated` cuts in threes: looking ahead takes quadratic time."""
    if THREES_FROM_RIGHT in pattern:
        try:
            compile_splits((pattern,), "16.0")
        except Unsupported:
            return pattern
    return pattern.replace(THREES_FROM_RIGHT, RUN)


def pretokens(text: str, patterns: list[Any]) -> list[str]:
    return [text[first:stop] for first, stop, _ in pieces_of(text, patterns)]


def pieces_of(text: str, patterns: list[Any]) -> list[Piece]:
    known = as_in_16(text)
    pieces: list[Piece] = [(0, len(text), False)]
    for pattern in patterns:
        pieces = [
            part for first, stop, matched in pieces for part in isolated(pattern, known[first:stop], first, matched)
        ]
    return pieces


def isolated(pattern: Any, text: str, first: int, before: bool = False) -> list[Piece]:
    """The matches and what lies between them; `text` stands at `first`, and is itself a match `before` this."""
    parts: list[Piece] = []
    done = 0
    for start, stop, group in spans(pattern, text):
        if start > done:
            parts.append((first + done, first + start, before))
        if group == "threes":
            firsts = [start, *range(start + (stop - start - 1) % 3 + 1, stop, 3)]
            parts += [(first + a, first + b, True) for a, b in zip(firsts, [*firsts[1:], stop], strict=True)]
        elif stop > start:
            parts.append((first + start, first + stop, True))
        done = stop
    if done < len(text):
        parts.append((first + done, first + len(text), before))
    return parts


def spans(pattern: Any, text: str) -> Iterator[tuple[int, int, str | None]]:
    """Begin and end of each match, and the last group of it that has a name."""
    with patience(pattern, text) as limit:
        for match in pattern.finditer(text, **limit):
            yield *match.span(), match.lastgroup


@contextmanager
def patience(pattern: Any, text: str) -> Iterator[dict[str, float]]:
    """Arguments that end a search which backtracks without end: CPU-seconds that no other search takes.

    Looking at the clock takes twice as long as to match a word, so only patterns that repeat a group do.
    """
    try:
        yield {"timeout": PATIENCE + len(text) / SLOWEST} if REPEATED_GROUP.search(pattern.pattern) else {}
    except TimeoutError:
        raise InputError(
            f"the regex `{pattern.pattern}` takes too long on the text that begins {text[:40]!r}: write it "
            "without repetitions of repetitions, such as (a+)+"
        ) from None


def as_in_16(text: str) -> str:
    """The same text if its characters have the categories of 16.0."""
    if text.isascii() or changed_since_16().isdisjoint(text):
        return text
    return text.translate(category_of_16())


@cache
def changed_since_16() -> frozenset[str]:
    return frozenset(map(chr, category_of_16()))


@cache
def category_of_16() -> dict[int, int]:
    """For `str.translate`: what `regex` takes for another category than 16.0 does, as a character of the right one."""
    alike: dict[str, int] = {"Cn": UNASSIGNED_IN_BOTH}
    changed: dict[int, str] = {}
    for first, last, old, new in category_lines():
        if old == new:
            alike[old] = first if alike.get(old, 0) <= LAST_NAMED else alike[old]
        else:
            changed |= dict.fromkeys(range(first, last + 1), old)
    return {code: alike[category] for code, category in changed.items()}
