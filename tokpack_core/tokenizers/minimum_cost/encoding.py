"""Minimum-cost encoding: the fewest tokens that spell a text, over any vocabulary (MCE; arXiv 2610.01127).

Where a tokenizer's own encoder follows merges, a longest match or probabilities, this takes a segmentation with the
fewest entries; of several, that whose last token is longest, and so on backwards. Over whole documents it tells how
much of a difference between two tokenizers is due to their vocabularies and how much to their encoders; word by word it
is the encoder of the families `cnf_mce` and `minimum_cost`. Special tokens take no part. Time and memory are linear in
the text: 2 bytes of table a byte of the longest unit of a batch, besides the ids.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.corpus.text_buffers import read_only, text_buffers
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.minimum_cost.kernels import encode_fewest
from tokpack_core.tokenizers.sentencepiece.piece_trie import byte_trie

UNCOVERED_ID = -2


class MinimumCostEncoder:
    def __init__(self, vocabulary: pa.Table) -> None:
        """vocabulary: as `Tokenizer.vocabulary` gives it. Of entries with the same bytes the lowest id is used."""
        entries = vocabulary.filter(pc.invert(vocabulary["special"]))
        spelled = entries.filter(pc.greater(pc.binary_length(entries["token"]), 0))
        # The trie keeps the last of several entries with the same bytes.
        spelled = spelled.sort_by([("id", "descending")])
        self._trie = byte_trie(spelled["token"].combine_chunks(), spelled["id"].to_numpy())
        self._longest = pc.max(pc.binary_length(spelled["token"])).as_py() or 1
        self.uncovered = 0
        """Bytes met so far that no entry covers."""

    def encode(self, texts: pa.Array) -> Encoded:
        """Ids of a string array without nulls; UNCOVERED_ID for each byte that no entry covers."""
        return Encoded(*self.encode_units(*text_buffers(texts)))

    def encode_units(
        self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Ids of units data[offsets[k] : offsets[k + 1]], and [units + 1] where those of each begin."""
        ids = np.empty(int(offsets[-1] - offsets[0]), np.int32)
        ends = np.zeros(offsets.size, np.int64)
        trie = (self._trie.keys, self._trie.children, self._trie.tokens)
        lengths = np.empty(int(np.diff(offsets).max(initial=0)) + 1, np.min_scalar_type(self._longest | 0xFFFF))
        best = np.empty(1 << self._longest.bit_length(), np.int64)
        self.uncovered += encode_fewest(read_only(data), offsets, *trie, UNCOVERED_ID, lengths, best, ids, ends[1:])
        ids.resize(ends[-1], refcheck=False)
        return ids, ends
