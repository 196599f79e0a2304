"""`DOCS_PREFIX.segments.npy`: what Megatron's index has no field for, a row for each sequence of DOCS_PREFIX.idx.

    document          i4   number of the document within its pack, from 0; -1 for filled positions
    image_attention   i1   0 causal, 1 isolate_images, 2 isolate_modalities

One-dimensional .npy, little-endian, 5 bytes a sequence; it can be mapped. Lengths, packs and modes (0 text, 1 image)
stand in the index itself, where megatron-core reads them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from tokpack_core.errors import InputError
from tokpack_core.megatron.npy_stream import NpyStream
from tokpack_core.training.segments import ImageAttention

ROW = np.dtype([("document", "<i4"), ("image_attention", "i1")])
Rows = npt.NDArray[np.void]


def segments_path(docs_prefix: Path) -> Path:
    return docs_prefix.with_name(f"{docs_prefix.name}.segments.npy")


def segments_stream(docs_prefix: Path) -> NpyStream:
    """Takes rows of ROW, [sequences], in the order of the index."""
    return NpyStream(segments_path(docs_prefix), ROW)


def segment_rows(document: npt.NDArray[np.int32], image_attention: ImageAttention) -> Rows:
    """Rows of sequences, [sequences]; document is the number of each within its pack, FILL for what is filled."""
    rows = np.zeros(document.size, ROW)
    rows["document"] = document
    rows["image_attention"] = image_attention
    return rows


def read_segment_rows(docs_prefix: Path, sequences: int) -> Rows | None:
    """The mapped rows, [sequences], or None when the set has no such file.

    Raises InputError when the file is no such table or has another number of rows.
    """
    path = segments_path(docs_prefix)
    if not path.is_file():
        return None
    try:
        mapped = np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise InputError(f"{path} is no table of segments or is cut off: export the set again") from error
    if mapped.dtype != ROW or mapped.shape != (sequences,):
        raise InputError(
            f"{path} has {mapped.shape} rows of {mapped.dtype}, its index has {sequences} sequences: export both again"
        )
    return np.asarray(mapped)
