"""The engine for SentencePiece models (`x.model`), BPE and Unigram, ours and published ones.

Control symbols never match text. A published model may hold a special token as a user-defined symbol, which does match:
text is then encoded in two parts around the look-alike's first character.

SentencePiece writes a space as U+2581, so it reads a literal U+2581 in text as a space. The tokenizers that we train
encode it as its three byte pieces, and any decoder gives it back; a published model keeps its library's ids. Decoding
concatenates bytes, so that special tokens stay and a cut character becomes U+FFFD as Python's `replace` does; the space
that a model puts before each text is taken off again.

Where gigatoken gives the same ids it encodes once there is enough text (see `engine`). A long text that cannot be cut
is encoded by our own encoder (see `long_texts`).

Saved: `tokenizer.model` and `tokenizer_config.json`.
"""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sentencepiece
from numpy.typing import NDArray

from tokpack_core.allocator import give_back_freed_memory
from tokpack_core.config import UnicodeForm
from tokpack_core.corpus.text_buffers import text_array, text_buffers
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.agreement.encoder_choice import EncoderChoice
from tokpack_core.tokenizers.byte_bpe.engine import WORTH_LOADING
from tokpack_core.tokenizers.byteification.token_bytes import META_SPACE, ByteDecoder, byte_piece, vocabulary_table
from tokpack_core.tokenizers.encoded import Encoded, from_lists
from tokpack_core.tokenizers.long_documents import LONG, character_end, encode_bounded, require_memory
from tokpack_core.tokenizers.metadata import Metadata, kept_languages, left_out, write_metadata
from tokpack_core.tokenizers.sentencepiece.exact_scores import (
    EXACT_UNITS,
    FRACTION,
    LONGEST_EXACT,
    UNKNOWN_PENALTY,
    largest_exact_sum,
)
from tokpack_core.tokenizers.sentencepiece.export import as_tokenizer_json
from tokpack_core.tokenizers.sentencepiece.proto import (
    CONTROL,
    NORMAL,
    UNUSED,
    adds_dummy_prefix,
    is_user_defined,
    merges_pairs,
    pieces,
    with_new_pieces,
    with_pieces,
)
from tokpack_core.tokenizers.text_batches import BATCH_BYTES
from tokpack_core.tokenizers.unicode_forms import form_applied

if TYPE_CHECKING:
    from tokpack_core.tokenizers.sentencepiece.engine import SentencePieceEngine
    from tokpack_core.tokenizers.sentencepiece.long_texts import LongTexts

FILE_NAME = "tokenizer.model"
RESERVED = "<|reserved_"


