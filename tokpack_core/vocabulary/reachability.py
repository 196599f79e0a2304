"""Tokens that never come out of encoding: vocabulary that is paid for and cannot be used.

A token that occurs in counted text is reachable. Any other is tried on its own text, alone and after a few characters
that matter to pretokenizers and to models that put a space before each text (as in Land and Bartolo 2024, "Fishing for
Magikarp"). A part of a character has no text of its own: there the merges are tried on its bytes, where the model is
byte-level BPE; of other models such tokens are not judged. Single bytes are there by construction and not judged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.vocabulary.counting import exact_bpe
from tokpack_core.vocabulary.merge_counts import MergeReplay
from tokpack_core.vocabulary.token_features import TokenFeatures

BEFORE = ("", "a", " ", "«", "1", ".", "\n", "中", "a ")
TEXT, PARTIAL_UTF8 = 0, 1


@dataclass(frozen=True, eq=False)
class Reachability:
    """unreachable, undecided: bool [rows] of the vocabulary."""

    unreachable: NDArray[np.bool_]
    undecided: NDArray[np.bool_]


def reachability(tokenizer: Tokenizer, features: TokenFeatures, seen: NDArray[np.bool_]) -> Reachability:
    """seen: bool [rows], tokens that occur in text which was counted."""
    unreachable = ~seen & ((features.kind == TEXT) | (features.kind == PARTIAL_UTF8)) & (features.bytes > 0)
    undecided = np.zeros_like(unreachable)
    for before in BEFORE:
        rows = np.flatnonzero(unreachable & (features.kind == TEXT))
        if not len(rows):
            break
        texts = pc.binary_join_element_wise(before, features.text.take(pa.array(rows)), "")
        unreachable[rows] = ~holds(tokenizer.encode(texts), features.ids[rows])
    parts = np.flatnonzero(unreachable & (features.kind == PARTIAL_UTF8))
    exact = exact_bpe(tokenizer) if len(parts) else None
    if exact is None:
        unreachable[parts] = False
        undecided[parts] = True
    else:
        replay = MergeReplay(exact.model, *exact.encoder.tables, tokenizer.vocab_size)
        data, offsets = text_buffers(features.tokens.take(pa.array(parts)))
        given = replay.add(PretokenCounts(data, offsets, np.ones(len(parts), np.int64)))
        unreachable[parts] = given[features.ids[parts]] == 0
    return Reachability(unreachable, undecided)


def holds(encoded: Encoded, ids: NDArray[np.int32]) -> NDArray[np.bool_]:
    """bool [documents]: whether document d holds ids[d]."""
    hits = encoded.ids == np.repeat(ids, encoded.lengths)
    documents = np.repeat(np.arange(encoded.documents), encoded.lengths)
    return np.bincount(documents[hits], minlength=encoded.documents) > 0
