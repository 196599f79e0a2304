"""Our own encoder in the place of SentencePiece's library, for texts that it would take 30 times their size for.

A long text without a place to cut it at is one lattice (Unigram) or one row of symbols (BPE) to the library, with what
belongs to each character of it. Here

- Unigram keeps two bytes a byte of text, see `best_path_kernels`;
- BPE merges in windows, see `window_kernels`: as bytes, of which first of all each character is made that some piece
  holds, and then pieces, the best score first. Any two pieces or characters that spell a piece may merge into it. A
  character that no piece holds stays bytes, as byte pieces want it.

The library's own normalizer is applied, to parts that end between two letters, digits or signs that no rule of the
library's joins.

Not for models with user-defined or (BPE) unused pieces, with white space at the end of words, or with rules of their
own other than those that we train with. Before it is used, its ids are compared with the library's.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import sentencepiece

from tokpack_core.bpe.encoder import BpeModel, byte_merges
from tokpack_core.bpe.encoder_kernels import FREE, fill_merges
from tokpack_core.bpe.regex_syntax import Unsupported
from tokpack_core.bpe.window_kernels import WINDOW, encode_long
from tokpack_core.corpus.text_buffers import read_only, text_buffers
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts, random_texts
from tokpack_core.tokenizers.byteification.token_bytes import META_SPACE, byte_piece
from tokpack_core.tokenizers.long_documents import CONTINUATION, CONTINUES, in_parts
from tokpack_core.tokenizers.sentencepiece.best_path_kernels import best_path, count_ids, write_ids, write_path
from tokpack_core.tokenizers.sentencepiece.exact_scores import UNKNOWN_PENALTY
from tokpack_core.tokenizers.sentencepiece.piece_trie import byte_trie
from tokpack_core.tokenizers.sentencepiece.proto import (
    BYTE,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    merges_pairs,
    normalization,
    pieces,
)

Bytes = npt.NDArray[np.uint8]
Ids = npt.NDArray[np.int32]
Spelled = list[tuple[bytes, float, int]]
"""Bytes, score and id of each piece that text gives."""
RULES = ("identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf")
"""Rules of the library's own."""
APART = re.compile(r"(?<=[!-~ぁ-ゖァ-ヺ㐀-䶿一-鿿가-힣])(?=[!-~ぁ-ゖァ-ヺ㐀-䶿一-鿿가-힣])")
"""Between such characters no rule does anything: none is white space, and none composes with what stands before it."""
NORMALIZED = 1 << 20
"""Bytes of text that are normalized at a time."""
LONGEST_CHARACTER = 4


class LongTexts:
    """Ids of one text at a time, in any number of threads."""

    def __init__(
        self, model: bytes, library: sentencepiece.SentencePieceProcessor, own_rules: bool, window: int = WINDOW
    ) -> None:
        """`own_rules`: the model normalizes by rules that we wrote. `window`: bytes that BPE merges at a time.

        Raises Unsupported for a model that is not encoded here.
        """
        self._library = library
        self._settings = normalization(model)
        listed = pieces(model)
        kinds = {kind for _, _, kind in listed}
        by_merges = merges_pairs(model)
        known = own_rules or not self._settings.rules or self._settings.name in RULES
        plain = self._settings.escapes_spaces and not self._settings.space_as_suffix
        if not known or not plain or USER_DEFINED[0] in kinds or (by_merges and UNUSED[0] in kinds):
            raise Unsupported("user-defined pieces, or rules of the model's own")
        self._unk = next(token for token, (_, _, kind) in enumerate(listed) if kind == UNKNOWN[0])
        bytes_of = {byte_piece(text): token for token, (text, _, kind) in enumerate(listed) if kind == BYTE[0]}
        self._byte_ids = np.array([bytes_of.get(bytes([byte]), self._unk) for byte in range(256)], np.int32)
        spelled = [
            (text.encode(), score, token) for token, (text, score, kind) in enumerate(listed) if kind == NORMAL[0]
        ]
        self._encode: Callable[[Bytes], Ids] = (
            MergedPieces(spelled, self._byte_ids, window) if by_merges else BestPath(spelled, self._byte_ids)
        )

    def encode(self, text: pa.Array) -> Ids:
        """`text`: one string that is not empty."""
        ids = self._encode(read_only(self._normalized(text)))
        unknown = ids == self._unk
        unknown[1:] &= unknown[:-1].copy()  # neighbours that are unknown are one
        unknown[:1] = False
        return ids[~unknown] if unknown.any() else ids

    def _normalized(self, text: pa.Array) -> Bytes:
        settings = self._settings
        if settings.rules or settings.removes_extra_spaces:
            parts, _ = in_parts(text, APART, NORMALIZED)
            forms = [self._library.normalize(part.as_py()) for part in parts]
            first = META_SPACE if settings.adds_dummy_prefix else ""
            content = b"".join([forms[0].encode(), *(form.removeprefix(first).encode() for form in forms[1:])])
        else:
            content = text_buffers(text)[0].tobytes()
            content = content.replace(b" ", META_SPACE.encode()) if b" " in content else content
            content = META_SPACE.encode() + content if settings.adds_dummy_prefix else content
        return np.frombuffer(content, np.uint8)


