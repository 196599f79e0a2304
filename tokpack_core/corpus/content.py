"""Documents of text and image blocks: what a record may hold, and the columns that carry it.

A record's content is a list of blocks, `{"type": "text", "text": ...}` and `{"type": "image", "width": ..., "height":
...}` with sides in pixels; other keys of a block are passed over, except that the first of `id`, `image`, `path` and
`url` that is a string or an integer names the image. A string in the place of the list is one text block. Empty text
blocks are left out.

In a batch, `text` holds the text of all blocks of a document end to end, so that whoever wants text alone reads it as
ever, and `content` says how it is cut: a list of (mode, bytes of text, width, height, image), in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.corpus.problems import Fault
from tokpack_core.corpus.text_buffers import text_array, text_buffers

Int64 = npt.NDArray[np.int64]
Block = dict[str, Any]

TEXT = 0
IMAGE = 1
MAX_SIDE = 1 << 24
BLOCK = pa.struct(
    {"mode": pa.int8(), "bytes": pa.int64(), "width": pa.int64(), "height": pa.int64(), "image": pa.string()}
)
CONTENT = pa.list_(BLOCK)
NAMES = ("id", "image", "path", "url")
"""Keys that may name an image, in this order."""


def read_content(value: object, name: str) -> tuple[str, list[Block]]:
    """Text and blocks of one record; `name` is the key, for errors. Raises Fault when it is no content."""
    if isinstance(value, str):
        value = [{"type": "text", "text": value}]
    if not isinstance(value, list):
        found = "null or absent" if value is None else f"of type {type(value).__name__}"
        raise Fault("content is not a list of blocks", f"{name!r} is {found}")
    texts: list[str] = []
    blocks: list[Block] = []
    for number, block in enumerate(value):
        if not isinstance(block, Mapping):
            raise Fault("content block is not an object", f"block {number} of {name!r}")
        kind = block.get("type")
        if kind == "text":
            text = block.get("text")
            if not isinstance(text, str):
                raise Fault("text block without a string", f"block {number} of {name!r}")
            if text:
                texts.append(text)
                blocks.append({"mode": TEXT, "bytes": len(text.encode()), "width": 0, "height": 0, "image": None})
        elif kind == "image":
            width, height = (read_side(block, side, f"block {number} of {name!r}") for side in ("width", "height"))
            blocks.append({"mode": IMAGE, "bytes": 0, "width": width, "height": height, "image": image_name(block)})
        else:
            raise Fault("content block of unknown type", f"block {number} of {name!r} is {kind!r}, not text or image")
    return "".join(texts), blocks


def read_side(block: Mapping[str, object], side: str, where: str) -> int:
    value = block.get(side)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_SIDE:
        found = "absent" if side not in block else repr(value)[:40]
        raise Fault("image without a size", f"{where}: {side} is {found}, not pixels from 1 to {MAX_SIDE}")
    return value


def image_name(block: Mapping[str, object]) -> str | None:
    for name in NAMES:
        found = block.get(name)
        if isinstance(found, str) or (isinstance(found, int) and not isinstance(found, bool)):
            return str(found)
    return None


def has_content(batch: pa.RecordBatch) -> bool:
    return "content" in batch.schema.names


def column(content: pa.Array, name: str) -> npt.NDArray[np.integer]:
    """A number of every block of all documents, [blocks]."""
    return content.flatten().field(name).to_numpy(zero_copy_only=False)


def is_image(content: pa.Array) -> npt.NDArray[np.bool_]:
    """[blocks]"""
    return column(content, "mode") == IMAGE


def block_offsets(content: pa.Array) -> Int64:
    """Where the blocks of each document begin, and the last end: [documents + 1], from 0."""
    counts = pc.list_value_length(content).to_numpy(zero_copy_only=False)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def text_blocks(batch: pa.RecordBatch) -> pa.Array:
    """The text blocks of all documents as a string array that shares the memory of `text`, [text blocks]."""
    if not has_content(batch):
        return batch["text"]
    data, _ = text_buffers(batch["text"])
    sizes = column(batch["content"], "bytes")[~is_image(batch["content"])].astype(np.int64)
    return text_array(data, np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), pa.string())


def text_block_documents(content: pa.Array) -> Int64:
    """Document of each text block, [text blocks]."""
    offsets = block_offsets(content)
    return np.repeat(np.arange(offsets.size - 1), np.diff(offsets))[~is_image(content)]


def per_text_block(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column of the documents, repeated for each of their text blocks, [text blocks]."""
    return batch[name].take(pa.array(text_block_documents(batch["content"]))) if has_content(batch) else batch[name]


def with_text_blocks(content: pa.Array, texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The columns `text` and `content` when the text blocks become `texts`, [text blocks]."""
    data, edges = text_buffers(texts)
    blocks = content.flatten()
    offsets = block_offsets(content)
    sizes = np.zeros(len(blocks), np.int64)
    sizes[~is_image(content)] = np.diff(edges)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    columns = [blocks.field(name) if name != "bytes" else pa.array(sizes) for name in BLOCK.names]
    cut = pa.StructArray.from_arrays(columns, fields=list(BLOCK))
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), cut)
    return text_array(data, ends[offsets], pa.string()), lists.cast(CONTENT)


def identities(text: pa.Array, content: pa.Array) -> pa.Array:
    """One string a document, equal exactly for equal text, cuts, sizes and names of images: for ids."""
    blocks = content.flatten()
    sizes = [blocks.field(name).cast(pa.string()) for name in ("bytes", "width", "height")]
    named = pc.fill_null(blocks.field("image"), "")
    lengths = pc.binary_length(named).cast(pa.string())
    described = pc.binary_join_element_wise(*sizes, lengths, named, ":")
    lists = pa.ListArray.from_arrays(pa.array(block_offsets(content), pa.int32()), described)
    return pc.binary_join_element_wise(pc.binary_join(lists, ";"), text, "\n")
