"""Seed pieces for Unigram from counted words (Kudo 2018, section 3.2: all characters and the most frequent substrings).

The library's own seeds come from a suffix array over its sentences, which would not see that a word has a count. Here
the count of a substring is the sum of its words' counts. As there, a candidate has 2 to 16 characters, occurs at least
twice and is not always followed by the same character; the `most` with the greatest count · length are taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.corpus.text_buffers import text_array
from tokpack_core.tokenizers.sentencepiece.seed_pieces_kernels import NONE, lengthen, write_reach

LONGEST_PIECE = 16
MOST = 1_000_000
LEAST_COUNT = 2


@dataclass(frozen=True)
class SeedPieces:
    """The best first."""

    pieces: list[str]
    counts: npt.NDArray[np.int64]

    def first(self, number: int) -> SeedPieces:
        return SeedPieces(self.pieces[:number], self.counts[:number])


def seed_pieces(words: PretokenCounts, covered: npt.NDArray[np.bool_], most: int = MOST) -> SeedPieces:
    """Substrings of the words without characters that are not covered (bool [0x110000])."""
    array = text_array(words.data, words.offsets, pa.large_string())
    text = "".join(array.to_pylist())
    codes = np.frombuffer(text.encode("utf-32-le"), np.int32).copy()
    lengths = pc.utf8_length(array).to_numpy()
    codes[~covered[codes]] = NONE
    word = np.repeat(np.arange(lengths.size, dtype=np.int32), lengths)
    reach = np.empty(codes.size, np.int8)
    write_reach(codes, word, ord(" "), LONGEST_PIECE, reach)
    places = np.flatnonzero(reach).astype(np.int32)
    groups = codes[places]
    found = []
    totals = np.zeros(0, np.int64)
    firsts = np.zeros(0, np.int32)
    for length in range(1, LONGEST_PIECE + 1):
        keys = np.full(1 << 16, NONE, np.int64)
        numbers = np.empty(keys.size, np.int32)
        _, _, sums, begins, parents, children = lengthen(
            codes, word, words.counts, reach, length, places, groups, totals, keys, numbers
        )
        if length > 1:
            largest = np.zeros(totals.size, np.int64)
            np.maximum.at(largest, parents, sums)
            branching = (largest < totals) & (totals >= LEAST_COUNT)
            found.append((firsts[branching], np.full(int(branching.sum()), length), totals[branching]))
        alive = (children >= 0) & (np.append(sums, 0)[children] >= LEAST_COUNT)
        places, groups, totals, firsts = places[alive], children[alive], sums, begins
    starts, sizes, counts = (np.concatenate(column) for column in zip(*found, strict=True))
    best = np.argsort(-(counts * sizes), kind="stable")[:most]
    return SeedPieces(
        [text[start : start + size] for start, size in zip(starts[best].tolist(), sizes[best].tolist(), strict=True)],
        counts[best],
    )
