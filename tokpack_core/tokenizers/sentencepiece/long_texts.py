"""Our own encoder in the place of SentencePiece's library, for texts that it would take 30 times their size for.

A long text without a place to cut it at is one lattice (Unigram) or one row of symbols (BPE) to the library, with what
belongs to each character of it. Here the text is normalized (see `normalizer`), and

- Unigram keeps two bytes a byte of text, see `best_path_kernels`; a user-defined piece has a bonus, as the library has
  it since version 0.2.3, so that it is better than any pieces that it is made of;
- BPE merges in windows, see `window_kernels`: as bytes, of which first of all each character is made that some piece
  holds, and then pieces, the best score first. Any two pieces or characters that spell a piece may merge into it. A
  character that no piece holds stays bytes, as byte pieces want it. User-defined pieces are found first, from left to
  right the longest, and nothing merges with them: what is between them is merged by itself;
- a model of characters is a BPE that has nothing to merge.

Not for models of whole words, nor BPE with unused pieces, which the library takes apart as it met them last. Before it
is used, its ids are compared with the library's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import sentencepiece

from tokpack_core.bpe.regex_syntax import Unsupported
from tokpack_core.bpe.window_kernels import WINDOW
from tokpack_core.corpus.text_buffers import text_array, text_buffers
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts, random_texts
from tokpack_core.tokenizers.byteification.token_bytes import byte_piece
from tokpack_core.tokenizers.long_documents import CONTINUATION, CONTINUES
from tokpack_core.tokenizers.sentencepiece.best_path_kernels import best_path, write_path
from tokpack_core.tokenizers.sentencepiece.exact_scores import UNKNOWN_PENALTY
from tokpack_core.tokenizers.sentencepiece.merged_pieces import MergedPieces, Merges
from tokpack_core.tokenizers.sentencepiece.normalizer import TextNormalizer
from tokpack_core.tokenizers.sentencepiece.piece_trie import PieceTrie, byte_trie
from tokpack_core.tokenizers.sentencepiece.proto import (
    BPE,
    BYTE,
    CHARACTERS,
    NORMAL,
    UNIGRAM,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    model_type,
    normalization,
    pieces,
)

Bytes = npt.NDArray[np.uint8]
Ids = npt.NDArray[np.int32]
Spelled = list[tuple[bytes, float, int]]
"""Bytes, score and id of each piece that text gives."""
LONGEST_CHARACTER = 4
BONUS = 0.1
"""Nats of a user-defined piece for each byte but the first."""


class LongTexts:
    """Ids of one text at a time, in any number of threads."""

    def __init__(self, model: bytes, window: int = WINDOW) -> None:
        """`window`: bytes that BPE merges at a time.

        Raises Unsupported for a model that is not encoded here.
        """
        listed = pieces(model)
        kinds = {kind for _, _, kind in listed}
        kind_of_model = model_type(model)
        if kind_of_model not in (UNIGRAM, BPE, CHARACTERS) or (kind_of_model == BPE and UNUSED[0] in kinds):
            raise Unsupported("a model of words, or of merges that are taken apart again")
        self._unk = next((token for token, (_, _, kind) in enumerate(listed) if kind == UNKNOWN[0]), -1)
        bytes_of = {byte_piece(text): token for token, (text, _, kind) in enumerate(listed) if kind == BYTE[0]}
        byte_ids = np.array([bytes_of.get(bytes([byte]), self._unk) for byte in range(256)], np.int32)
        spelled = of_kind(listed, NORMAL)
        if not spelled:
            raise Unsupported("a model without ordinary pieces")
        user_defined = of_kind(listed, USER_DEFINED)
        longest = max((len(text) for text, _, _ in user_defined), default=0)
        self._normalized = TextNormalizer(normalization(model), symbol_trie(user_defined), longest)
        self._encode: Callable[[Bytes], Ids]
        if kind_of_model == UNIGRAM:
            self._encode = BestPath(spelled, user_defined, byte_ids)
        else:
            single = [piece for piece in spelled if len(piece[0].decode()) == 1]
            listed_merges = merges_of(single if kind_of_model == CHARACTERS else spelled)
            merged = MergedPieces(listed_merges, user_defined, byte_ids, window)
            self._encode = lambda data: merged.encode(one_text(data)).ids

    def encode(self, text: pa.Array) -> Ids:
        """`text`: one string that is not empty."""
        ids = self._encode(self._normalized(text_buffers(text)[0]))
        unknown = ids == self._unk
        unknown[1:] &= unknown[:-1].copy()  # neighbours that are unknown are one
        unknown[:1] = False
        return ids[~unknown] if unknown.any() else ids


def one_text(data: Bytes) -> pa.Array:
    return text_array(data, np.array([0, data.size], np.int64), pa.large_string())


def of_kind(listed: list[tuple[str, float, int]], kind: bytes) -> Spelled:
    return [(text.encode(), score, token) for token, (text, score, own) in enumerate(listed) if own == kind[0]]


def symbol_trie(spelled: Spelled) -> PieceTrie:
    ids = np.array([token for _, _, token in spelled], np.int32)
    return byte_trie(pa.array([text for text, _, _ in spelled], pa.binary()), ids)


def equal_long_texts(model: bytes, library: sentencepiece.SentencePieceProcessor) -> LongTexts | None:
    """An encoder that gives the library's ids on all hard texts, or None."""
    try:
        encoder = LongTexts(model)
    except Unsupported:
        return None
    user_defined = [text for text, _, kind in pieces(model) if kind == USER_DEFINED[0]]
    mixed = random_texts()
    around = [a + b + b + c + b for a, b, c in zip(mixed, user_defined, mixed[::-1], strict=False)]
    texts = list(filter(None, [*hard_texts(user_defined), *mixed, *around, "".join(mixed), "".join(user_defined)]))
    expected = library.encode(texts)
    equal = all(encoder.encode(pa.array([text])).tolist() == ids for text, ids in zip(texts, expected, strict=True))
    return encoder if equal else None


