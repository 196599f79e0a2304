"""General categories of all code points, pinned to two versions of Unicode.

A pretokenizer must split alike wherever a tokenizer is used, and the libraries disagree on what a letter is: the regex
engine of Hugging Face tokenizers (Oniguruma) knows Unicode 16.0, Python's `regex` 18.0. Tokenizers are trained and
encoded with 16.0, so that their exported files give the same ids.

`unicode_categories.txt` holds a line a range: `first..last category`, and a second category where 18.0 differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

UnicodeVersion = Literal["16.0", "18.0"]
CODE_POINTS = 0x110000
UNASSIGNED = "Cn"
WHITE_SPACE = (
    *range(0x09, 0x0E),
    0x20,
    0x85,
    0xA0,
    0x1680,
    *range(0x2000, 0x200B),
    0x2028,
    0x2029,
    0x202F,
    0x205F,
    0x3000,
)
"""Property White_Space, which is what `\\s` means to both engines; the same since Unicode 6.3."""


@dataclass(frozen=True)
class CategoryRanges:
    """Every code point stands in one range: range i is starts[i] to starts[i + 1] - 1."""

    starts: npt.NDArray[np.int64]
    """[ranges], ascending, first 0"""
    categories: npt.NDArray[np.str_]
    """[ranges], two letters"""


@cache
def category_ranges(version: UnicodeVersion) -> CategoryRanges:
    starts, categories = [], []
    after = 0
    for first, last, old, new in category_lines():
        if first > after:
            starts.append(after)
            categories.append(UNASSIGNED)
        starts.append(first)
        categories.append(old if version == "16.0" else new)
        after = last + 1
    if after < CODE_POINTS:
        starts.append(after)
        categories.append(UNASSIGNED)
    return CategoryRanges(np.array(starts, np.int64), np.array(categories))


@cache
def category_lines() -> tuple[tuple[int, int, str, str], ...]:
    """First and last code point, category in 16.0, category in 18.0; in order."""
    lines = []
    text = Path(__file__).with_name("unicode_categories.txt").read_text(encoding="ascii")
    for line in text.splitlines():
        if not line.startswith("#"):
            places, *categories = line.split()
            first, last = places.split("..")
            lines.append((int(first, 16), int(last, 16), categories[0], categories[-1]))
    return tuple(lines)


@cache
def changed_characters() -> npt.NDArray[np.uint8]:
    """A bit for each code point, the lowest bit of a byte first: set where the two versions differ in the category."""
    changed = np.zeros(CODE_POINTS, np.bool_)
    for first, last, old, new in category_lines():
        changed[first : last + 1] = old != new
    return np.packbits(changed, bitorder="little")
