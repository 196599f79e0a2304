"""tiktoken rank files: one line a token, its bytes in base64 and its rank, which is its id.

A rank file names neither its regex nor its special tokens. The regex is the `pretokenizer` that is named besides, else
that of the published file that has these ranks (`published_ranks`); any other file is refused.
Special tokens are the configured ones, appended after the largest rank in the order eod, pad, bos, unk: OpenAI's own
ids for them (cl100k: 100257 for <|endoftext|>, which leaves a hole) stand in no file and are not reproduced.

Saved: `tokenizer.tiktoken` in rank order and `tokenizer_config.json`, which names regex and special tokens. tiktoken's
own reader is not used, since it caches by path and would give a replaced file's old content.
"""

from __future__ import annotations

import binascii
import re
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import tiktoken

from tokpack_core.config import UnicodeForm
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.agreement.encoder_choice import EncoderChoice
from tokpack_core.tokenizers.byte_bpe.engine import WORTH_LOADING, ExactBpe, exact_rank_encoder
from tokpack_core.tokenizers.byteification.token_bytes import ByteDecoder, vocabulary_table
from tokpack_core.tokenizers.encoded import Encoded, concatenate, from_lists
from tokpack_core.tokenizers.encoding_errors import SHOWN, EncodingError, lists_or_error
from tokpack_core.tokenizers.metadata import Metadata, left_out, write_metadata
from tokpack_core.tokenizers.pretokenizers import PRETOKENIZERS, splits_of
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.text_batches import text_batches
from tokpack_core.tokenizers.tiktoken.published_ranks import published_pretokenizer, rank_lines

FILE_NAME = "tokenizer.tiktoken"
RANK_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} \d+\r?\n")
LONGEST_LINE = 4096


class TiktokenTokenizer:
    """A rank file as a Tokenizer (see protocol)."""

    def __init__(self, ranks: dict[bytes, int], metadata: Metadata) -> None:
        pretokenizer = metadata.settings["pretokenizer"]
        splits = splits_of(pretokenizer)
        if len(splits) > 1:
            raise InputError(
                f"a rank file takes one regex, and {pretokenizer} is several: choose {', '.join(PRETOKENIZERS)}"
            )
        first_free = max(ranks.values()) + 1
        self._ranks = ranks
        self._metadata = metadata
        self.family = metadata.family
        self.training: Mapping[str, Any] = metadata.training
        self.unicode: UnicodeForm = "none"
        self.special_tokens = {role: first_free + place for place, role in enumerate(metadata.special_tokens)}
        self.vocab_size = first_free + len(self.special_tokens)
        self._engine = tiktoken.Encoding(
            name=metadata.family,
            pat_str=splits[0],
            mergeable_ranks=ranks,
            special_tokens={},
        )
        self._splits = splits
        self._sizes = np.zeros(first_free, np.int64)
        self._sizes[list(ranks.values())] = list(map(len, ranks))
        self._exact: ExactBpe | None = None
        self._tried = False
        self._seen = 0
        self._loading = threading.Lock()
        self._vocabulary = self._build_vocabulary()
        self._byte_decoder = ByteDecoder(self._vocabulary, self.vocab_size)

    @property
    def splits(self) -> tuple[str, ...]:
        return self._splits

    @property
    def encoder(self) -> EncoderChoice:
        choice = self._exact.choice if self._exact else EncoderChoice("tiktoken")
        return choice.also(self._metadata.warnings)

    def exact_bpe(self) -> ExactBpe | None:
        """Merges that give the same ids, and the regex, for our own encoder; None if it differs on a hard text."""
        with self._loading:
            if not self._tried:
                self._exact = exact_rank_encoder(self._ranks, self._splits, self._encode_by_library)
                self._tried = True
        return self._exact

    def parts(self) -> tuple[dict[bytes, int], Metadata]:
        """Ranks by token, and what the rank file does not say."""
        return self._ranks, self._metadata

    def encode(self, texts: pa.Array) -> Encoded:
        if not self._tried:
            self._seen += texts.nbytes
            if self._seen > WORTH_LOADING:
                self.exact_bpe()
        return self._encode_by_library(texts) if self._exact is None else self._exact.encode(texts)

    def _encode_by_library(self, texts: pa.Array) -> Encoded:
        batches = (batch.to_pylist() for batch in text_batches(texts))
        return concatenate(self._whole(batch) for batch in batches)

    def _whole(self, texts: list[str]) -> Encoded:
        """Refuses a regex that leaves text unmatched, which tiktoken drops without a word."""
        encoded = from_lists(lists_or_error(self._engine.encode_ordinary_batch, texts))
        sizes = np.diff(np.concatenate([[0], np.cumsum(self._sizes[encoded.ids])])[encoded.offsets])
        for number in np.flatnonzero(sizes != [len(text.encode()) for text in texts]):
            raise EncodingError(
                f"its regex, `{self._splits[0]}`, does not match all of it, and tiktoken drops the rest; let it match "
                r"every character, as with `|[\s\S]` at the end",
                texts[number][:SHOWN],
            )
        return encoded

    def decode(self, encoded: Encoded) -> pa.Array:
        return self._byte_decoder.decode(encoded)

    def vocabulary(self) -> pa.Table:
        return self._vocabulary

    def save(self, folder: Path) -> None:
        write_rank_file(folder / FILE_NAME, self._ranks)
        write_metadata(folder, self._metadata, self.special_tokens, tokenizer_class=None)

    def _build_vocabulary(self) -> pa.Table:
        strings = [text.encode() for text in self._metadata.special_tokens.values()]
        size = len(self._ranks) + len(strings)
        special = [False] * len(self._ranks) + [True] * len(strings)
        ids = [*self._ranks.values(), *self.special_tokens.values()]
        return vocabulary_table(ids, [*self._ranks, *strings], special, [False] * size)


