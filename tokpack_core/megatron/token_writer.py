"""A `.bin` that grows: token ids are written as its dtype, hashed, and sent to the disk while others are still encoded.

A file of many gigabytes is then neither read again for its sha256 nor waited for at its end.
"""

from __future__ import annotations

import hashlib
import os
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from tokpack_core.megatron.indexed_dataset import id_chunks

SENT_BYTES = 2**24
"""Bytes that are sent to the disk at a time."""
READ_BYTES = 2**24


class TokenWriter:
    """Appends ids to a file, which may hold some already."""

    def __init__(self, file: BinaryIO, dtype: np.dtype, hashed: bool = True) -> None:
        """`file`: open for reading and writing; `hashed`: whether its sha256 will be asked for."""
        self.file = file
        self._dtype = dtype
        self._sha256 = hashlib.sha256() if hashed else None
        if self._sha256 is not None:
            file.seek(0)
            while block := file.read(READ_BYTES):
                self._sha256.update(block)
        self._sent = self._written = file.tell()

    def write(self, ids: npt.NDArray[np.integer]) -> None:
        """`ids`: such as the dtype can hold."""
        for chunk in id_chunks(ids, self._dtype):
            self.file.write(chunk)
            if self._sha256 is not None:
                self._sha256.update(chunk)
            self._written += chunk.nbytes
        if self._written - self._sent >= SENT_BYTES:
            self.file.flush()
            # Of pages that are not on the disk yet this begins the writing and drops none.
            os.posix_fadvise(self.file.fileno(), self._sent, self._written - self._sent, os.POSIX_FADV_DONTNEED)
            self._sent = self._written

    @property
    def sha256(self) -> str:
        """Of all that the file holds, if it is hashed."""
        assert self._sha256 is not None
        return self._sha256.hexdigest()
