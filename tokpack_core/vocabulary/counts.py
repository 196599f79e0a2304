"""How often each token occurs, and how much text of each language that was.

Counts of two pieces of text add up to the counts of both, so units are counted alone and summed in any order.
Published as small parquet files (zstd):

token_counts.parquet      lang string, id int32, count int64: tokens that occur in each language, ascending (null last);
                          schema metadata `vocab_size`
language_counts.parquet   lang string, documents, bytes, characters, words, tokens int64: ascending lang, null last
merge_counts.parquet      of a byte-level BPE: see `merge_counts`

Bytes are UTF-8, characters are code points, words are maximal runs without whitespace. For languages written without
spaces (Chinese, Japanese, Thai, …) words mean nothing: `fertility` gives their tokens per character instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tokpack_core.errors import InputError
from tokpack_core.vocabulary.merge_counts import MergeCounts
from tokpack_core.vocabulary.words_kernel import words_per_document

TOKEN_COUNTS_FILE = "token_counts.parquet"
LANGUAGE_COUNTS_FILE = "language_counts.parquet"
MERGE_COUNTS_FILE = "merge_counts.parquet"

MEASURES = ("documents", "bytes", "characters", "words", "tokens")
LANGUAGE_SCHEMA = pa.schema([("lang", pa.string()), *((measure, pa.int64()) for measure in MEASURES)])
TOKEN_SCHEMA = pa.schema([("lang", pa.string()), ("id", pa.int32()), ("count", pa.int64())])
MOST_DENSE = 2**23
"""Cells of languages × entries that are counted in place; beyond, pairs are sorted."""


class EncodedDocuments(Protocol):
    """Token ids of a batch of documents, laid end to end."""

    @property
    def ids(self) -> NDArray[np.int32]: ...
    @property
    def offsets(self) -> NDArray[np.int64]: ...


@dataclass(frozen=True, eq=False)
class TokenCounts:
    """Counts of some text.

    tokens: int64 [vocab_size], occurrences by id; languages: one row a language, of `LANGUAGE_SCHEMA`; by_language: one
    row a language and token that occurs in it, of `TOKEN_SCHEMA`; merges: of a byte-level BPE, what its merges did.
    """

    tokens: NDArray[np.int64]
    languages: pa.Table
    by_language: pa.Table = field(default_factory=TOKEN_SCHEMA.empty_table)
    merges: MergeCounts | None = None

    @staticmethod
    def zero(vocab_size: int) -> TokenCounts:
        return TokenCounts(np.zeros(vocab_size, np.int64), LANGUAGE_SCHEMA.empty_table(), TOKEN_SCHEMA.empty_table())

    @staticmethod
    def of(
        by_language: pa.Table, languages: pa.Table, vocab_size: int, merges: MergeCounts | None = None
    ) -> TokenCounts:
        """Counts whose sums over languages are worked out here. Raises InputError for an id beyond the vocabulary."""
        ids, occurrences = by_language["id"].to_numpy(), by_language["count"].to_numpy()
        if len(ids) and (ids.min() < 0 or ids.max() >= vocab_size):
            raise InputError(f"token counts hold an id outside 0..{vocab_size - 1}: count again")
        tokens = np.zeros(vocab_size, np.int64)
        np.add.at(tokens, ids, occurrences)
        return TokenCounts(tokens, languages, by_language, merges)

    @property
    def vocab_size(self) -> int:
        return len(self.tokens)

    def __add__(self, other: TokenCounts) -> TokenCounts:
        if self.vocab_size != other.vocab_size:
            raise ValueError(f"counts over {self.vocab_size} and over {other.vocab_size} entries do not add up")
        return TokenCounts(
            self.tokens + other.tokens,
            sum_by_language([self.languages, other.languages]),
            sum_by_token([self.by_language, other.by_language]),
            self.merges + other.merges if self.merges and other.merges else self.merges or other.merges,
        )

    def write(self, folder: Path) -> None:
        tokens = self.by_language.replace_schema_metadata({"vocab_size": str(self.vocab_size)})
        pq.write_table(tokens, folder / TOKEN_COUNTS_FILE, compression="zstd")
        pq.write_table(self.languages, folder / LANGUAGE_COUNTS_FILE, compression="zstd")
        if self.merges is not None:
            pq.write_table(self.merges.to_table(), folder / MERGE_COUNTS_FILE, compression="zstd")

    @staticmethod
    def read(folder: Path) -> TokenCounts:
        """Raises InputError, naming the folder, if its files are missing or hold something else."""
        try:
            tokens = pq.ParquetFile(folder / TOKEN_COUNTS_FILE).read()
            languages = pq.ParquetFile(folder / LANGUAGE_COUNTS_FILE).read()
            size = (tokens.schema.metadata or {}).get(b"vocab_size", b"").decode()
            if not size.isdecimal() or tokens.schema != TOKEN_SCHEMA or languages.schema != LANGUAGE_SCHEMA:
                raise InputError("these are not token and language counts as this version writes them: count again")
            merges = None
            if (folder / MERGE_COUNTS_FILE).is_file():
                merges = MergeCounts.from_table(pq.ParquetFile(folder / MERGE_COUNTS_FILE).read(), int(size))
            return TokenCounts.of(tokens.replace_schema_metadata(), languages, int(size), merges)
        except (InputError, OSError, pa.ArrowInvalid) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{folder}: token counts cannot be read, build them again ({reason})") from None


def sum_counts(parts: Sequence[TokenCounts]) -> TokenCounts:
    """Counts of texts encoded, one or more over the same vocabulary, added up at once."""
    by_language = sum_by_token([part.by_language for part in parts])
    return TokenCounts.of(by_language, sum_by_language([part.languages for part in parts]), parts[0].vocab_size)


def count(encoded: EncodedDocuments, texts: pa.Array, langs: pa.Array, vocab_size: int) -> TokenCounts:
    """Counts of one batch of documents.

    encoded: ids and offsets of the same documents as `texts` (string, no nulls) and `langs` (string or null).
    Raises ValueError if the three disagree on the number of documents or an id is outside 0..vocab_size-1.
    """
    documents = len(texts)
    if len(langs) != documents or len(encoded.offsets) != documents + 1:
        raise ValueError(f"{documents} texts, {len(langs)} languages and {len(encoded.offsets) - 1} encoded documents")
    if len(encoded.ids) and int(encoded.ids.max()) >= vocab_size:
        raise ValueError(f"token id {encoded.ids.max()} in a vocabulary of {vocab_size}")
    lengths = np.diff(encoded.offsets)
    by_language = count_by_language(encoded.ids, lengths, langs, vocab_size)
    return TokenCounts.of(by_language, language_rows(texts, langs, lengths), vocab_size)


def count_by_language(ids: NDArray[np.int32], lengths: NDArray[np.int64], langs: pa.Array, vocab_size: int) -> pa.Table:
    """Occurrences of each language and token, of TOKEN_SCHEMA."""
    names = langs.cast(pa.string()).dictionary_encode(null_encoding="encode")
    languages = len(names.dictionary)
    pairs = np.repeat(names.indices.to_numpy().astype(np.int64) * vocab_size, lengths) + ids
    if languages * vocab_size <= max(MOST_DENSE, vocab_size):
        dense = np.bincount(pairs, minlength=languages * vocab_size)
        found = np.flatnonzero(dense)
        occurrences = dense[found]
    else:
        found, occurrences = np.unique(pairs, return_counts=True)
    rows = names.dictionary.take(pa.array(found // vocab_size))
    columns = [rows, pa.array(found % vocab_size, pa.int32()), pa.array(occurrences, pa.int64())]
    return pa.table(columns, schema=TOKEN_SCHEMA).sort_by([("lang", "ascending"), ("id", "ascending")])


def language_rows(texts: pa.Array, langs: pa.Array, tokens: NDArray[np.int64]) -> pa.Table:
    """The measures of documents by language, of LANGUAGE_SCHEMA. tokens: of each document."""
    per_document = [
        langs.cast(pa.string()),
        pa.array(np.ones(len(texts), np.int64)),
        pc.binary_length(texts).cast(pa.int64()),
        pc.utf8_length(texts).cast(pa.int64()),
        pa.array(count_words(texts)),
        pa.array(tokens),
    ]
    return sum_by_language([pa.table(per_document, schema=LANGUAGE_SCHEMA)])


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


def sum_by_token(tables: list[pa.Table]) -> pa.Table:
    """Rows of the same language and token added up; sorted by language, null last, and id."""
    grouped = pa.concat_tables(tables).group_by(["lang", "id"], use_threads=False).aggregate([("count", "sum")])
    table = pa.table([grouped["lang"], grouped["id"], grouped["count_sum"]], schema=TOKEN_SCHEMA)
    return table.sort_by([("lang", "ascending"), ("id", "ascending")]).combine_chunks()
