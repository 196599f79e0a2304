"""What entries of a BPE are merged through: see `merge_paths_kernel`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tokpack_core.bpe.word_table import WordTable
from tokpack_core.bpe.word_table_kernels import add_counts
from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.tokenizers.byte_bpe.merge_paths_kernel import mark_paths


def mark_needed(
    tokens: pa.Array,
    ranks: NDArray[np.int64],
    needed: NDArray[np.bool_],
    mergeable: NDArray[np.bool_],
    by_character: bool,
) -> None:
    """Extends `needed` by all that its rows are merged through; only rows that are `mergeable` are merged into."""
    data, offsets = text_buffers(tokens)
    table = WordTable()
    table.reserve(len(tokens), max(data.size, len(tokens)))
    values = np.where(mergeable, np.arange(1, len(tokens) + 1), 0)
    filled = np.flatnonzero(np.diff(offsets))
    table.used, table.filled = add_counts(
        data, 0, offsets[filled + 1], values[filled], table.slots, table.entries, table.arena, 0, 0
    )
    mark_paths(data, offsets, ranks, needed, by_character, table.slots, table.entries, table.arena)