class SentencePieceTokenizer:
    """A SentencePiece model as a Tokenizer (see protocol)."""

    def __init__(self, model: bytes, metadata: Metadata, source: str) -> None:
        """`source` names the tokenizer in errors."""
        self._model = model
        self._engine = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._metadata = metadata
        self._dummy_prefix = adds_dummy_prefix(model)
        self.family = metadata.family
        self.training: Mapping[str, Any] = metadata.training
        self.vocab_size: int = self._engine.vocab_size()
        self.special_tokens = {
            role: self._special_id(role, text, source) for role, text in metadata.special_tokens.items()
        }
        self.unicode: UnicodeForm = form_applied(self._engine.normalize)
        self._meta_space_ids = self._ids_of_meta_space()
        self._apart = self._encoded_apart()
        self._tried = False
        self._seen = 0
        self._loading = threading.Lock()
        self._long: LongTexts | None = None
        self._tried_long = False
        self._loading_long = threading.Lock()
        self._fast: SentencePieceEngine | None = None
        self._choice = EncoderChoice("sentencepiece")
        self._exact_sum = None if merges_pairs(model) else largest_exact_sum(self.pieces()[1])
        exact = self._exact_sum is None or self._exact_sum >= EXACT_UNITS / FRACTION
        self._cut_as = self.family if exact else ""
        self._cut_at = BATCH_BYTES if self._exact_sum is None else LONGEST_EXACT
        self._vocabulary = self._build_vocabulary()
        self._byte_decoder = ByteDecoder(self._vocabulary, self.vocab_size)

    @property
    def encoder(self) -> EncoderChoice:
        return self._choice.also(self._metadata.warnings)

    def encode(self, texts: pa.Array) -> Encoded:
        if not self._tried:
            self._seen += texts.nbytes
            if self._seen > WORTH_LOADING:
                self.choose_engine()
        return self._encode_by_library(texts) if self._fast is None else self._fast.encode(texts)

    def choose_engine(self) -> None:
        """Loads and checks the faster engine, unless that was done; small texts are not worth it."""
        from tokpack_core.tokenizers.sentencepiece.engine import choose_engine

        with self._loading:
            if not self._tried:
                apart = self._apart.pattern if self._apart else None
                special = list(self._metadata.special_tokens.values())
                self._fast, self._choice = choose_engine(
                    self._model,
                    self._encode_by_library,
                    self._encode_long,
                    self.family,
                    self.unicode,
                    apart,
                    special,
                )
                self._tried = True

    def _encode_by_library(self, texts: pa.Array) -> Encoded:
        return encode_bounded(self._encode_batch, texts, self._cut_as, self._cut_at, self._encode_long)

    def sums_exactly(self, encoded: Encoded) -> NDArray[np.bool_]:
        """bool [documents]: where no sum of scores is rounded (see `exact_scores`); of BPE, which has none, all."""
        if self._exact_sum is None:
            return np.ones(encoded.documents, bool)
        _, scores, ordinary = self.pieces()
        costs = np.where(ordinary, -scores, UNKNOWN_PENALTY - scores.min()).astype(np.float64)
        sums = np.concatenate([np.zeros(1), np.cumsum(costs[encoded.ids])])
        return np.diff(sums[encoded.offsets]) <= self._exact_sum

    def decode(self, encoded: Encoded) -> pa.Array:
        return self._byte_decoder.decode(encoded, drop_first_space=self._dummy_prefix)

    def vocabulary(self) -> pa.Table:
        return self._vocabulary

    def save(self, folder: Path) -> None:
        (folder / FILE_NAME).write_bytes(self._model)
        write_metadata(folder, self._metadata, self.special_tokens, tokenizer_class=None)

    def save_for_transformers(self, folder: Path) -> None:
        """Write a tokenizer.json with its config into a new folder, which AutoTokenizer opens."""
        folder.mkdir()
        strings = list(self._metadata.special_tokens.values())
        strings += [text for text, _, kind in pieces(self._model) if kind == CONTROL[0] and text.startswith(RESERVED)]
        engine = as_tokenizer_json(self._model, strings, self._metadata.unicode)
        (folder / "tokenizer.json").write_text(engine.to_str(pretty=True) + "\n", encoding="utf-8")
        write_metadata(folder, self._metadata, self.special_tokens, tokenizer_class="PreTrainedTokenizerFast")

    @property
    def metadata(self) -> Metadata:
        return self._metadata

    @property
    def model(self) -> bytes:
        """The content of its file."""
        return self._model

    @property
    def merges_pairs(self) -> bool:
        """Whether it is BPE, which makes a piece of two others; else Unigram."""
        return merges_pairs(self._model)

    def pieces(self) -> tuple[pa.Array, NDArray[np.float32], NDArray[np.bool_]]:
        """Pieces as they stand in the file, their scores, and which are ordinary ones that a model can do without."""
        texts, scores, kinds = zip(*pieces(self._model), strict=True)
        ordinary = np.array([kind == NORMAL[0] for kind in kinds], bool)
        ordinary[list(self.special_tokens.values())] = False
        return pa.array(texts, pa.string()), np.array(scores, np.float32), ordinary

    def with_pieces(self, kept: NDArray[np.bool_]) -> SentencePieceTokenizer:
        """The tokenizer without the other pieces; ids close up."""
        settings = dict(self._metadata.settings) | {"vocab_size": int(kept.sum())}
        model = with_pieces(self._model, kept.tolist())
        languages = kept_languages(self._metadata.languages, kept)
        metadata = replace(self._metadata, settings=settings, ids={}, languages=languages)
        return SentencePieceTokenizer(model, metadata, "the pruned tokenizer")

    def using(self, languages: Mapping[str, NDArray[np.int32]]) -> SentencePieceTokenizer:
        """The tokenizer of some languages (see `Metadata`): all other ordinary pieces stay and are never given."""
        used = np.zeros(self.vocab_size, bool)
        used[np.concatenate(list(languages.values()))] = True
        shown = [
            (text, score, kind if usable or kind != NORMAL[0] else UNUSED[0])
            for (text, score, kind), usable in zip(pieces(self._model), used.tolist(), strict=True)
        ]
        metadata = replace(self._metadata, languages=languages)
        return SentencePieceTokenizer(with_new_pieces(self._model, shown), metadata, "the sub-tokenizer")

    def _encode_batch(self, batch: pa.Array) -> Encoded:
        lists = self._engine.encode(batch.to_pylist())
        if self._apart is not None:
            found = pc.match_substring_regex(batch, self._apart.pattern).to_numpy(zero_copy_only=False)
            for document in found.nonzero()[0]:
                lists[document] = self._encode_in_parts(batch.slice(document, 1), self._apart).tolist()
        return from_lists(lists)

    def _encode_in_parts(self, text: pa.Array, apart: re.Pattern[str]) -> NDArray[np.int32]:
        """The ids of one text around what the library must not read; long parts by our own encoder if there is one."""
        data, _ = text_buffers(text)
        ids = array("i")  # it grows in place, however many parts there are

        def add(start: int, stop: int) -> None:
            long = self._long_texts() if stop - start > LONG else None
            if long is None:
                ids.extend(self._engine.encode(data[start:stop].tobytes()))
            else:
                part = text_array(data[start:stop], np.array([0, stop - start]), pa.large_string())
                ids.frombytes(long.encode(part).data.cast("B"))

        start = 0
        for match in re.finditer(apart.pattern.encode(), data.data):
            if match[0] == META_SPACE.encode() and self._meta_space_ids:
                add(start, match.start())
                ids.extend(self._meta_space_ids)
                start = match.end()
            else:
                stop = character_end(data, match.start() + 1, match.end())
                add(start, stop)
                start = stop
        add(start, data.size)
        return np.asarray(ids, np.int32)

    def _encode_long(self, batch: pa.Array) -> Encoded:
        """The ids of `_encode_batch` for one long text, by our own encoder if the model has one."""
        long = self._long_texts()
        if long is None:
            require_memory(batch)
            return self._encode_batch(batch)
        if self._apart is None or not pc.match_substring_regex(batch, self._apart.pattern)[0].as_py():
            ids = long.encode(batch)
        else:
            ids = self._encode_in_parts(batch, self._apart)
        return Encoded(ids, np.array([0, ids.size], np.int64))

    def _long_texts(self) -> LongTexts | None:
        from tokpack_core.tokenizers.sentencepiece.long_texts import equal_long_texts

        with self._loading_long:
            if not self._tried_long:
                self._long = equal_long_texts(self._model, self._engine)
                give_back_freed_memory()
                self._tried_long = True
        return self._long

    def _ids_of_meta_space(self) -> list[int]:
        """Byte pieces of a literal U+2581 in text, in a tokenizer of ours."""
        if self.family == "pretrained":
            return []
        ids = [self._engine.piece_to_id(f"<0x{byte:02X}>") for byte in META_SPACE.encode()]
        return ids if all(self._engine.is_byte(ids)) else []

    def _encoded_apart(self) -> re.Pattern[str] | None:
        """What the library would not read as ordinary text."""
        strings = [
            self._metadata.special_tokens[role]
            for role, token in self.special_tokens.items()
            if not self._is_special(token)
        ]
        strings += [META_SPACE] if self._meta_space_ids else []
        return re.compile("|".join(map(re.escape, sorted(strings, key=len, reverse=True)))) if strings else None

    def _special_id(self, role: str, text: str, source: str) -> int:
        found: int = self._engine.piece_to_id(text)
        if self._engine.id_to_piece(found) != text:
            raise InputError(
                f"{source} has no piece {text!r} ({role}), and pieces cannot be added: name one that it has"
            )
        if not self._is_special(found) and not (is_user_defined(self._model, found) and len(text) > 1):
            raise InputError(f"{source}: {text!r} ({role}) is a piece of ordinary text: name a control symbol")
        return found

    def _is_special(self, token: int) -> bool:
        return bool(self._engine.is_control(token) or self._engine.is_unknown(token))

    def _build_vocabulary(self) -> pa.Table:
        ids = list(range(self.vocab_size))
        pieces = self._engine.id_to_piece(ids)
        roles = set(self.special_tokens.values())
        special = [token in roles or self._is_special(token) for token in ids]
        is_byte = self._engine.is_byte(ids)
        tokens = [
            piece.encode()
            if hidden
            else (byte_piece(piece) if byte else None) or piece.replace(META_SPACE, " ").encode()
            for piece, hidden, byte in zip(pieces, special, is_byte, strict=True)
        ]
        return vocabulary_table(ids, tokens, special, is_byte)


