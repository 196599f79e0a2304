"""The script of each token: that of its letters, as Unicode's Script property gives it (UAX 24).

Characters that many scripts share (digits, punctuation, spaces, most marks: Common and Inherited) decide nothing; a
token of such characters alone is `common`, one with letters of several scripts `mixed`, one that is not UTF-8 `bytes`.
"""

from __future__ import annotations

import numpy as np
import regex
from numpy.typing import NDArray

NAMES = (
    *("Latin", "Greek", "Cyrillic", "Armenian", "Hebrew", "Arabic", "Syriac", "Thaana", "Devanagari", "Bengali"),
    *("Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala", "Thai", "Lao", "Tibetan"),
    *("Myanmar", "Georgian", "Hangul", "Ethiopic", "Cherokee", "Khmer", "Mongolian", "Hiragana", "Katakana"),
    *("Bopomofo", "Han", "Yi", "Canadian_Aboriginal", "Runic", "Tifinagh", "Nko", "Javanese", "Balinese", "Coptic"),
)
OTHER, COMMON, MIXED, BYTES = len(NAMES), len(NAMES) + 1, len(NAMES) + 2, len(NAMES) + 3
SCRIPTS = (*NAMES, "other", "common", "mixed", "bytes")
"""By number, as `scripts_of` gives them."""


def scripts_of(text: str, lengths: NDArray[np.int64]) -> NDArray[np.int8]:
    """Number of the script of each token: int8 [tokens].

    text: the tokens one after another; lengths: characters of each, int64 [tokens].
    """
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    different, place = np.unique(codes, return_inverse=True)
    by_character = character_scripts("".join(map(chr, different.tolist())))[place]
    deciding = by_character != COMMON
    token = np.repeat(np.arange(len(lengths)), lengths)[deciding]
    lowest, highest = np.full(len(lengths), COMMON, np.int8), np.full(len(lengths), -1, np.int8)
    np.minimum.at(lowest, token, by_character[deciding])
    np.maximum.at(highest, token, by_character[deciding])
    return np.where((highest >= 0) & (lowest != highest), MIXED, lowest).astype(np.int8)


def character_scripts(characters: str) -> NDArray[np.int8]:
    """Number of the script of each of some different characters: int8 [characters]; COMMON for what decides nothing."""
    found = np.full(len(characters), OTHER, np.int8)
    for number, name in enumerate(NAMES):
        mark(found, characters, rf"\p{{Script={name}}}+", number)
    mark(found, characters, r"[\p{Script=Common}\p{Script=Inherited}]+", COMMON)
    return found


def mark(found: NDArray[np.int8], characters: str, pattern: str, number: int) -> None:
    for match in regex.finditer(pattern, characters):
        found[match.start() : match.end()] = number
