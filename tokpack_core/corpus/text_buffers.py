"""Arrow string arrays as one flat byte array and document offsets, and back, without copying the text.

Layout (Arrow columnar format, "Variable-size Binary"): buffers are validity, offsets (int32, or int64 for the large
types) and data; a slice shares its buffers with the whole array and only moves `offset` and `length`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

INT32_MAX = 2**31 - 1


def text_buffers(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The bytes of `texts` (string, binary or their large forms; not null) and where each document begins.

    Returns:
        data, uint8 [bytes], read-only and shared with `texts` (also when `texts` is a slice);
        offsets, int64 [documents + 1], the first one 0: document d is data[offsets[d]:offsets[d + 1]].

    Raises:
        TypeError: `texts` holds no strings. ValueError: an entry is null.
    """
    if pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type):
        width: type[np.signedinteger[Any]] = np.int64
    elif pa.types.is_string(texts.type) or pa.types.is_binary(texts.type):
        width = np.int32
    else:
        raise TypeError(f"expected an Arrow string or binary array, not {texts.type}")
    if texts.null_count:
        raise ValueError(f"{texts.null_count} of {len(texts)} entries are null: a document must have a text and an id")
    if len(texts) == 0:
        return read_only(np.empty(0, np.uint8)), np.zeros(1, np.int64)
    _, offset_buffer, data_buffer = texts.buffers()
    stored = np.frombuffer(offset_buffer, width, count=texts.offset + len(texts) + 1)
    offsets = stored[texts.offset :].astype(np.int64)
    data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    return read_only(data[offsets[0] : offsets[-1]]), offsets - offsets[0]


def read_only(array: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """A read-only view, so that every kernel is compiled for one kind of input: Arrow's buffers are read-only too."""
    view = array.view()
    view.flags.writeable = False
    return view


def text_array(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """An array of type `kind` (as `text_buffers` takes) over `data`, which it shares; offsets as `text_buffers` gives.

    Raises:
        OverflowError: `kind` has 32-bit offsets and the bytes need more.
    """
    large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not large and offsets[-1] > INT32_MAX:
        raise OverflowError(f"{offsets[-1]} bytes do not fit in one {kind} array")
    stored = np.ascontiguousarray(offsets, np.int64 if large else np.int32)
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(stored), pa.py_buffer(data)])