def own_eod(engine: sentencepiece.SentencePieceProcessor) -> dict[str, str]:
    """The role EOD as the model file itself says; an id of -1 is one that it does not have."""
    return {"eod": engine.id_to_piece(engine.eos_id())} if engine.eos_id() >= 0 else {}


def load_sentencepiece(path: Path, metadata: Metadata, published: Mapping[str, str]) -> SentencePieceTokenizer:
    """Open a SentencePiece model.

    `published`: role → string as the file's publisher names them; those that are no pieces are left out. Where neither
    they nor the configuration name an EOD, it is the model's own end of sentence, if it has one.
    Raises InputError if the library cannot read the file.
    """
    try:
        model = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    try:
        engine = sentencepiece.SentencePieceProcessor(model_proto=model)
        adds_dummy_prefix(model)
        usable = bool(model) and engine.vocab_size() > 0
    except (RuntimeError, ValueError):
        usable = False
    if not usable:
        raise InputError(f"{path} is not a SentencePiece model: give the .model file that its trainer wrote")
    known = {role: text for role, text in published.items() if engine.id_to_piece(engine.piece_to_id(text)) == text}
    roles = own_eod(engine) | known | dict(metadata.special_tokens)
    warnings = left_out(path, lambda text: engine.id_to_piece(engine.piece_to_id(text)) == text)
    return SentencePieceTokenizer(model, replace(metadata, special_tokens=roles, warnings=warnings), str(path))
