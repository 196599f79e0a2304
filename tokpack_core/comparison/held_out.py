"""Tokens of every held-out document by every tokenizer, with its own encoder and with that of the fewest tokens.

A modular tokenizer is counted as it is used: a document is encoded by the sub-tokenizer of its language, by the whole
where there is none. All documents by the whole vocabulary are one more encoder of the same vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tokpack_core.comparison.chinese_script import with_chinese_scripts
from tokpack_core.comparison.unknown import special_flags, unknown_tokens
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.minimum_cost.encoding import MinimumCostEncoder
from tokpack_core.tokenizers.modular.sub_tokenizers import SubTokenizers, languages_of
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.vocabulary.counting import EncodingCounter, text_counter
from tokpack_core.vocabulary.counts import TokenCounts, count_words
from tokpack_core.vocabulary.fertility import UNDETERMINED


@dataclass(frozen=True)
class Candidate:
    """A tokenizer that takes part, by a name that is its own."""

    name: str
    tokenizer: Tokenizer

    @cached_property
    def sub_tokenizers(self) -> SubTokenizers | None:
        """None for a tokenizer that is not modular."""
        return SubTokenizers(self.tokenizer) if languages_of(self.tokenizer) else None

    def encode(self, texts: pa.Array, langs: pa.Array) -> Encoded:
        """langs: strings or null, as many as texts; those of a modular tokenizer choose the sub-tokenizer."""
        if self.sub_tokenizers is None:
            return self.tokenizer.encode(texts)
        return self.sub_tokenizers.encode(texts, langs)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Measures of documents, each an array [documents]: `lang` string, the others int64.

    tokens: by name of the candidate; unknown: those of them that stand for text that it has no tokens for; whole:
    tokens by the whole vocabulary, of modular tokenizers only; fewest: tokens with the minimum-cost encoder over the
    same vocabulary, where that covers all of the text; counts: of each candidate's tokens.
    """

    lang: pa.Array
    bytes: NDArray[np.int64]
    characters: NDArray[np.int64]
    words: NDArray[np.int64]
    tokens: dict[str, NDArray[np.int64]]
    unknown: dict[str, NDArray[np.int64]]
    whole: dict[str, NDArray[np.int64]]
    fewest: dict[str, NDArray[np.int64]]
    counts: dict[str, TokenCounts]

    @property
    def languages(self) -> list[str]:
        """Most text first."""
        grouped = pa.table({"lang": self.lang, "bytes": self.bytes}).group_by("lang", use_threads=False)
        totals = grouped.aggregate([("bytes", "sum")]).sort_by([("bytes_sum", "descending"), ("lang", "ascending")])
        names: list[str] = totals["lang"].to_pylist()
        return names

    def of_language(self, lang: str) -> NDArray[np.bool_]:
        """Which documents: bool [documents]."""
        found: NDArray[np.bool_] = pc.equal(self.lang, lang).to_numpy(zero_copy_only=False)
        return found


def measure(candidates: Sequence[Candidate], batches: Iterator[pa.RecordBatch]) -> HeldOut:
    """Reads the documents once. Memory: 24 bytes a document and candidate, 32 if modular, besides one batch.

    Raises InputError where there is no text, or a candidate has no token for any of it.
    """
    meters = [Meter(candidate) for candidate in candidates]
    languages, sizes = [], []
    for batch in batches:
        texts, langs = batch["text"], pc.fill_null(batch["lang"], UNDETERMINED)
        languages.append(with_chinese_scripts(langs, texts))
        sizes.append([pc.binary_length(texts).to_numpy(), pc.utf8_length(texts).to_numpy(), count_words(texts)])
        for meter in meters:
            meter.add(texts, batch["lang"])
    if not sizes or not any(column[0].any() for column in sizes):
        raise InputError("there is no text to compare tokenizers on: give files that hold some")
    for meter in meters:
        if not any(lengths.any() for lengths in meter.tokens):
            raise InputError(f"{meter.name} has no token for any of this text: give files that hold words")
    text_bytes, characters, words = (np.concatenate(column).astype(np.int64) for column in zip(*sizes, strict=True))
    named = {candidate.name: meter for candidate, meter in zip(candidates, meters, strict=True)}
    return HeldOut(
        lang=pa.concat_arrays(languages),
        bytes=text_bytes,
        characters=characters,
        words=words,
        tokens={name: np.concatenate(meter.tokens) for name, meter in named.items()},
        unknown={name: np.concatenate(meter.unknown) for name, meter in named.items()},
        whole={name: np.concatenate(meter.whole) for name, meter in named.items() if meter.whole},
        fewest={name: np.concatenate(meter.fewest) for name, meter in named.items() if not meter.uncovered},
        counts={name: meter.counter.total() for name, meter in named.items()},
    )


class Meter:
    """What is added up for one tokenizer."""

    def __init__(self, candidate: Candidate) -> None:
        tokenizer = candidate.tokenizer
        self._candidate = candidate
        self._minimum = MinimumCostEncoder(tokenizer.vocabulary())
        self.counter = EncodingCounter(tokenizer) if candidate.sub_tokenizers else text_counter(tokenizer)
        self._special = special_flags(tokenizer)
        self.tokens: list[NDArray[np.int64]] = []
        self.unknown: list[NDArray[np.int64]] = []
        self.whole: list[NDArray[np.int64]] = []
        self.fewest: list[NDArray[np.int64]] = []

    @property
    def name(self) -> str:
        return self._candidate.name

    @property
    def uncovered(self) -> int:
        return self._minimum.uncovered

    def add(self, texts: pa.Array, langs: pa.Array) -> None:
        encoded = self._candidate.encode(texts, langs)
        if isinstance(self.counter, EncodingCounter):
            self.counter.add_encoded(encoded, texts, langs)
        else:
            self.counter.add(texts, langs)
        self.tokens.append(encoded.lengths)
        self.unknown.append(unknown_tokens(encoded, self._special))
        if self._candidate.sub_tokenizers:
            self.whole.append(self._candidate.tokenizer.encode(texts).lengths)
        self.fewest.append(self._minimum.encode(texts).lengths)
