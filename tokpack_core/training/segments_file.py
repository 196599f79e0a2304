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

import numpy as np
import numpy.typing as npt

from tokpack_core.errors import InputError
from tokpack_core.training.segments import ImageAttention

ROW = np.dtype([("document", "<i4"), ("image_attention", "i1")])
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

    def abandon(self) -> None:
        """Give up: the unfinished file is removed."""
        self._file.close()
        self.path.unlink(missing_ok=True)

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
            self.abandon()


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
