"""How often each token occurs, and how much text of each language that was.

Counts of two pieces of text add up to the counts of both, so units are counted alone and summed in any order.
Published as two small parquet files (zstd):

token_counts.parquet      id int32, count int64: tokens that occur, ascending id; schema metadata `vocab_size`
language_counts.parquet   lang string, documents, bytes, characters, words, tokens int64: ascending lang, null last

Bytes are UTF-8, characters are code points, words are maximal runs without whitespace. For languages written without
spaces (Chinese, Japanese, Thai, …) words mean nothing: `fertility` gives their tokens per character instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tokpack_core.errors import InputError
from tokpack_core.vocabulary.words_kernel import words_per_document

TOKEN_COUNTS_FILE = "token_counts.parquet"
LANGUAGE_COUNTS_FILE = "language_counts.parquet"

MEASURES = ("documents", "bytes", "characters", "words", "tokens")
LANGUAGE_SCHEMA = pa.schema([("lang", pa.string()), *((measure, pa.int64()) for measure in MEASURES)])
TOKEN_SCHEMA = pa.schema([("id", pa.int32()), ("count", pa.int64())])


class EncodedDocuments(Protocol):
    """Token ids of a batch of documents, laid end to end."""

    @property
    def ids(self) -> NDArray[np.int32]: ...
    @property
    def offsets(self) -> NDArray[np.int64]: ...


@dataclass(frozen=True, eq=False)
class TokenCounts:
    """tokens: int64 [vocab_size], occurrences by id; languages: one row a language, of `LANGUAGE_SCHEMA`."""

    tokens: NDArray[np.int64]
    languages: pa.Table

    @staticmethod
    def zero(vocab_size: int) -> TokenCounts:
        return TokenCounts(np.zeros(vocab_size, np.int64), LANGUAGE_SCHEMA.empty_table())

    @property
    def vocab_size(self) -> int:
        return len(self.tokens)

    def __add__(self, other: TokenCounts) -> TokenCounts:
        if self.vocab_size != other.vocab_size:
            raise ValueError(f"counts over {self.vocab_size} and over {other.vocab_size} entries do not add up")
        return TokenCounts(self.tokens + other.tokens, sum_by_language([self.languages, other.languages]))

    def to_tables(self) -> tuple[pa.Table, pa.Table]:
        """The two tables that are published: (token counts, language counts)."""
        seen = np.flatnonzero(self.tokens)
        schema = TOKEN_SCHEMA.with_metadata({"vocab_size": str(self.vocab_size)})
        return pa.table([pa.array(seen, pa.int32()), pa.array(self.tokens[seen])], schema=schema), self.languages

    @staticmethod
    def from_tables(tokens: pa.Table, languages: pa.Table) -> TokenCounts:
        """The inverse of `to_tables`. Raises InputError if the tables are not such a pair."""
        vocab_size = (tokens.schema.metadata or {}).get(b"vocab_size", b"").decode()
        if not vocab_size.isdecimal() or tokens.schema != TOKEN_SCHEMA or languages.schema != LANGUAGE_SCHEMA:
            raise InputError("these are not token and language counts as this version writes them: count again")
        counts = np.zeros(int(vocab_size), np.int64)
        ids = tokens["id"].to_numpy()
        if len(ids) and (ids.min() < 0 or ids.max() >= len(counts)):
            raise InputError(f"token counts hold an id outside 0..{len(counts) - 1}: count again")
        counts[ids] = tokens["count"].to_numpy()
        return TokenCounts(counts, languages)

    def write(self, folder: Path) -> None:
        tokens, languages = self.to_tables()
        pq.write_table(tokens, folder / TOKEN_COUNTS_FILE, compression="zstd")
        pq.write_table(languages, folder / LANGUAGE_COUNTS_FILE, compression="zstd")

    @staticmethod
    def read(folder: Path) -> TokenCounts:
        """Raises InputError, naming the folder, if its two files are missing or hold something else."""
        try:
            return TokenCounts.from_tables(
                pq.read_table(folder / TOKEN_COUNTS_FILE), pq.read_table(folder / LANGUAGE_COUNTS_FILE)
            )
        except (InputError, OSError, pa.ArrowInvalid) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{folder}: token counts cannot be read, build them again ({reason})") from None


def count(encoded: EncodedDocuments, texts: pa.Array, langs: pa.Array, vocab_size: int) -> TokenCounts:
    """Counts of one batch of documents.

    encoded: ids and offsets of the same documents as `texts` (string, no nulls) and `langs` (string or null).
    Raises ValueError if the three disagree on the number of documents or an id is outside 0..vocab_size-1.
    """
    documents = len(texts)
    if len(langs) != documents or len(encoded.offsets) != documents + 1:
        raise ValueError(f"{documents} texts, {len(langs)} languages and {len(encoded.offsets) - 1} encoded documents")
    tokens = np.bincount(encoded.ids, minlength=vocab_size).astype(np.int64, copy=False)
    if len(tokens) > vocab_size:
        raise ValueError(f"token id {len(tokens) - 1} in a vocabulary of {vocab_size}")
    per_document = pa.table(
        [
            langs.cast(pa.string()),
            pa.array(np.ones(documents, np.int64)),
            pc.binary_length(texts).cast(pa.int64()),
            pc.utf8_length(texts).cast(pa.int64()),
            pa.array(count_words(texts)),
            pa.array(np.diff(encoded.offsets)),
        ],
        schema=LANGUAGE_SCHEMA,
    )
    return TokenCounts(tokens, sum_by_language([per_document]))


def count_words(texts: pa.Array) -> NDArray[np.int64]:
    """Maximal runs of non-whitespace in each text: int64 [texts]."""
    texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    if len(texts) == 0 or data is None:
        return np.zeros(len(texts), np.int64)
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return words_per_document(np.frombuffer(data, np.uint8), bounds)


def sum_by_language(tables: list[pa.Table]) -> pa.Table:
    """Rows of the same language, null included, added up; sorted by language, null last."""
    grouped = pa.concat_tables(tables).group_by("lang", use_threads=False).aggregate([(m, "sum") for m in MEASURES])
    columns = [grouped["lang"], *(grouped[f"{measure}_sum"] for measure in MEASURES)]
    return pa.table(columns, schema=LANGUAGE_SCHEMA).sort_by("lang").combine_chunks()