class BestPath:
    """Unigram."""

    def __init__(self, spelled: Spelled, user_defined: Spelled, byte_ids: Ids) -> None:
        self._unknown = np.float32(min(score for _, score, _ in spelled)) - np.float32(UNKNOWN_PENALTY)
        spelled = [*spelled, *((text, BONUS * (len(text) - 1), token) for text, _, token in user_defined)]
        texts, scores, ids = zip(*spelled, strict=True)
        self._trie = symbol_trie(spelled)
        self._scores = np.zeros(max(ids) + 1, np.float32)
        self._scores[list(ids)] = scores
        self._byte_ids = byte_ids
        self._longest = max(LONGEST_CHARACTER, *map(len, texts))

    def __call__(self, data: Bytes) -> Ids:
        trie = (self._trie.keys, self._trie.children, self._trie.tokens)
        lengths = np.empty(data.size + 1, np.min_scalar_type(self._longest | 0xFFFF))
        best = np.empty(1 << self._longest.bit_length(), np.float32)
        ids = np.empty(best_path(data, *trie, self._scores, self._unknown, best, lengths), np.int32)
        write_path(data, *trie, lengths, self._byte_ids, ids)
        return ids


def merges_of(spelled: Spelled) -> Merges:
    """Any two pieces or characters that spell a piece, the best score first."""
    characters = {character.encode() for text, _, _ in spelled for character in text.decode()}
    known = characters | {text for text, _, _ in spelled}
    by_score = sorted({score for _, score, _ in spelled}, reverse=True)
    ranks = {score: rank for rank, score in enumerate(by_score)}
    rows = [
        (text[:at], text[at:], ranks[score])
        for text, score, _ in spelled
        for at in range(1, len(text))
        if text[at] & CONTINUES != CONTINUATION and text[:at] in known and text[at:] in known
    ]
    return Merges(characters, rows, {text: token for text, _, token in spelled})
