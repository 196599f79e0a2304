"""What the merges of a byte-level BPE did on some text: tokens used up by later merges, and counts at smaller sizes.

A list of merges that is cut after m of them is a tokenizer trained to 256 + m entries (and its special tokens), since
training adds merges one by one. So the counts at every size of one training are exact, and need no training.

merge_counts.parquet: id int32, consumed int64, then `below_<rank>` int64 for each cut, ascending; ids with any count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tokpack_core.bpe.encoder import BpeModel, with_whole
from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.bpe.window_kernels import WINDOW, cut_long_words
from tokpack_core.errors import InputError
from tokpack_core.vocabulary.merge_replay_kernel import replay

HALVINGS = 5
"""Sizes below the whole one: 1/32, 1/16, … 1/2 of the merges."""


@dataclass(frozen=True, eq=False)
class MergeCounts:
    """consumed: int64 [vocab_size], how often a merge took the token as one of its two; cuts: int64 [sizes], ascending
    ranks; at_cut: int64 [sizes, vocab_size], occurrences by the merges of lower rank alone.
    """

    consumed: NDArray[np.int64]
    cuts: NDArray[np.int64]
    at_cut: NDArray[np.int64]

    def __add__(self, other: MergeCounts) -> MergeCounts:
        if self.cuts.tolist() != other.cuts.tolist():
            raise ValueError("merges cut at other ranks do not add up")
        return MergeCounts(self.consumed + other.consumed, self.cuts, self.at_cut + other.at_cut)

    def to_table(self) -> pa.Table:
        seen = np.flatnonzero(self.consumed + self.at_cut.sum(axis=0))
        columns = {"id": pa.array(seen, pa.int32()), "consumed": self.consumed[seen]}
        return pa.table(columns | {f"below_{cut}": row[seen] for cut, row in zip(self.cuts, self.at_cut, strict=True)})

    @staticmethod
    def from_table(table: pa.Table, vocab_size: int) -> MergeCounts:
        """The inverse of `to_table`. Raises InputError for any other table."""
        names = table.column_names
        if names[:2] != ["id", "consumed"] or not all(name.startswith("below_") for name in names[2:]):
            raise InputError("these are not merge counts as this version writes them: count again")
        cuts = np.array([int(name.removeprefix("below_")) for name in names[2:]], np.int64)
        counts = np.zeros((1 + len(cuts), vocab_size), np.int64)
        for row, name in enumerate(names[1:]):
            counts[row, table["id"].to_numpy()] = table[name].to_numpy()
        return MergeCounts(counts[0], cuts, counts[1:])


def size_cuts(model: BpeModel) -> NDArray[np.int64]:
    """The ranks at which merges are cut: int64 [sizes], ascending; none for a model of few merges."""
    ranks = np.unique(model.rank)
    places = sorted({ranks.size >> halving for halving in range(HALVINGS, 0, -1)} - {0})
    return ranks[np.array(places, np.int64)].astype(np.int64)


class MergeReplay:
    """Adds up what the merges do on pretokens, each different one replayed once."""

    def __init__(
        self,
        model: BpeModel,
        byte_merges: NDArray[np.int64],
        merges: NDArray[np.int64],
        size: int,
        window: int = WINDOW,
    ) -> None:
        """byte_merges, merges: the tables of `encoder_kernels` for the model; size: of the vocabulary; window: bytes of
        a long pretoken that are merged at a time, which changes no count."""
        self._window = max([window, *(len(token) for token, _ in model.whole)])
        self._tables = (model.byte_ids, byte_merges, merges)
        self._whole = with_whole(model.whole)
        cuts = size_cuts(model)
        self.counts = MergeCounts(np.zeros(size, np.int64), cuts, np.zeros((len(cuts), size), np.int64))

    def add(self, words: PretokenCounts) -> NDArray[np.int64]:
        """Occurrences of each token in the words: int64 [vocab_size]."""
        counts, table = self.counts, self._whole.table
        final = np.zeros_like(counts.consumed)
        if words.counts.size:
            offsets, weights = cut_long_words(words.data, words.offsets, words.counts, *self._tables, self._window)
            longest = int(np.diff(offsets).max())
            known = (table.slots, table.entries, table.arena, self._whole.ids)
            results = (counts.cuts, counts.at_cut, counts.consumed, final)
            replay(words.data, offsets, weights, longest, *self._tables, *known, *results)
        return final
