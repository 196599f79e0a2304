"""The bytes of tokens, one token after the other in one array."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit


class Spelling(NamedTuple):
    arena: npt.NDArray[np.uint8]
    """It may be longer than what is spelled."""
    begins: npt.NDArray[np.int64]
    """[most tokens + 1 or more]: token t is arena[begins[t] : begins[t + 1]]"""

    def tokens(self, first: int, stop: int) -> list[bytes]:
        """Tokens first to stop - 1."""
        begins = self.begins
        spelled = self.arena[: begins[stop]].tobytes()
        return [spelled[begins[token] : begins[token + 1]] for token in range(first, stop)]


def spelling_of(tokens: list[bytes], most: int) -> Spelling:
    """Of the first tokens, with room for the borders of `most`."""
    begins = np.zeros(most + 1, np.int64)
    begins[1 : len(tokens) + 1] = np.cumsum([len(token) for token in tokens])
    return Spelling(np.frombuffer(b"".join(tokens), np.uint8).copy(), begins)


@njit(cache=True, forceinline=True, _nrt=False)
def length_of(token, spelling):  # type: ignore[no-untyped-def]
    return spelling.begins[token + 1] - spelling.begins[token]


@njit(cache=True)
def spell(left, right, token, spelling):  # type: ignore[no-untyped-def]
    """Writes the bytes of a new token after those of all others; returns the spelling, whose arena may have grown."""
    arena, begins = spelling
    filled = begins[token]
    needed = filled + length_of(left, spelling) + length_of(right, spelling)
    if needed > arena.size:
        larger = np.empty(2 * needed, np.uint8)
        larger[:filled] = arena[:filled]
        arena = larger
    for part in (left, right):
        for at in range(begins[part], begins[part + 1]):
            arena[filled] = arena[at]
            filled += 1
    begins[token + 1] = filled
    return Spelling(arena, begins)


@njit(cache=True, forceinline=True, _nrt=False)
def compare_tokens(one, other, spelling):  # type: ignore[no-untyped-def]
    """Negative, 0 or positive as the bytes of one token stand before, at or after the other's."""
    arena, begins = spelling
    shorter = min(length_of(one, spelling), length_of(other, spelling))
    for at in range(shorter):
        difference = np.int64(arena[begins[one] + at]) - np.int64(arena[begins[other] + at])
        if difference != 0:
            return difference
    return length_of(one, spelling) - length_of(other, spelling)
