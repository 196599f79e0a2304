"""gigatoken as the engine of a byte-level BPE: the same ids as our encoder, which it is checked against, and faster.

Three things stand between it and exactness. It matches special tokens in text, so it is given a file without any. It
knows regexes by how they are spelled, so ours are respelled; other ones have no engine here. And its Unicode is newer
than that of the tokenizer's library, so texts with a character whose category changed since go to our encoder.

It remembers every pretoken that it ever met, about 90 bytes each. So that memory does not grow with the text, an engine
is given up for a new one when the process has grown by GROWTH an engine since it was begun. Threads that encode have an
engine each as long as a call lasts, and whatever one has learned is there for whichever comes next. A pretoken takes 22
bytes a byte while it is encoded, so documents that may have a long one go to our encoder as well.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any
from weakref import WeakSet

import awkward
import gigatoken
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.bpe.encoder import BpeModel
from tokpack_core.bpe.regex_syntax import Unsupported
from tokpack_core.bpe.unicode_categories import changed_characters
from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.tokenizers.byteification.token_bytes import BYTE_TO_CHARACTER, byte_level_name
from tokpack_core.tokenizers.character_search_kernels import documents_with, first_two_bytes
from tokpack_core.tokenizers.encoded import Encode, Encoded, encode_apart
from tokpack_core.tokenizers.huggingface.tokenizer_json import with_model
from tokpack_core.tokenizers.pretokenizers import PRETOKENIZERS

GROWTH = 256 * 2**20
"""Bytes of memory that the process may gain, for each engine in it, before one is begun anew; 155 MB of text in 26
languages took 300."""
MOST_TEXT = 2**28
"""Bytes of text for one engine where the process does not know its size."""
LONG = 2**22
"""Bytes of a document from which on it is ours to encode: a pretoken of that size takes 90 MB."""
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
OTHER_IDS = f"gigatoken {version('gigatoken')} gave other ids than the reference and is not used"
RESPELLED = {
    PRETOKENIZERS["cl100k"]: (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
        r"|\s+(?!\S)|\s+"
    )
}
"""Regexes that match the same text, by ours."""


@dataclass(eq=False)
class LearningEngine:
    """An engine, for one thread at a time.

    Attributes:
        least: the least memory that the process had since it was begun.
        text: bytes that it encoded.
    """

    engine: Any
    least: int
    text: int = 0


class LearningEngines:
    """Engines of one tokenizer.json, as many as threads encode at once, begun anew before they take too much memory."""

    def __init__(self, file: bytes) -> None:
        """Raises RuntimeError for a file that gigatoken cannot load."""
        self._file = file
        # Taking from a list and adding to it is one step each for other threads.
        self._idle: list[LearningEngine] = []
        self._alive: WeakSet[LearningEngine] = WeakSet()
        self.give_back(self.take())

    def encode(self, texts: pa.Array) -> Encoded:
        """`texts`: string array without nulls."""
        data, offsets = text_buffers(texts)
        strings = awkward.contents.ListOffsetArray(
            awkward.index.Index64(offsets),
            awkward.contents.NumpyArray(data, parameters={"__array__": "byte"}),
            parameters={"__array__": "bytestring"},
        )
        own = self.take()
        try:
            found = own.engine.encode_batch(awkward.Array(strings), parallel=False).layout
            own.text += data.size
        finally:
            self.give_back(own)
        borders = np.asarray(found.offsets.data)
        ids = np.asarray(found.content.data)[borders[0] : borders[-1]]
        return Encoded(ids.view(np.int32), borders - borders[0])

    def take(self) -> LearningEngine:
        """The one that was given back last, unless it takes too much memory, or a new one."""
        try:
            own = self._idle.pop()
        except IndexError:
            return self._begun()
        if not self._is_large(own):
            return own
        self._alive.discard(own)
        del own
        return self._begun()

    def give_back(self, own: LearningEngine) -> None:
        self._idle.append(own)

    def _begun(self) -> LearningEngine:
        own = LearningEngine(gigatoken.Tokenizer.from_json(self._file), resident_bytes())
        self._alive.add(own)
        return own

    def _is_large(self, own: LearningEngine) -> bool:
        size = resident_bytes()
        own.least = min(own.least, size)
        return size - own.least > GROWTH * len(self._alive) or (not size and own.text > MOST_TEXT)


class GigatokenEncoder:
    """Ids of ordinary text, in any number of threads."""

    def __init__(self, model: BpeModel, splits: tuple[str, ...], by_other: Encode) -> None:
        """`by_other` encodes what gigatoken may split differently, or takes much memory for.

        Raises Unsupported for what it cannot load.
        """
        self._by_other = by_other
        try:
            self.engines = LearningEngines(tokenizer_json(model, splits))
        except RuntimeError as error:
            raise Unsupported(str(error)) from None

    def encode(self, texts: pa.Array) -> Encoded:
        """`texts`: string array without nulls."""
        data, offsets = text_buffers(texts)
        newer = documents_with(data, offsets, *newer_characters())
        return encode_apart(texts, [newer, np.diff(offsets) >= LONG], self._by_other, self.engines.encode)


@cache
def newer_characters() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Those whose category is not the same in every version of Unicode in use, as `documents_with` takes them."""
    return changed_characters(), first_two_bytes(changed_characters())