def equal_long_texts(model: bytes, library: sentencepiece.SentencePieceProcessor, own_rules: bool) -> LongTexts | None:
    """An encoder that gives the library's ids on all hard texts, or None."""
    try:
        encoder = LongTexts(model, library, own_rules)
    except Unsupported:
        return None
    texts = list(filter(None, [*hard_texts([]), *random_texts(), "".join(random_texts())]))
    expected = library.encode(texts)
    equal = all(encoder.encode(pa.array([text])).tolist() == ids for text, ids in zip(texts, expected, strict=True))
    return encoder if equal else None


class BestPath:
    """Unigram."""

    def __init__(self, spelled: Spelled, byte_ids: Ids) -> None:
        texts, scores, ids = zip(*spelled, strict=True)
        self._trie = byte_trie(pa.array(texts, pa.binary()), np.array(ids, np.int32))
        self._scores = np.zeros(max(ids) + 1, np.float32)
        self._scores[list(ids)] = scores
        self._unknown = np.float32(min(scores)) - np.float32(UNKNOWN_PENALTY)
        self._byte_ids = byte_ids
        self._longest = max(LONGEST_CHARACTER, *map(len, texts))

    def __call__(self, data: Bytes) -> Ids:
        trie = (self._trie.keys, self._trie.children, self._trie.tokens)
        lengths = np.empty(data.size + 1, np.min_scalar_type(self._longest | 0xFFFF))
        best = np.empty(1 << self._longest.bit_length(), np.float32)
        ids = np.empty(best_path(data, *trie, self._scores, self._unknown, best, lengths), np.int32)
        write_path(data, *trie, lengths, self._byte_ids, ids)
        return ids


class MergedPieces:
    """BPE."""

    def __init__(self, spelled: Spelled, byte_ids: Ids, window: int) -> None:
        symbols = {bytes([byte]): byte for byte in range(256)}
        rows: list[tuple[int, int, int, int]] = []  # left, right, what they become, rank
        for character in sorted({character for text, _, _ in spelled for character in text.decode()}):
            content = character.encode()
            for stop in range(2, len(content) + 1):
                if content[:stop] not in symbols:
                    symbols[content[:stop]] = len(symbols)
                    rows.append((symbols[content[: stop - 1]], content[stop - 1], symbols[content[:stop]], 0))
        for text, _, _ in spelled:
            symbols.setdefault(text, len(symbols))
        by_score = sorted({score for _, score, _ in spelled}, reverse=True)
        ranks = {score: rank for rank, score in enumerate(by_score, start=1)}
        for text, score, _ in spelled:
            for at in range(1, len(text)):
                sides = symbols.get(text[:at]), symbols.get(text[at:])
                if text[at] & CONTINUES != CONTINUATION and sides[0] is not None and sides[1] is not None:
                    rows.append((sides[0], sides[1], symbols[text], ranks[score]))
        left, right, token, rank = np.array(rows, np.int32).reshape(-1, 4).T.copy()
        model = BpeModel(np.arange(256, dtype=np.int32), left, right, token, rank)
        self._merges = np.full((1 << max(4 * left.size, 16).bit_length(), 2), FREE, np.int64)
        fill_merges(self._merges, left, right, rank, token)
        self._byte_merges = byte_merges(model)
        self._model = model
        self._window = window
        ids = {text: [token] for text, _, token in spelled}
        written = [ids.get(content) or byte_ids[list(content)].tolist() for content in symbols]
        self._ends = np.cumsum([0, *map(len, written)])
        self._written = np.array([token for tokens in written for token in tokens], np.int32)

    def __call__(self, data: Bytes) -> Ids:
        found = np.empty(data.size, np.int32)
        tables = self._byte_merges, self._merges
        count = encode_long(data, 0, data.size, self._model.byte_ids, *tables, self._window, found, 0)
        found.resize(count, refcheck=False)
        size = count_ids(found, self._ends)
        ids = found if size == count else np.empty(size, np.int32)
        write_ids(found, self._ends, self._written, ids)
        return ids
