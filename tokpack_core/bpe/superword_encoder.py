"""Exact encoding with superword models, in time that is linear in the length of ordinary text.

Two steps: word merges (`superword_units`), then supermerges among joinable neighbours, the earliest merge first, then
the leftmost. That is what all merges in their one order give, since a supermerge takes whole words as they are and no
word merge takes a superword.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.encoder_kernels import FREE, fill_merges
from tokpack_core.bpe.superword_encoder_kernels import merge_joined
from tokpack_core.bpe.superword_runs import Joinable
from tokpack_core.tokenizers.encoded import Encoded


@dataclass(frozen=True)
class MergeList:
    """[merges] each, in their order: ids of the two sides and of what they become."""

    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    token: npt.NDArray[np.int32]


class SuperwordEncoder:
    def __init__(self, joinable: Joinable, supermerges: MergeList) -> None:
        self._joinable = joinable
        ranks = np.arange(supermerges.left.size, dtype=np.int32)
        self._merges = merge_table(supermerges, ranks)
        self._bridges = merge_table(bridges(supermerges), ranks)

    def encode(self, texts: pa.Array) -> Encoded:
        """`texts`: string or binary array without nulls, UTF-8."""
        found = self._joinable.encode(texts)
        borders = np.zeros(found.borders.size, np.int64)
        written = merge_joined(found.ids, found.joins, found.borders, self._bridges, self._merges, borders)
        return Encoded(found.ids[:written], borders)


def merge_table(merges: MergeList, ranks: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    table = np.full((1 << max(4 * merges.left.size, 16).bit_length(), 2), FREE, np.int64)
    fill_merges(table, merges.left, merges.right, ranks, merges.token)
    return table


def bridges(supermerges: MergeList) -> MergeList:
    """For each merge the last word token of its left side and the first of its right side."""
    firsts: dict[int, int] = {}
    lasts: dict[int, int] = {}
    rows = []
    for left, right, token in zip(
        supermerges.left.tolist(), supermerges.right.tolist(), supermerges.token.tolist(), strict=True
    ):
        firsts[token] = firsts.get(left, left)
        lasts[token] = lasts.get(right, right)
        rows.append((lasts.get(left, left), firsts.get(right, right)))
    left_words, right_words = np.array(rows, np.int32).reshape(-1, 2).T.copy()
    return MergeList(left_words, right_words, supermerges.token)
