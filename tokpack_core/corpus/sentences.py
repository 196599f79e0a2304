"""Documents that are lists of strings, each of which becomes a sequence, as Megatron's preprocess_data takes them.

A batch that has such a document holds lists in its column `text`, where any other document is a list of one string.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

SENTENCES = pa.list_(pa.string())
LARGE_SENTENCES = pa.large_list(pa.large_string())


def has_sentences(texts: pa.Array) -> bool:
    return bool(pa.types.is_list(texts.type) or pa.types.is_large_list(texts.type))


def as_sentences(texts: pa.Array) -> pa.Array:
    """The same documents as lists: strings [documents], which are shared, or lists, which stay."""
    if has_sentences(texts):
        return texts
    return pa.ListArray.from_arrays(pa.array(np.arange(len(texts) + 1, dtype=np.int32)), texts)


def sentences_of(texts: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The strings of all documents in a row, and [documents + 1] how many of them stand before each document."""
    if not has_sentences(texts):
        return texts, np.arange(len(texts) + 1)
    edges = texts.offsets.to_numpy().astype(np.int64)
    return texts.flatten(), edges - edges[0]


def text_sizes(texts: pa.Array) -> pa.Array:
    """Bytes of each document, [documents]; of a sentence that is null, none."""
    if not has_sentences(texts):
        return pc.binary_length(texts)
    sentences, edges = sentences_of(texts)
    ends = np.zeros(len(sentences) + 1, np.int64)
    np.cumsum(pc.fill_null(pc.binary_length(sentences), 0).to_numpy(), out=ends[1:])
    return pa.array(np.diff(ends[edges]))
