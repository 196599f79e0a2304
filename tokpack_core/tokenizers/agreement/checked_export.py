"""A trained tokenizer's files, compared when they are written with what other libraries read from them.

`tokenizer.json` is opened with Hugging Face tokenizers and `tokenizer.model` with sentencepiece, as they are, without
our settings. On the first MiB of the training sample (of little text, an eighth) they must give our ids and our text,
the same vocabulary size and the same special tokens; the first difference refuses the tokenizer. Left out are texts
that hold the string of a special token, which those libraries match and we do not, and, for SentencePiece, a literal
U+2581. A `litetoken` tokenizer holds the files of its base, and is not what other libraries see in them.

A byte-level BPE of one regex also gets a folder `tiktoken`, if tiktoken gives the same ids, text, size and special
tokens from it; else the manifest says why there is none.

A SentencePiece tokenizer also gets a folder `transformers`, for AutoTokenizer and Megatron's HuggingFaceTokenizer (see
`sentencepiece/export`). Unigram's scores are summed up by sentencepiece in 32 bits, by Hugging Face tokenizers in 64:
the ids must be the same of all documents in which no sum is rounded (`sentencepiece/exact_scores`: ordinary text up to
some 900 kB). Longer ones are counted (`rounded_sums`), and how many documents and tokens of them differ and how the
first begins; if it is more than one token in a thousand, or anything else differs, the folder is left out.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sentencepiece
from tokenizers import Tokenizer as Engine

from tokpack_core.errors import InputError
from tokpack_core.tokenizers.agreement.normalization import differing_documents
from tokpack_core.tokenizers.byteification.token_bytes import META_SPACE
from tokpack_core.tokenizers.encoded import Bools, Encoded, from_lists
from tokpack_core.tokenizers.huggingface import model as huggingface
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer, split_documents
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


@dataclass(frozen=True)
class Reader:
    """A tokenizer file as another library opens it."""

    vocab_size: int
    token_id: Callable[[str], int | None]
    encode: Callable[[list[str]], list[list[int]]]
    decode: Callable[[list[list[int]]], list[str]]


def save_checked(tokenizer: Tokenizer, folder: Path, texts: pa.Array) -> dict[str, Any]:
    """Save a trained tokenizer into an existing folder; returns what was compared.

    Raises InputError if another library reads something else from its files, with the first text that shows it.
    """
    tokenizer.save(folder)
    compared = without_strings(texts, list(special_strings(tokenizer).values()))
    figures: dict[str, Any] = {"documents": len(compared), "left_out": len(texts) - len(compared)}
    if isinstance(tokenizer, SentencePieceTokenizer):
        compared = without_strings(compared, [META_SPACE])
        figures = {"documents": len(compared), "left_out": len(texts) - len(compared)}
        figures |= save_sentencepiece(tokenizer, folder, compared)
    elif tokenizer.family != "litetoken" and (folder / huggingface.FILE_NAME).is_file():
        ours = tokenizer.encode(compared)
        reader = by_tokenizers(folder / huggingface.FILE_NAME)
        refuse(first_difference(reader, tokenizer, compared, ours), tokenizer)
        if isinstance(tokenizer, HuggingFaceTokenizer) and tokenizer.family == "byte_bpe":
            figures["tiktoken"] = saved_for_tiktoken(tokenizer, folder / tiktoken_export.FOLDER, compared, ours)
    return figures


def save_sentencepiece(tokenizer: SentencePieceTokenizer, folder: Path, texts: pa.Array) -> dict[str, Any]:
    """Compares the model with what sentencepiece reads from it, and adds its translation if that is good."""
    ours = tokenizer.encode(texts)
    exact = tokenizer.sums_exactly(ours)
    figures: dict[str, Any] = {} if exact.all() else {"rounded_sums": int((~exact).sum())}
    read = differences(by_sentencepiece(folder / sentencepiece_model.FILE_NAME), tokenizer, texts, ours, exact)
    if not read["written"]:
        refuse(read["first_difference"], tokenizer)
    if read["differing_documents"]:
        figures["sentencepiece"] = read
    tokenizer.save_for_transformers(folder / FOR_TRANSFORMERS)
    translated = folder / FOR_TRANSFORMERS / huggingface.FILE_NAME
    figures["transformers"] = differences(by_tokenizers(translated), tokenizer, texts, ours, exact)
    if not figures["transformers"]["written"]:
        shutil.rmtree(folder / FOR_TRANSFORMERS)
    return figures


def saved_for_tiktoken(tokenizer: HuggingFaceTokenizer, folder: Path, texts: pa.Array, ours: Encoded) -> dict[str, Any]:
    """Whether there are files for tiktoken, which give all ids of the sample, or why there are none."""
    difference = tiktoken_export.why_not(tokenizer)
    if difference is None:
        tiktoken_export.save_for_tiktoken(tokenizer, folder)
        difference = first_difference(by_tiktoken(folder), tokenizer, texts, ours)
        if difference is not None:
            shutil.rmtree(folder)
    return {"written": difference is None} | ({"reason": difference} if difference else {})


def refuse(difference: str | None, tokenizer: Tokenizer) -> None:
    if difference is not None:
        raise InputError(
            f"the files of this {tokenizer.family} tokenizer mean something else to the library that opens them: "
            f"{difference}; it is not published: choose other special tokens or another pretokenizer"
        )


def special_strings(tokenizer: Tokenizer) -> dict[str, str]:
    """role → string"""
    table = tokenizer.vocabulary()
    strings = dict(zip(table["id"].to_pylist(), table["token"].to_pylist(), strict=True))
    return {role: strings[token].decode() for role, token in tokenizer.special_tokens.items()}


def without_strings(texts: pa.Array, strings: list[str]) -> pa.Array:
    held = np.zeros(len(texts), bool)
    for string in strings:
        held |= pc.match_substring(texts, string).to_numpy(zero_copy_only=False)
    return texts.filter(pa.array(~held))


def first_difference(reader: Reader, tokenizer: Tokenizer, texts: pa.Array, ours: Encoded) -> str | None:
    """What the reader sees that we do not, in words; None if nothing. `ours`: the ids of the texts."""
    if reader.vocab_size != tokenizer.vocab_size:
        return f"{reader.vocab_size} entries, not {tokenizer.vocab_size}"
    for role, string in special_strings(tokenizer).items():
        if reader.token_id(string) != tokenizer.special_tokens[role]:
            return f"id {reader.token_id(string)} for {string!r} ({role}), not {tokenizer.special_tokens[role]}"
    theirs = from_lists(reader.encode(texts.to_pylist()))
    for document in differing_documents(ours, theirs):
        return f"other ids for the text that begins {texts[document].as_py()[:80]!r}"
    restored = reader.decode([ids.tolist() for ids in split_documents(ours)])
    for text, expected in zip(restored, tokenizer.decode(ours).to_pylist(), strict=True):
        if text != expected:
            return f"other text for the ids of {expected[:80]!r}"
    return None


def differences(reader: Reader, tokenizer: Tokenizer, texts: pa.Array, ours: Encoded, exact: Bools) -> dict[str, Any]:
    """How far a reader agrees: documents with other ids, the first difference, and whether it is good enough.

    `exact`: documents that must have the same ids.
    """
    theirs = from_lists(reader.encode(texts.to_pylist()))
    other = differing_documents(ours, theirs)
    tokens = sum(differing_tokens(ours, theirs, document) for document in other)
    same = texts.take(pa.array(sorted(set(range(len(texts))) - set(other)), pa.int64()))
    elsewhere = first_difference(reader, tokenizer, same, tokenizer.encode(same))
    first = elsewhere or (f"the text that begins {texts[other[0]].as_py()[:80]!r}" if other else None)
    good = elsewhere is None and not exact[other].any() and tokens <= MOST_DIFFERING * ours.ids.size
    differing = {"differing_documents": len(other), "differing_tokens": tokens, "first_difference": first}
    return differing | {"written": good}


def differing_tokens(one: Encoded, other: Encoded, document: int) -> int:
    """Places with other ids; of documents of different lengths all of them."""
    ids, other_ids = (
        encoded.ids[encoded.offsets[document] : encoded.offsets[document + 1]] for encoded in (one, other)
    )
    return int((ids != other_ids).sum()) if ids.size == other_ids.size else max(ids.size, other_ids.size)


def by_tokenizers(file: Path) -> Reader:
    # The library's own reading raises a bare Exception for a file that cannot be read.
    engine = Engine.from_buffer(file.read_bytes())
    return Reader(
        engine.get_vocab_size(),
        engine.token_to_id,
        lambda texts: [encoding.ids for encoding in engine.encode_batch_fast(texts, add_special_tokens=False)],
        lambda lists: engine.decode_batch(lists, skip_special_tokens=False),
    )


def by_tiktoken(folder: Path) -> Reader:
    encoding = tiktoken_export.open_with_tiktoken(folder)
    return Reader(encoding.n_vocab, encoding.encode_single_token, encoding.encode_ordinary_batch, encoding.decode_batch)


def by_sentencepiece(file: Path) -> Reader:
    processor = sentencepiece.SentencePieceProcessor(model_proto=file.read_bytes())
    return Reader(processor.vocab_size(), processor.piece_to_id, processor.encode, processor.decode)
