"""Where tokens stand in the bytes of their text, and the longest entry that ends at each byte: what byteification takes
(arXiv 2512.15586).

The bytes are those that the tokens spell, which are the text as it was encoded: normalized where the tokenizer
normalizes. Special tokens, EOD among them, stand for no byte, and no entry reaches over one, or over a document's
border. Of entries with the same bytes it is an ordinary one before a byte piece, then that of the lowest id.

A tokenizer whose tokens do not spell all text has no such map: WordPiece, which drops white space, and what gives unk.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.agreement.round_trip import LOSSY
from tokpack_core.tokenizers.byteification.longest_suffix_kernels import SPECIAL, TEXT, UNKNOWN, link, spell
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.sentencepiece.piece_trie import byte_trie

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ByteMap:
    """Of some documents."""

    text: npt.NDArray[np.uint8]
    """[bytes]"""
    token_ends: npt.NDArray[np.bool_]
    """[bytes]: whether a token ends with the byte"""
    longest_suffix: npt.NDArray[np.int32]
    """[bytes]: the longest entry that ends with the byte, -1 if none does"""
    token_begins: Int64
    """[tokens]: how many bytes are before each token"""
    document_ends: Int64
    """[documents]: how many bytes there are up to the end of each"""


class ByteMapper:
    """Maps the tokens of one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Raises InputError for a family whose tokens do not spell all text."""
        if tokenizer.family in LOSSY:
            raise InputError(
                f"{tokenizer.family} does not keep all text (white space, or what has no entry), so its tokens have no "
                "exact place among the bytes: use a byte-level BPE, SentencePiece or superword tokenizer"
            )
        self._tokenizer = tokenizer
        vocabulary = tokenizer.vocabulary()
        ids = vocabulary["id"].to_numpy()
        special = vocabulary["special"].to_numpy()
        self._kinds = np.full(tokenizer.vocab_size, UNKNOWN, np.int8)
        self._kinds[ids] = np.where(special, SPECIAL, TEXT)
        if "unk" in tokenizer.special_tokens:
            self._kinds[tokenizer.special_tokens["unk"]] = UNKNOWN
        lengths = np.zeros(tokenizer.vocab_size, np.int64)
        entries = vocabulary.filter(pc.invert(vocabulary["special"]))
        data, _ = text_buffers(entries["token"].combine_chunks())
        lengths[entries["id"].to_numpy()] = pc.binary_length(entries["token"]).to_numpy()
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        self._spelled = data
        self._automaton = automaton(entries)
        self._proven = not isinstance(tokenizer, HuggingFaceTokenizer) or tokenizer.byte_level
        self._first_space = self._map(tokenizer.encode(pa.array(["a"])), False).text.tobytes() == b" a"

    def map(self, encoded: Encoded, first: int = 0) -> ByteMap:
        """The bytes of documents of tokens, special tokens among them; `first` is the number of the first in errors.

        Raises InputError for an id whose text is not known, and for tokens that decode to another text.
        """
        found = self._map(encoded, self._first_space, first)
        if not self._proven:
            self._compare(encoded, found, first)
        return found

    def _map(self, encoded: Encoded, first_space: bool, first: int = 0) -> ByteMap:
        ids, borders = np.ascontiguousarray(encoded.ids), encoded.offsets
        known = ids[(ids >= 0) & (ids < self._kinds.size)]
        most = int(np.diff(self._starts)[known].sum())
        text, ends, suffixes = np.empty(most, np.uint8), np.empty(most, np.bool_), np.empty(most, np.int32)
        begins, edges = np.empty(ids.size, np.int64), np.empty(borders.size - 1, np.int64)
        spelling = (self._kinds, self._starts, self._spelled, first_space, *self._automaton)
        used = spell(ids, borders, *spelling, text, ends, suffixes, begins, edges)
        if used < 0:
            document = int(np.searchsorted(borders, -1 - used, side="right")) - 1
            raise InputError(
                f"document {first + document} has id {ids[-1 - used]}, which stands for no known text (unk, or no "
                "entry), so its tokens have no exact place among the bytes: encode with a tokenizer that has an id for "
                "every byte"
            )
        return ByteMap(text[:used], ends[:used], suffixes[:used], begins, edges)

    def _compare(self, encoded: Encoded, found: ByteMap, first: int) -> None:
        """What a file of another kind than byte-level spells is compared with what its library decodes."""
        special = np.flatnonzero(self._kinds[encoded.ids] == SPECIAL)
        edges = np.unique(np.concatenate([encoded.offsets, special, special + 1]))
        ends = np.append(found.token_begins, found.text.size)[edges]
        runs = Encoded(encoded.ids, edges)
        for run, (decoded, (begin, end)) in enumerate(
            zip(self._tokenizer.decode(runs).to_pylist(), pairwise(ends.tolist()), strict=True)
        ):
            spelled = found.text[begin:end].tobytes()
            # A cut character is shown in other ways by libraries.
            if begin < end and whole(spelled) and spelled != decoded.encode():
                document = int(np.searchsorted(encoded.offsets, edges[run], side="right")) - 1
                raise InputError(
                    f"document {first + document}: the tokens of this {self._tokenizer.family} tokenizer spell "
                    f"{spelled.decode()[:40]!r} and decode to {decoded[:40]!r}, so they have no exact place among the "
                    "bytes: use a byte-level BPE, SentencePiece or superword tokenizer"
                )


def whole(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def automaton(entries: pa.Table) -> tuple[Int64, npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """keys, children, fails and longest of `longest_suffix_kernels` for entries of a vocabulary."""
    filled = entries.filter(pc.greater(pc.binary_length(entries["token"]), 0))
    # The trie keeps the last of several entries with the same bytes.
    ordered = filled.sort_by([("byte_fallback", "descending"), ("id", "descending")])
    trie = byte_trie(ordered["token"].combine_chunks(), ordered["id"].to_numpy())
    fails, longest = np.empty_like(trie.tokens), np.empty_like(trie.tokens)
    link(trie.keys, trie.children, trie.tokens, fails, longest)
    return trie.keys, trie.children, fails, longest
