"""Token ids of many documents as two flat arrays: what every encoder gives and every decoder takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bools = npt.NDArray[np.bool_]
MOST_SEARCHED = 16
MOST_RUNS = 8
"""Of documents for one encoder, up to which each is a call, which takes half a millisecond; more of them are copied."""


@dataclass(frozen=True)
class Encoded:
    """Document d holds `ids[offsets[d] : offsets[d + 1]]`; an empty document is a repeated offset."""

    ids: npt.NDArray[np.int32]
    """[total tokens]"""
    offsets: npt.NDArray[np.int64]
    """[documents + 1], first 0, last the number of tokens"""

    @property
    def documents(self) -> int:
        return self.offsets.size - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each document: int64 [documents]."""
        return np.diff(self.offsets)


Encode = Callable[[pa.Array], Encoded]
"""Ids of a string array without nulls."""


def same_ids(one: Encoded, other: Encoded) -> bool:
    return np.array_equal(one.ids, other.ids) and np.array_equal(one.offsets, other.offsets)


def from_lists(lists: Sequence[Sequence[int]]) -> Encoded:
    """One list of ids a document, as the libraries give them, in flat arrays."""
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)), out=offsets[1:])
    return Encoded(np.fromiter(chain.from_iterable(lists), np.int32, int(offsets[-1])), offsets)


def concatenate(parts: Iterable[Encoded]) -> Encoded:
    """The documents of all parts, in order."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    lengths = [part.lengths for part in parts]
    offsets = np.zeros(sum(map(len, lengths)) + 1, np.int64)
    if parts:
        np.cumsum(np.concatenate(lengths), out=offsets[1:])
    ids = np.empty(offsets[-1], np.int32)  # what is not written to takes no memory
    parts.reverse()
    at = 0
    while parts:  # and each part is let go once it is copied
        part = parts.pop().ids
        ids[at : at + part.size] = part
        at += part.size
    return Encoded(ids, offsets)


def documents_of(encoded: Encoded, documents: npt.NDArray[np.int64]) -> Encoded:
    """Some documents, in that order."""
    lengths = encoded.lengths[documents]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    moved = np.repeat(encoded.offsets[documents] - offsets[:-1], lengths)
    return Encoded(encoded.ids[moved + np.arange(moved.size)], offsets)


def encode_apart(texts: pa.Array, masks: Iterable[Bools], by_one: Encode, by_other: Encode) -> Encoded:
    """Documents that some mask (bool [documents]) chooses are encoded by one encoder, all else by another, in order."""
    chosen = np.zeros(len(texts), np.bool_)
    for mask in masks:
        chosen |= mask
    if not chosen.any():
        return by_other(texts)
    borders = [0, *(np.flatnonzero(np.diff(chosen)) + 1).tolist(), len(chosen)]
    if len(borders) > MOST_RUNS:
        parts = [encode(texts.filter(pa.array(of_it))) for encode, of_it in ((by_one, chosen), (by_other, ~chosen))]
        return documents_of(concatenate(parts), np.argsort(np.argsort(~chosen, kind="stable")))
    runs = ((start, texts.slice(start, stop - start)) for start, stop in pairwise(borders))
    return concatenate((by_one if chosen[start] else by_other)(run) for start, run in runs)


def common_beginnings(strings: Iterable[str]) -> list[str]:
    """At most MOST_SEARCHED strings, of which one begins each of some strings: text without them holds none of those.

    A search for each of 10,000 reserved tokens would take longer than encoding.
    """
    found = set(strings)
    longest = max(map(len, found), default=0)
    while len(found) > MOST_SEARCHED and longest > 1:
        longest -= 1
        found = {string[:longest] for string in found}
    return sorted(found)
