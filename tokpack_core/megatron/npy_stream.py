"""One-dimensional `.npy` files that are written in pieces and can be mapped."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt


class NpyStream(AbstractContextManager["NpyStream"]):
    """As a context manager it removes the file when the body raises."""

    def __init__(self, path: Path, dtype: npt.DTypeLike) -> None:
        self.path = path
        self.dtype = np.dtype(dtype)
        self._file = path.open("wb")
        self._rows = 0
        self._write_header()

    def add(self, values: npt.NDArray[Any]) -> None:
        """Append values, [n]."""
        values.astype(self.dtype, copy=False).tofile(self._file)
        self._rows += values.size

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
        shape = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": (self._rows,)}
        np.lib.format.write_array_header_1_0(self._file, shape)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()
