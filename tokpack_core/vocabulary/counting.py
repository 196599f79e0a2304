"""Counts text batch by batch: by encoding it, or for a byte-level BPE by its different pretokens.

A pretoken's ids depend on nothing but itself, so the text of each language is split and its pretokens counted, and each
different one is merged once at the end. This is faster than encoding, and the same merges also tell which tokens are
only steps on the way to others, and what smaller sizes of the vocabulary would count (`merge_counts`).

Memory: different pretokens are kept up to MOST_WORDS bytes; at the limit they are merged and forgotten.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tokpack_core.bpe.automaton import compile_splits
from tokpack_core.bpe.pretoken_counts import as_counts, count_array
from tokpack_core.bpe.word_table import WordTable
from tokpack_core.tokenizers.byte_bpe.engine import ExactBpe
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.modular.sub_tokenizers import sub_tokenizers
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.tiktoken.ranks import TiktokenTokenizer
from tokpack_core.vocabulary.counts import (
    TOKEN_SCHEMA,
    EncodedDocuments,
    TokenCounts,
    count,
    language_rows,
    sum_by_token,
    sum_counts,
)
from tokpack_core.vocabulary.merge_counts import MergeReplay

MOST_WORDS = 256 * 2**20
MOST_ROWS = 2**22
"""Rows of languages and tokens that batches may hold before they are added up."""


class TextCounter(Protocol):
    """Counts that grow by batches of documents."""

    def add(self, texts: pa.Array, langs: pa.Array) -> None:
        """texts: string, no nulls; langs: string or null, as many."""
        ...

    def total(self) -> TokenCounts:
        """The counts of all that was added."""
        ...


def text_counter(tokenizer: Tokenizer, by_language: bool = False) -> TextCounter:
    """The fastest exact counter for a tokenizer, or for the sub-tokenizers of its languages."""
    if by_language:
        return LanguageCounter(tokenizer)
    exact = exact_bpe(tokenizer)
    return EncodingCounter(tokenizer) if exact is None else PretokenCounter(exact, tokenizer.vocab_size)


def exact_bpe(tokenizer: Tokenizer) -> ExactBpe | None:
    """The merges and regexes of a byte-level BPE, if the tokenizer is one that our encoder follows exactly."""
    return tokenizer.exact_bpe() if isinstance(tokenizer, HuggingFaceTokenizer | TiktokenTokenizer) else None


class EncodingCounter:
    """Encodes every document."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._counts = [TokenCounts.zero(tokenizer.vocab_size)]
        self._rows = 0

    def add(self, texts: pa.Array, langs: pa.Array) -> None:
        self.add_encoded(self._tokenizer.encode(texts), texts, langs)

    def add_encoded(self, encoded: EncodedDocuments, texts: pa.Array, langs: pa.Array) -> None:
        """encoded: what the tokenizer makes of the texts."""
        self._counts.append(count(encoded, texts, langs, self._tokenizer.vocab_size))
        self._rows += len(self._counts[-1].by_language)
        if self._rows > MOST_ROWS:
            self.total()

    def total(self) -> TokenCounts:
        total = sum_counts(self._counts)
        self._counts, self._rows = [total], 0
        return total


class LanguageCounter:
    """Encodes every document with its language's sub-tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizers = sub_tokenizers(tokenizer)
        self._counter = EncodingCounter(tokenizer)

    def add(self, texts: pa.Array, langs: pa.Array) -> None:
        self._counter.add_encoded(self._tokenizers.encode(texts, langs), texts, langs)

    def total(self) -> TokenCounts:
        return self._counter.total()


class PretokenCounter:
    """Counts pretokens by language, and merges each different one once."""

    def __init__(self, exact: ExactBpe, vocab_size: int) -> None:
        self._exact = exact
        self._automaton = compile_splits(exact.splits, "16.0")
        self._replay = MergeReplay(exact.model, *exact.encoder.tables, vocab_size)
        self._tables: dict[str | None, WordTable] = {}
        self._counts = TokenCounts.zero(vocab_size)

    def add(self, texts: pa.Array, langs: pa.Array) -> None:
        library = self._exact.for_library(texts)
        if library is not None:
            apart, own = pa.array(library), pa.array(~library)
            others = texts.filter(apart)
            encoded = self._exact.by_library(others)
            self._counts += count(encoded, others, langs.filter(apart), self._counts.vocab_size)
            texts, langs = texts.filter(own), langs.filter(own)
        rows = language_rows(texts, langs, np.zeros(len(texts), np.int64))
        self._counts += TokenCounts.of(TOKEN_SCHEMA.empty_table(), rows, self._counts.vocab_size)
        words = self._exact.prepared(texts)
        for lang in rows["lang"].to_pylist():
            table = self._tables.setdefault(lang, WordTable())
            count_array(table, words.filter(of_language(langs, lang)) if len(rows) > 1 else words, self._automaton)
        if sum(table.size for table in self._tables.values()) > MOST_WORDS:
            self._merge_words()

    def total(self) -> TokenCounts:
        self._merge_words()
        counts = self._counts
        return TokenCounts(
            counts.tokens, with_tokens(counts.languages, counts.by_language), counts.by_language, self._replay.counts
        )

    def _merge_words(self) -> None:
        parts = [as_rows(lang, self._replay.add(as_counts(table))) for lang, table in self._tables.items()]
        self._tables.clear()
        if parts:
            by_language = sum_by_token([self._counts.by_language, *parts])
            self._counts = TokenCounts.of(by_language, self._counts.languages, self._counts.vocab_size)


def of_language(langs: pa.Array, lang: str | None) -> pa.Array:
    return pc.is_null(langs) if lang is None else pc.fill_null(pc.equal(langs, lang), False)


def as_rows(lang: str | None, counts: NDArray[np.int64]) -> pa.Table:
    """Counts by id as rows of one language, of TOKEN_SCHEMA."""
    seen = np.flatnonzero(counts)
    columns = [pa.array([lang], pa.string()).take(pa.array(np.zeros(len(seen), np.int64)))]
    return pa.table([*columns, pa.array(seen, pa.int32()), pa.array(counts[seen])], schema=TOKEN_SCHEMA)


def with_tokens(languages: pa.Table, by_language: pa.Table) -> pa.Table:
    """Rows of LANGUAGE_SCHEMA whose tokens are the sums of `by_language`."""
    sums = by_language.group_by("lang", use_threads=False).aggregate([("count", "sum")]).to_pydict()
    tokens = dict(zip(sums["lang"], sums["count_sum"], strict=True))
    column = pa.array([tokens.get(lang, 0) for lang in languages["lang"].to_pylist()], pa.int64())
    return languages.set_column(languages.schema.get_field_index("tokens"), languages.schema.field("tokens"), column)
