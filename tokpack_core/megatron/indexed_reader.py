"""Reading sequences of an indexed dataset out of a mapped `.bin`."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import Index, bin_path, idx_path, read_index

Tokens = npt.NDArray[np.integer]


class IndexedReader:
    """One prefix, mapped: opening costs no memory, sequences are views.

    Raises InputError when the index is faulty or `.bin` does not end where the index says.
    """

    def __init__(self, prefix: Path) -> None:
        self.index: Index = read_index(idx_path(prefix))
        self.tokens: Tokens = map_tokens(bin_path(prefix), self.index.dtype)
        """All tokens of the prefix, [tokens]."""
        if self.tokens.nbytes != (expected := expected_bytes(self.index)):
            raise InputError(
                f"{bin_path(prefix)} has {self.tokens.nbytes} bytes, but its index says {expected}: "
                "write or copy both files again"
            )

    def __len__(self) -> int:
        return self.index.sequence_lengths.size

    def sequence(self, i: int) -> Tokens:
        """Token ids of sequence i, a view of uint16 or int32 [length]."""
        start = int(self.index.sequence_pointers[i]) // self.index.dtype.itemsize
        return self.tokens[start : start + int(self.index.sequence_lengths[i])]


def expected_bytes(index: Index) -> int:
    """Size of `.bin` when sequences lie back to back."""
    if index.sequence_lengths.size == 0:
        return 0
    return int(index.sequence_pointers[-1]) + int(index.sequence_lengths[-1]) * index.dtype.itemsize


def map_tokens(path: Path, dtype: np.dtype) -> Tokens:
    """A `.bin` as a read-only array, [tokens]; raises InputError when it is missing or cut within a token."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: name a prefix that has both a .bin and a .idx")
    size = path.stat().st_size
    if size % dtype.itemsize:
        raise InputError(f"{path} has {size} bytes, which is no whole number of {dtype.name} tokens: copy it again")
    if size == 0:
        return np.zeros(0, dtype)
    return np.asarray(np.memmap(path, dtype, "r"))


def mapping_of(tokens: Tokens) -> tuple[np.memmap, mmap.mmap] | None:
    """The mapped file that an array is, or is a view of, and its mapping."""
    base: object = tokens
    while isinstance(base, np.ndarray):
        under: object = base.base
        if isinstance(base, np.memmap) and isinstance(under, mmap.mmap):
            return base, under
        base = under
    return None


def file_of(tokens: Tokens) -> Path | None:
    """The file that an array maps from its first byte to its last, if it does."""
    mapped = mapping_of(tokens)
    path = None if mapped is None else Path(str(mapped[0].filename))
    return path if path is not None and path.is_file() and path.stat().st_size == tokens.nbytes else None


def release_pages(tokens: Tokens) -> None:
    """Gives the memory of a mapped file's pages back; they are read again when they are touched."""
    mapped = mapping_of(tokens)
    if mapped is not None:
        mapped[1].madvise(mmap.MADV_DONTNEED)
