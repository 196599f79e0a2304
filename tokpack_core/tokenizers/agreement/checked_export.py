"""A trained tokenizer's files, compared when they are written with what other libraries read from them.

`tokenizer.json` is opened with Hugging Face tokenizers and `tokenizer.model` with sentencepiece, as they are, without
our settings. On the first MiB of the training sample (of little text, an eighth) they must give our ids and our text,
the same vocabulary size and the same special tokens; the first difference refuses the tokenizer. Texts are cut where
they hold the string of a special token, which those libraries match and we do not, and, for SentencePiece, a literal
U+2581: what stands between is compared. A `litetoken` tokenizer holds the files of its base, and is not what other
libraries see in them.

`transformers.AutoTokenizer` opens the folder too, in a process of its own (see `auto_tokenizer`), and must also know
the special tokens by their roles: of MUCH_TEXT, or on request. The manifest says whether it was compared, or why not.

A byte-level BPE of one regex also gets a folder `tiktoken`, if tiktoken gives the same ids, text, size and special
tokens from it; else the manifest says why there is none.

A SentencePiece tokenizer also gets a folder `transformers`, for AutoTokenizer and Megatron's HuggingFaceTokenizer (see
`sentencepiece/export`). Unigram's scores are summed up by sentencepiece in 32 bits, by Hugging Face tokenizers in 64:
the ids must be the same of all documents in which no sum is rounded (`sentencepiece/exact_scores`: ordinary text up to
some 900 kB). Longer ones are counted (`rounded_sums`), and how many documents and tokens of them differ and how the
first begins; if it is more than one token in a thousand, or anything else differs, the folder is left out.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.errors import InputError
from tokpack_core.tokenizers.agreement.auto_tokenizer import compare_with_auto_tokenizer
from tokpack_core.tokenizers.agreement.normalization import differing_documents
from tokpack_core.tokenizers.agreement.readers import (
    Expected,
    Reader,
    by_sentencepiece,
    by_tiktoken,
    by_tokenizers,
    expected_of,
    first_difference,
    other_entry,
    other_text,
    special_strings,
)
from tokpack_core.tokenizers.byteification.token_bytes import META_SPACE
from tokpack_core.tokenizers.encoded import Bools, Encoded, from_lists
from tokpack_core.tokenizers.encoding_errors import EncodingError
from tokpack_core.tokenizers.huggingface import model as huggingface
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.sentencepiece import model as sentencepiece_model
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer
from tokpack_core.tokenizers.text_batches import text_batches
from tokpack_core.tokenizers.tiktoken import export as tiktoken_export

SAMPLE_BYTES = 2**20
LEAST_SAMPLE = 2**17
SAMPLE_SHARE = 8
"""Of little text an eighth is compared, since other libraries take longer for it than its training does."""
FOR_TRANSFORMERS = "transformers"
MOST_DIFFERING = 0.001
MUCH_TEXT = 2**21
"""Bytes of training text from which AutoTokenizer opens the files too: training then takes longer than that."""


class FirstTexts:
    """Passes on a stream of string arrays, and keeps the first of them."""

    def __init__(self, texts: Iterable[pa.Array] = (), limit: int = SAMPLE_BYTES) -> None:
        self._texts = texts
        self._limit = limit
        self._kept: list[pa.Array] = []
        self._bytes = self._seen = 0

    def __iter__(self) -> Iterator[pa.Array]:
        for array in self._texts:
            self.keep(array)
            yield array

    def keep(self, array: pa.Array) -> None:
        self._seen += int(pc.sum(pc.binary_length(array)).as_py() or 0)
        if self._bytes < self._limit and len(array):
            first = next(text_batches(array, self._limit - self._bytes)).cast(pa.large_string())
            self._kept.append(first)
            self._bytes += int(pc.sum(pc.binary_length(first)).as_py())

    def kept(self) -> pa.Array:
        """About so many bytes of text, and of less than eight times as many an eighth; a document is never cut."""
        whole = pa.concat_arrays([pa.array([], pa.large_string()), *self._kept])
        limit = min(self._limit, max(self._seen // SAMPLE_SHARE, LEAST_SAMPLE))
        return next(text_batches(whole, limit), whole)


class FirstTextsByDomain:
    """The same for a stream of string arrays and their domains: the first of each."""

    def __init__(self, texts: Iterable[tuple[str, pa.Array]], domains: Collection[str]) -> None:
        self._texts = texts
        self._firsts = {domain: FirstTexts(limit=SAMPLE_BYTES // len(domains)) for domain in domains}

    def __iter__(self) -> Iterator[tuple[str, pa.Array]]:
        for domain, array in self._texts:
            if domain in self._firsts:
                self._firsts[domain].keep(array)
            yield domain, array

    def kept(self) -> pa.Array:
        return pa.concat_arrays([first.kept() for first in self._firsts.values()])


def save_checked(
    tokenizer: Tokenizer, folder: Path, texts: pa.Array, auto_tokenizer: bool | None = None
) -> dict[str, Any]:
    """Save a trained tokenizer into an existing folder; returns what was compared.

    `auto_tokenizer`: whether transformers open it too; None: if it was trained on MUCH_TEXT.
    Raises InputError if another library reads something else from its files, with the first text that shows it.
    """
    tokenizer.save(folder)
    if auto_tokenizer is None:
        auto_tokenizer = tokenizer.training.get("bytes", 0) >= MUCH_TEXT
    held = list(special_strings(tokenizer).values())
    if isinstance(tokenizer, SentencePieceTokenizer):
        compared, cut = cut_at_strings(texts, [*held, META_SPACE])
        figures = save_sentencepiece(tokenizer, folder, compared, auto_tokenizer)
    else:
        compared, cut = cut_at_strings(texts, held)
        figures = compare_stock_files(tokenizer, folder, compared, auto_tokenizer)
    return {"documents": len(texts), "cut_at_special_tokens": cut} | figures


def compare_stock_files(tokenizer: Tokenizer, folder: Path, texts: pa.Array, auto_tokenizer: bool) -> dict[str, Any]:
    if tokenizer.family == "litetoken" or not (folder / huggingface.FILE_NAME).is_file():
        return {"auto_tokenizer": {"compared": False, "reason": f"only tokpack opens a {tokenizer.family} tokenizer"}}
    expected = expected_of(tokenizer, texts, tokenizer.encode(texts))
    refuse(first_difference(by_tokenizers(folder / huggingface.FILE_NAME), expected), tokenizer)
    figures = {"auto_tokenizer": compare_by_auto_tokenizer(folder, expected, tokenizer, auto_tokenizer)}
    if isinstance(tokenizer, HuggingFaceTokenizer) and tokenizer.family == "byte_bpe":
        figures["tiktoken"] = saved_for_tiktoken(tokenizer, folder / tiktoken_export.FOLDER, expected)
    return figures


def compare_by_auto_tokenizer(folder: Path, expected: Expected, tokenizer: Tokenizer, wanted: bool) -> dict[str, Any]:
    if not wanted:
        return {"compared": False, "reason": f"trained on less than {MUCH_TEXT:,} bytes of text"}
    found = compare_with_auto_tokenizer(folder, expected)
    refuse(found.get("difference"), tokenizer)
    return found


def save_sentencepiece(
    tokenizer: SentencePieceTokenizer, folder: Path, texts: pa.Array, auto_tokenizer: bool
) -> dict[str, Any]:
    """Compares the model with what sentencepiece reads from it, and adds its translation if that is good."""
    ours = tokenizer.encode(texts)
    exact, expected = tokenizer.sums_exactly(ours), expected_of(tokenizer, texts, ours)
    figures: dict[str, Any] = {} if exact.all() else {"rounded_sums": int((~exact).sum())}
    read = differences(by_sentencepiece(folder / sentencepiece_model.FILE_NAME), expected, exact)
    if not read["written"]:
        refuse(read["first_difference"], tokenizer)
    if read["differing_documents"]:
        figures["sentencepiece"] = read
    tokenizer.save_for_transformers(folder / FOR_TRANSFORMERS)
    translated = folder / FOR_TRANSFORMERS / huggingface.FILE_NAME
    figures["transformers"] = differences(by_tokenizers(translated), expected, exact)
    if not figures["transformers"]["written"]:
        shutil.rmtree(folder / FOR_TRANSFORMERS)
        return figures | {"auto_tokenizer": {"compared": False, "reason": f"there is no folder {FOR_TRANSFORMERS}"}}
    opened = compare_by_auto_tokenizer(folder / FOR_TRANSFORMERS, expected.of(exact), tokenizer, auto_tokenizer)
    return figures | {"auto_tokenizer": opened}


def saved_for_tiktoken(tokenizer: HuggingFaceTokenizer, folder: Path, expected: Expected) -> dict[str, Any]:
    """Whether there are files for tiktoken, which give all ids of the sample, or why there are none."""
    difference = tiktoken_export.why_not(tokenizer)
    if difference is None:
        tiktoken_export.save_for_tiktoken(tokenizer, folder)
        try:
            difference = first_difference(by_tiktoken(folder), expected)
        except EncodingError as error:
            difference = str(error)
        if difference is not None:
            shutil.rmtree(folder)
    return {"written": difference is None} | ({"reason": difference} if difference else {})


def refuse(difference: str | None, tokenizer: Tokenizer) -> None:
    if difference is not None:
        raise InputError(
            f"the files of this {tokenizer.family} tokenizer mean something else to the library that opens them: "
            f"{difference}; it is not published: choose other special tokens or another pretokenizer"
        )


def cut_at_strings(texts: pa.Array, strings: list[str]) -> tuple[pa.Array, int]:
    """What stands between the strings, of each text that holds one; and how many texts do."""
    if not strings:
        return texts, 0
    pattern = "|".join(re.escape(string) for string in sorted(strings, key=len, reverse=True))
    pieces = pc.split_pattern_regex(texts, pattern)
    cut = pc.sum(pc.greater(pc.list_value_length(pieces), 1)).as_py() or 0
    between = pieces.flatten()
    return between.filter(pc.greater(pc.binary_length(between), 0)), cut


def differences(reader: Reader, expected: Expected, exact: Bools) -> dict[str, Any]:
    """How far a reader agrees: documents with other ids, the first difference, and whether it is good enough.

    `exact`: documents that must have the same ids.
    """
    theirs = from_lists(reader.encode(expected.texts.to_pylist()))
    other = differing_documents(expected.ids, theirs)
    tokens = sum(differing_tokens(expected.ids, theirs, document) for document in other)
    same = np.ones(len(expected.texts), np.bool_)
    same[other] = False
    elsewhere = other_entry(reader, expected) or other_text(reader, expected.of(same))
    first = elsewhere or (f"the text that begins {expected.texts[other[0]].as_py()[:80]!r}" if other else None)
    good = elsewhere is None and not exact[other].any() and tokens <= MOST_DIFFERING * expected.ids.ids.size
    differing = {"differing_documents": len(other), "differing_tokens": tokens, "first_difference": first}
    return differing | {"written": good}


def differing_tokens(one: Encoded, other: Encoded, document: int) -> int:
    """Places with other ids; of documents of different lengths all of them."""
    ids, other_ids = (
        encoded.ids[encoded.offsets[document] : encoded.offsets[document + 1]] for encoded in (one, other)
    )
    return int((ids != other_ids).sum()) if ids.size == other_ids.size else max(ids.size, other_ids.size)
