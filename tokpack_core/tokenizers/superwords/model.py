"""Tokenizers with superwords, encoded exactly by our own encoder and saved in our own format (see `superword_file`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import regex

from tokpack_core.bpe.automaton import compile_splits
from tokpack_core.bpe.encoder import BpeModel
from tokpack_core.bpe.picky_merges import event_encoder
from tokpack_core.bpe.regex_splitting import patience
from tokpack_core.bpe.regex_syntax import Unsupported
from tokpack_core.bpe.superword_encoder import MergeList, SuperwordEncoder
from tokpack_core.bpe.superword_units import JoinableWords
from tokpack_core.bpe.word_memory import EncodeWords, WordMemory
from tokpack_core.config import NormalizeConfig
from tokpack_core.corpus.normalization import normalize
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byteification.token_bytes import ByteDecoder, vocabulary_table
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.huggingface.model import MERGES_FILE_NAME, MERGES_SCHEMA
from tokpack_core.tokenizers.metadata import Metadata, write_metadata
from tokpack_core.tokenizers.superwords.file import FILE_NAME, SuperwordModel, read_model, write_model


class SuperwordTokenizer:
    """A superword model as a Tokenizer (see protocol)."""

    def __init__(self, model: SuperwordModel, metadata: Metadata, merges: pa.Table | None = None) -> None:
        self._model = model
        self._metadata = metadata
        self._merges = merges
        self.family = metadata.family
        self.training: Mapping[str, Any] = metadata.training
        self.unicode = metadata.unicode
        self._normalization = NormalizeConfig(unicode=metadata.unicode, byte_order_marks="keep")
        self.special_tokens = {role: model.special.index(text) for role, text in metadata.special_tokens.items()}
        self.vocab_size = len(model.special) + len(model.tokens)
        special = len(model.special)
        self._vocabulary = vocabulary_table(
            range(self.vocab_size),
            [*(text.encode() for text in model.special), *model.tokens],
            [True] * special + [False] * len(model.tokens),
            [False] * self.vocab_size,
        )
        self._byte_decoder = ByteDecoder(self._vocabulary, self.vocab_size)
        self._encoder = encoder_of(model)

    @property
    def model(self) -> SuperwordModel:
        return self._model

    def encode(self, texts: pa.Array) -> Encoded:
        if self.unicode != "none":
            texts, _ = normalize(texts, self._normalization)
        return self._encoder.encode(texts)

    def decode(self, encoded: Encoded) -> pa.Array:
        return self._byte_decoder.decode(encoded)

    def vocabulary(self) -> pa.Table:
        return self._vocabulary

    def save(self, folder: Path) -> None:
        write_model(folder / FILE_NAME, self._model)
        if self._merges is not None:
            pq.write_table(self._merges, folder / MERGES_FILE_NAME, compression="zstd")
        write_metadata(folder, self._metadata, self.special_tokens, tokenizer_class=None)


def encoder_of(model: SuperwordModel) -> SuperwordEncoder:
    contents = model.contents()
    byte_ids = np.zeros(256, np.int32)
    for token_id, token in contents.items():
        if len(token) == 1:
            byte_ids[token[0]] = token_id
    eligible = eligibility(model.mergeable, model.letters)
    flags = np.zeros(len(model.special) + len(model.tokens), np.bool_)
    flags[list(contents)] = [eligible(token) for token in model.tokens]
    superwords = MergeList(*model.superwords.T.copy())
    if model.parts:
        words = BpeModel(byte_ids, *np.empty((4, 0), np.int32))
        joinable = JoinableWords(words, model.splits, flags, WordMemory(by_events(model, byte_ids)))
    else:
        left, right, token = model.words.T.copy()
        words = BpeModel(byte_ids, left, right, token, np.arange(left.size, dtype=np.int32))
        joinable = JoinableWords(words, model.splits, flags)
    return SuperwordEncoder(joinable, superwords)


def by_events(model: SuperwordModel, byte_ids: npt.NDArray[np.int32]) -> EncodeWords:
    lengths = np.array([*(1 for _ in model.special), *map(len, model.tokens), *map(len, model.deleted)], np.int64)
    parts = np.array([part for parts in model.parts for part in parts], np.int32)
    part_offsets = np.cumsum([0, *map(len, model.parts)])
    return event_encoder(byte_ids, lengths, np.ascontiguousarray(model.words), parts, part_offsets)


def eligibility(mergeable: str, letters: str | None) -> Callable[[bytes], bool]:
    """Whether a word may be part of a superword. Raises InputError for a regex that does not compile."""
    try:
        within, whole = regex.compile(mergeable), None if letters is None else regex.compile(letters)
        within.search("")
    except regex.error as error:
        raise InputError(f"`mergeable`, `{mergeable}`, is no regular expression ({error}): correct it") from None
    except MemoryError:
        raise InputError(f"`mergeable`, `{mergeable}`, calls itself without end: correct it") from None

    def eligible(token: bytes) -> bool:
        try:
            text = token.decode()
        except UnicodeDecodeError:
            return False
        with patience(within, text) as limit:
            found = within.search(text, **limit)
        return found is not None or bool(whole is not None and whole.fullmatch(text))

    return eligible


def refuse_slow(pretokenizer: str, splits: tuple[str, ...]) -> None:
    try:
        compile_splits(splits, "16.0")
    except Unsupported as error:
        raise InputError(
            f"the pretokenizer `{pretokenizer}` cannot be used here ({error}): write it with sets, groups, "
            "greedy quantifiers and look-ahead at one character"
        ) from None


def load_superwords(path: Path, metadata: Metadata) -> SuperwordTokenizer:
    """Raises InputError for a damaged file, or one that lies without its `tokenizer_config.json`."""
    model = read_model(path)
    if set(metadata.special_tokens.values()) != set(model.special):
        raise InputError(
            f"{path} has the special tokens {list(model.special)}, and the tokenizer_config.json beside it names "
            f"{list(metadata.special_tokens.values())}: restore the folder"
        )
    merges_file = path.with_name(MERGES_FILE_NAME)
    merges = pq.ParquetFile(merges_file).read().cast(MERGES_SCHEMA) if merges_file.is_file() else None
    return SuperwordTokenizer(model, metadata, merges)
