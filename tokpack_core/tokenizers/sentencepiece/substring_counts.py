"""Frequent substrings of counted words, in bytes: the candidates of a counted vocabulary.

Every substring of a word occurs as often as the word does, for each place where it begins. Those that are always part
of one longer candidate are left out, since the longer one does their work. A length at a time, as in
`seed_pieces_kernels`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokpack_core.tokenizers.sentencepiece.seed_pieces_kernels import NONE, lengthen

MOST_CHARACTER_BYTES = 4
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Substrings:
    """Substring k is data[firsts[k] : firsts[k] + lengths[k]] of the words, and occurs counts[k] times."""

    firsts: Counts
    lengths: Counts
    counts: Counts
    characters: Counts
    """That begin in it."""


def frequent_substrings(
    data: npt.NDArray[np.uint8],
    offsets: Counts,
    weights: Counts,
    longest: int,
    least: int,
) -> Substrings:
    """Substrings of 2 to `longest` bytes that occur `least` times, by length, then in the order of the words.

    Left out: what is followed by the same byte, or follows the same one, wherever it occurs; what is neither whole
    characters nor a part of one.
    """
    codes = data.astype(np.int32)
    sizes = np.diff(offsets)
    word = np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)
    room = np.repeat(offsets[1:], sizes) - np.arange(codes.size)
    reach = np.minimum(room, longest).astype(np.int8)
    places = np.arange(codes.size, dtype=np.int32)
    groups = codes.copy()
    totals = np.bincount(codes, np.repeat(weights, sizes).astype(np.float64), 256).astype(np.int64)
    group_at = np.zeros(codes.size, np.int32)
    found: list[tuple[Counts, Counts, Counts]] = []
    length = 1
    firsts = np.zeros(256, np.int64)
    while places.size and length <= longest:
        keys = np.full(1 << 16, NONE, np.int64)
        numbers = np.empty(keys.size, np.int32)
        _, _, sums, begins, parents, children = lengthen(
            codes, word, weights, reach, length, places, groups, totals, keys, numbers
        )
        frequent = sums >= least
        if length > 1:
            followed = np.zeros(totals.size, np.int64)
            np.maximum.at(followed, parents, sums)
            group_at[places] = groups
            preceded = np.zeros(totals.size, np.int64)
            np.maximum.at(preceded, group_at[begins[frequent] + 1], sums[frequent])
            closed = (np.maximum(followed, preceded) < totals) | (length > longest - MOST_CHARACTER_BYTES)
            kept = (totals >= least) & closed
            found.append((firsts[kept], np.full(int(kept.sum()), length), totals[kept]))
        alive = children >= 0
        alive[alive] = frequent[children[alive]]
        places, groups, totals, firsts = places[alive], children[alive], sums, begins.astype(np.int64)
        length += 1
    columns = [np.concatenate(column) for column in zip(*found, strict=True)] if found else [firsts[:0]] * 3
    kept = of_characters(data, columns[0], columns[1])
    firsts, lengths, counts = (column[kept] for column in columns)
    begun = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])
    return Substrings(firsts, lengths, counts, begun[firsts + lengths] - begun[firsts])


def of_characters(data: npt.NDArray[np.uint8], firsts: Counts, lengths: Counts) -> npt.NDArray[np.bool_]:
    """Which substrings are whole characters, or parts of a single one."""
    if not firsts.size:
        return np.zeros(0, np.bool_)
    leads = (data & 0xC0) != 0x80
    last_lead = np.maximum.accumulate(np.where(leads, np.arange(data.size), -1))[firsts + lengths - 1]
    lead = data[np.maximum(last_lead, 0)]
    size = 1 + (lead >= 0xC0).astype(np.int64) + (lead >= 0xE0) + (lead >= 0xF0)
    whole = leads[firsts] & (last_lead + size == firsts + lengths)
    return whole | (last_lead <= firsts)