def resident_bytes() -> int:
    """Memory of this process, or 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def without_special_tokens(description: dict[str, Any]) -> list[dict[str, Any]]:
    """The added tokens of a tokenizer.json that gigatoken is to know: special ones it would match in text."""
    return [token for token in description["added_tokens"] if not token["special"]]


def tokenizer_json(model: BpeModel, splits: tuple[str, ...]) -> bytes:
    """A tokenizer.json with the merges and regexes alone. Raises Unsupported for an alphabet that lacks bytes.

    Its lists are written by Arrow: as Python's objects they would take seven times the memory, and twice the time.
    """
    names = token_names(model)
    if splits == (PRETOKENIZERS["gpt2"],):
        pretokenizer = BYTE_LEVEL | {"use_regex": True}
    else:
        patterns = [{"Regex": RESPELLED.get(split, split)} for split in splits]
        steps = [{"type": "Split", "pattern": p, "behavior": "Isolated", "invert": False} for p in patterns]
        pretokenizer = {"type": "Sequence", "pretokenizers": [*steps, BYTE_LEVEL]}
    description: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": pretokenizer,
        "post_processor": None,
        "decoder": BYTE_LEVEL,
    }
    settings: dict[str, Any] = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": bool(model.whole),
    }
    escaped = pc.replace_substring(pc.replace_substring(names, "\\", "\\\\"), '"', '\\"')
    numbers = pa.array(np.flatnonzero(names.is_valid().to_numpy(zero_copy_only=False)))
    order = np.argsort(model.rank, kind="stable")
    left, right = (escaped.take(pa.array(side[order])) for side in (model.left, model.right))
    vocabulary = written('"', escaped.drop_null(), '":', numbers.cast(pa.string()))
    merges = written('["', left, '","', right, '"]')
    lists = b"".join([b',"vocab":{', vocabulary, b'},"merges":[', merges, b"]}"])
    return with_model(description, orjson.dumps(settings)[:-1] + lists)


def written(*parts: str | pa.Array) -> bytes:
    """Strings and arrays of strings one beside the other, a comma between rows."""
    data, _ = text_buffers(pc.binary_join_element_wise(*parts, ",", ""))
    return data[:-1].tobytes()


def token_names(model: BpeModel) -> pa.Array:
    """By id what the file calls a token, in the byte-level alphabet; null for ids that the merges do not name."""
    if model.byte_ids.min() < 0:
        raise Unsupported("bytes without a token")
    numbers = np.concatenate([model.byte_ids, model.left, model.right, model.token])
    largest = max([int(numbers.max()), *(number for _, number in model.whole)])
    names: list[str | None] = [None] * (largest + 1)
    for byte, number in enumerate(model.byte_ids.tolist()):
        names[number] = BYTE_TO_CHARACTER[byte]
    order = np.argsort(model.rank, kind="stable")
    for left, right, token in zip(
        *(side[order].tolist() for side in (model.left, model.right, model.token)), strict=True
    ):
        first, second = names[left], names[right]
        if first is None or second is None:
            raise Unsupported("a merge of what is no token yet")
        if names[token] is None:
            names[token] = first + second
    for content, number in model.whole:
        names[number] = byte_level_name(content)
    return pa.array(names, pa.string())
