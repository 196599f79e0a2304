"""`DOCS_PREFIX.segments.npy`: what Megatron's index has no field for, a row for each sequence of DOCS_PREFIX.idx.

    document          i4   number of the document within its pack, from 0; -1 for filled positions
    image_attention   i1   0 causal, 1 isolate_images, 2 isolate_modalities

One-dimensional .npy, little-endian, 5 bytes a sequence; it can be mapped. Lengths, packs and modes (0 text, 1 image)
stand in the index itself, where megatron-core reads them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokpack_core.errors import InputError
from tokpack_core.training.segments import FILL, ImageAttention

if TYPE_CHECKING:  # its kernels would be compiled in every process that only reads
    from tokpack_core.megatron.export import Plan

ROW = np.dtype([("document", "<i4"), ("image_attention", "i1")])
Int64 = npt.NDArray[np.int64]
Rows = npt.NDArray[np.void]


def segments_path(docs_prefix: Path) -> Path:
    return docs_prefix.with_name(f"{docs_prefix.name}.segments.npy")


class SegmentsWriter(AbstractContextManager["SegmentsWriter"]):
    """Streams rows in the order of the index; as a context manager it removes the file when the body raises."""

    def __init__(self, docs_prefix: Path) -> None:
        self.path = segments_path(docs_prefix)
        self._file = self.path.open("wb")
        self._rows = 0
        self._write_header()

    def add(self, rows: Rows) -> None:
        """Append rows of ROW, [sequences]."""
        rows.astype(ROW, copy=False).tofile(self._file)
        self._rows += rows.size

    def close(self) -> None:
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        """numpy leaves room for the shape to grow, so the header keeps its size."""
        shape = {"descr": np.lib.format.dtype_to_descr(ROW), "fortran_order": False, "shape": (self._rows,)}
        np.lib.format.write_array_header_1_0(self._file, shape)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()
            self.path.unlink(missing_ok=True)


def segment_rows(plan: Plan, pack_order: Int64, sequence_length: int, image_attention: ImageAttention) -> Rows:
    """Rows of the packs `pack_order` [packs] of `plan`, in that order, with a row for each filled tail.

    Neighbouring segments are one document when the second goes on where the first ends.
    """
    counts = np.diff(plan.pack_offsets)[pack_order]
    filled = plan.loads()[pack_order] < sequence_length
    firsts = np.cumsum(counts) - counts
    segments = np.repeat(plan.pack_offsets[pack_order] - firsts, counts) + np.arange(counts.sum())
    document, start = plan.document[segments], plan.start[segments]
    ends = start + plan.length[segments]
    new = np.append(True, (document[1:] != document[:-1]) | (start[1:] != ends[:-1]))[: document.size]
    new[firsts] = True
    number = np.cumsum(new)
    rows = np.zeros(segments.size + int(filled.sum()), ROW)
    rows["image_attention"] = image_attention
    rows["document"] = FILL
    place = np.arange(segments.size) + np.repeat(np.cumsum(filled) - filled, counts)
    rows["document"][place] = number - np.repeat(number[firsts], counts)
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
