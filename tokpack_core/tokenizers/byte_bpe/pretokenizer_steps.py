"""The steps of a tokenizer.json's pretokenizer as regexes, which our own encoders split by.

Before a last step `ByteLevel` may stand, in any number:

- `Split` by a regex: isolated; or inverted and removed, which keeps the matches, if the regex leaves nothing unmatched;
- `Digits`: one by one, or runs of them, where a digit is any character of the category N;
- `Digits` in runs, then the `Split` before each three digits counted from the right that the code of SuperBPE's authors
  writes (arXiv 2503.13423). Its digits are those of the category Nd alone.

Some texts are split otherwise by the library, which must encode them: those with a numeral that is one since a later
version of Unicode than the regexes have; and, where digits are counted, those where one stands beside another numeral,
such as 2½, or more than three of these follow each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from tokpack_core.bpe.automaton import DEAD, ENDS, MATCHES, compile_splits
from tokpack_core.bpe.regex_syntax import THREES_FROM_RIGHT, Unsupported
from tokpack_core.bpe.unicode_categories import category_lines
from tokpack_core.tokenizers.library_texts import ForLibrary, matching
from tokpack_core.tokenizers.pretokenizers import DIGITS, PRETOKENIZERS

BEFORE_THREES = r"(?=(\d{3})+(?!\d))"


@dataclass(frozen=True)
class PretokenizerSteps:
    patterns: tuple[str, ...]
    """Each next one splits only what those before have left, by isolated matches."""
    for_library: ForLibrary | None = None
    """Which texts the file splits otherwise than the patterns."""


def pretokenizer_steps(pretokenizer: dict[str, Any] | None) -> PretokenizerSteps | None:
    """None for a pretokenizer that does more than the steps that are understood."""
    if pretokenizer is None:
        return None
    steps = steps_of(pretokenizer)
    found, last = splitting_steps(steps[:-1]), steps[-1]
    if found is None or last["type"] != "ByteLevel" or last["add_prefix_space"]:
        return None
    if last["use_regex"]:
        return replace(found, patterns=(*found.patterns, PRETOKENIZERS["gpt2"]))
    return found if found.patterns else None


def steps_of(pretokenizer: dict[str, Any]) -> list[dict[str, Any]]:
    return pretokenizer["pretokenizers"] if pretokenizer["type"] == "Sequence" else [pretokenizer]


def splitting_steps(steps: list[dict[str, Any]]) -> PretokenizerSteps | None:
    """The same of what may stand before a last step."""
    patterns: list[str] = []
    counted = False
    for step in steps:
        pattern = pattern_of(step)
        if pattern == BEFORE_THREES and patterns[-1:] == [DIGITS["free"]]:
            patterns[-1] = THREES_FROM_RIGHT
            counted = True
        elif pattern is None or pattern == BEFORE_THREES:
            return None
        else:
            patterns.append(pattern)
    if not counted and not any(step["type"] == "Digits" for step in steps):
        return PretokenizerSteps(tuple(patterns))
    return PretokenizerSteps(tuple(patterns), partial(matching, otherwise_split(counted)))


def pattern_of(step: dict[str, Any]) -> str | None:
    if step["type"] == "Digits":
        return DIGITS["single" if step["individual_digits"] else "free"]
    if step["type"] != "Split" or "Regex" not in step["pattern"]:
        return None
    pattern: str = step["pattern"]["Regex"]
    kept = (step["behavior"], step["invert"])
    if kept == ("Isolated", False) or (kept == ("Removed", True) and matches_everything(pattern)):
        return pattern
    return None


def matches_everything(pattern: str) -> bool:
    """Whether a match begins at every character of any text: one that ends before the next character, or later."""
    try:
        automaton = compile_splits((pattern,), "16.0")
    except Unsupported:
        return False
    width = automaton.stages.size
    table = automaton.transitions.reshape(-1, width)
    begun = table[automaton.start // width, :-1] >> 2
    return bool((begun != DEAD).all() and (table[begun // width] & (MATCHES | ENDS) != 0).all())


@cache
def otherwise_split(counted: bool) -> str:
    """A regex of RE2, written out in code points since its version of Unicode is its own."""
    newer = as_set((first, last) for first, last, old, new in category_lines() if (old[0] == "N") != (new[0] == "N"))
    if not counted:
        return f"[{newer}]"
    digits, others = numerals("Nd"), numerals("Nl", "No")
    return f"[{newer}]|[{digits}][{others}]|[{others}][{digits}]|[{others}]{{4}}"


def numerals(*categories: str) -> str:
    return as_set((first, last) for first, last, category, _ in category_lines() if category in categories)


def as_set(ranges: Iterable[tuple[int, int]]) -> str:
    """`ranges`: first and last code points."""
    return "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges)