def regex_of_ranks(tokenizer: Tokenizer) -> dict[str, str]:
    """`pretokenizer` of a tokenizer of bare ranks, whose file does not name it; nothing of any other."""
    if not isinstance(tokenizer, TiktokenTokenizer):
        return {}
    return {"pretokenizer": tokenizer.parts()[1].settings["pretokenizer"]}


def load_tiktoken(path: Path, metadata: Metadata) -> TiktokenTokenizer:
    """Open a rank file with the regex and special tokens of `metadata`.

    Raises InputError for a damaged file, or if `metadata` names no regex and the ranks are of no published file.
    """
    ranks = read_rank_file(path)
    if "pretokenizer" not in metadata.settings:
        found = {"pretokenizer": published_pretokenizer(path, ranks)}
        metadata = replace(metadata, settings=dict(metadata.settings) | found)
    special = set(metadata.special_tokens.values())
    warnings = left_out(path, lambda text: text in special or text.encode() in ranks)
    return TiktokenTokenizer(ranks, replace(metadata, warnings=warnings))


def holds_ranks(path: Path) -> bool:
    """Whether a file is a rank file: by its name, or a .model (as Meta names its own) by its first line."""
    if path.suffix != ".model":
        return path.suffix == ".tiktoken"
    with path.open("rb") as file:
        return RANK_LINE.match(file.read(LONGEST_LINE)) is not None


def read_rank_file(path: Path) -> dict[bytes, int]:
    """Bytes of each token → rank. Raises InputError that names the line, or the single byte that the file lacks."""
    ranks: dict[bytes, int] = {}
    seen: set[int] = set()
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            encoded, rank_text = line.split()
            token, rank = binascii.a2b_base64(encoded, strict_mode=True), int(rank_text)
        except (ValueError, binascii.Error):
            raise InputError(f"{path}, line {number}: not `<base64> <rank>`: give a tiktoken rank file") from None
        if token in ranks or rank in seen or not 0 <= rank < 2**31 - 8:
            raise InputError(f"{path}, line {number}: its token or its rank {rank} occurs twice or is out of range")
        ranks[token] = rank
        seen.add(rank)
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise InputError(f"{path} has no token for byte 0x{missing[0]:02X}: it cannot encode every text; get it anew")
    return ranks


def write_rank_file(path: Path, ranks: Mapping[bytes, int]) -> None:
    """Write tokens in rank order."""
    path.write_bytes(rank_lines(ranks))
