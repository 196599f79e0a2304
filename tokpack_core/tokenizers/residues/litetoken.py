"""A byte-level BPE tokenizer without its residues: LiteToken (arXiv 2602.04706).

A residue is a token that is there for the sake of longer ones: merges nearly always consume it. Its embedding is
hardly trained, and a text that holds it by itself is an easy way to odd behaviour. Taking its merge out of the file
would break the longer tokens. So the merges stay, and a residue that is left in the end is split into the two tokens
that it was merged from, these likewise if they are residues, and the tokens of the word are merged again by the merges
that make no residue. All other ids stay what they are, so a trained model needs no training; the removed ids are just
never given.

Words are those of the tokenizer's own regex: pieces of text where its tokens go across words (SuperBPE). A text that
holds an added token that is not special is encoded by the tokenizer's own library, and its residues are split and not
merged again.

Saved: the base tokenizer's files and `residues.json` (see `residues`), which opens as this tokenizer again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.automaton import compile_splits
from tokpack_core.bpe.encoder_kernels import FREE, fill_merges
from tokpack_core.bpe.pretoken_encoder import encode_by_pretokens
from tokpack_core.bpe.residue_kernels import merge_split, split_residues
from tokpack_core.bpe.word_memory import WordMemory
from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byte_bpe.engine import ExactBpe
from tokpack_core.tokenizers.encoded import Encoded, concatenate
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.residues.residues import Residues, write_residues
from tokpack_core.tokenizers.tiktoken.ranks import TiktokenTokenizer


class LiteTokenTokenizer:
    """A base tokenizer that never gives its residues (see protocol)."""

    def __init__(self, base: Tokenizer, residues: Residues) -> None:
        """Raises InputError for a base that is no byte-level BPE, or is not the one of the residues."""
        self._base = base
        self._residues = residues
        self.family = "litetoken"
        self.vocab_size = base.vocab_size
        self.special_tokens = base.special_tokens
        self.unicode = base.unicode
        self.training: Mapping[str, Any] = base.training
        exact = exact_base(base)
        self._exact = exact
        self._automaton = compile_splits(exact.splits, "16.0")
        self._parts = np.full((base.vocab_size, 2), -1, np.int32)
        self._parts[residues.ids] = residues.parts
        self._merges = merges_without(exact, residues.ids)
        self._words = WordMemory(self._encode_words)
        rows = base.vocabulary()
        self._vocabulary = rows.filter(pa.array(~np.isin(rows["id"].to_numpy(), residues.ids)))

    def encode(self, texts: pa.Array) -> Encoded:
        texts = self._exact.prepared(texts)
        library = self._exact.for_library(texts)
        if library is None:
            return self._encode_by_words(texts)
        rows = [texts.slice(row, 1) for row in range(len(texts))]
        return concatenate(
            self._split_only(row) if by_library else self._encode_by_words(row)
            for row, by_library in zip(rows, library, strict=True)
        )

    def decode(self, encoded: Encoded) -> pa.Array:
        return self._base.decode(encoded)

    def vocabulary(self) -> pa.Table:
        """Without the residues."""
        return self._vocabulary

    @property
    def report(self) -> Mapping[str, Any]:
        """What `residues.json` holds."""
        return self._residues.report

    def save(self, folder: Path) -> None:
        self._base.save(folder)
        write_residues(folder, self._residues)

    def _encode_by_words(self, texts: pa.Array) -> Encoded:
        return encode_by_pretokens(texts, self._automaton, self._words)

    def _encode_words(
        self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        ids, id_ends = self._exact.encoder.encode_pretokens(data, int(offsets[0]), offsets[1:])
        tokens = np.empty(int(offsets[-1] - offsets[0]), np.int32)
        begins, split = split_residues(ids, id_ends[1:], self._parts, tokens)
        del ids
        merge_split(tokens, begins, split, self._merges)
        tokens.resize(begins[-1], refcheck=False)
        return tokens, begins

    def _split_only(self, texts: pa.Array) -> Encoded:
        found = self._base.encode(texts)
        tokens = np.empty(int(text_buffers(texts)[1][-1]) + found.ids.size, np.int32)
        begins, _ = split_residues(found.ids, found.offsets[1:], self._parts, tokens)
        tokens.resize(begins[-1], refcheck=False)
        return Encoded(tokens, begins)


def exact_base(base: Tokenizer) -> ExactBpe:
    """The merges and the regex of a base tokenizer. Raises InputError where they are not a byte-level BPE's."""
    exact = None
    if isinstance(base, HuggingFaceTokenizer):
        exact = base.exact_bpe(across_words=True)
    elif isinstance(base, TiktokenTokenizer):
        exact = base.exact_bpe()
    if exact is None:
        raise InputError(
            f"a tokenizer of family {base.family} has no residues to remove: give the tokenizer.json or .tiktoken of a "
            "byte-level BPE"
        )
    return exact


def merges_without(exact: ExactBpe, residues: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    model = exact.model
    kept = ~np.isin(model.token, residues)
    table = np.full((1 << max(4 * int(kept.sum()), 16).bit_length(), 2), FREE, np.int64)
    fill_merges(table, model.left[kept], model.right[kept], model.rank[kept], model.token[kept])
    return table
