"""Megatron's indexed dataset: `PREFIX.bin` (token ids, back to back, nothing else) and `PREFIX.idx`.

`.idx`, all little-endian, Ns sequences in Nd documents:

    offset        type          field
    0             9 bytes       magic 4D 4D 49 44 49 44 58 00 00
    9             u64           version = 1
    17            u8            dtype code: 4 = int32, 8 = uint16
    18            u64           Ns
    26            u64           Nd + 1
    34            i32[Ns]       sequence lengths, in tokens
    34 +  4 Ns    i64[Ns]       sequence pointers, in bytes into `.bin`
    34 + 12 Ns    i64[Nd + 1]   document indices: document d = sequences [di[d], di[d + 1]); first 0, last Ns
    ...           i8[Ns]        sequence modes (0 text, 1 image), in multimodal files only; the size alone tells

An empty document is a repeated document index. Sequence lengths stream straight to their place; pointers are derived
from them when the file is closed, and until then there is no magic, so an unfinished index is never taken for a whole
one. Memory does not depend on the number of sequences.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from tokpack_core.errors import InputError

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
HEADER = struct.Struct("<9sQBQQ")
DTYPES: dict[int, np.dtype] = {4: np.dtype("<i4"), 8: np.dtype("<u2")}
CODES = {dtype: code for code, dtype in DTYPES.items()}
FIRST_INT32_VOCABULARY = 65_500
MAX_LENGTH = 2**31 - 1
CHUNK = 1 << 20
"""Entries of an index handled at once."""

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Index:
    """What a `.idx` says; arrays are read-only views of the mapped file."""

    dtype: np.dtype
    """Of the token ids in `.bin`: uint16 or int32."""
    sequence_lengths: npt.NDArray[np.int32]
    """[sequences], in tokens."""
    sequence_pointers: Int64
    """[sequences], in bytes."""
    document_indices: Int64
    """[documents + 1]."""
    modes: npt.NDArray[np.int8] | None
    """[sequences] in multimodal files, else None."""


def dtype_for(vocab_size: int) -> np.dtype:
    """uint16 below 65,500 ids (added tokens included), else int32: the rule of Megatron's preprocess_data."""
    return DTYPES[8] if vocab_size < FIRST_INT32_VOCABULARY else DTYPES[4]


def idx_path(prefix: Path) -> Path:
    return prefix.with_name(f"{prefix.name}.idx")


def bin_path(prefix: Path) -> Path:
    return prefix.with_name(f"{prefix.name}.bin")


class IndexWriter(AbstractContextManager["IndexWriter"]):
    """Writes a `.idx` whose sequences and documents become known bit by bit.

    As a context manager it removes the file when the body raises.
    """

    def __init__(self, path: Path, dtype: np.dtype) -> None:
        self.path = path
        self._code = CODES[np.dtype(dtype).newbyteorder("<")]
        self._itemsize = dtype.itemsize
        self._sequences = 0
        self._files = ExitStack()
        self._file: BinaryIO = self._files.enter_context(path.open("w+b"))
        self._document_sizes = self._files.enter_context(open_unnamed(path.with_name(f"{path.name}.documents")))
        self._modes = self._files.enter_context(open_unnamed(path.with_name(f"{path.name}.modes")))
        self._file.write(bytes(HEADER.size))

    def add_sequences(self, lengths: npt.NDArray[np.integer], modes: npt.NDArray[np.integer] | None = None) -> None:
        """Append sequences of `lengths` tokens, [sequences]; modes in all calls or in none.

        Raises InputError when the format cannot hold a length or the number of sequences.
        """
        if lengths.size and not 0 <= int(lengths.min()) <= int(lengths.max()) <= MAX_LENGTH:
            bad = self._sequences + int(np.argmax((lengths < 0) | (lengths > MAX_LENGTH)))
            raise InputError(f"{self.path}: sequence {bad} is not 0 to {MAX_LENGTH} tokens long: split the document")
        self._sequences += lengths.size
        if self._sequences > MAX_LENGTH:
            raise InputError(f"{self.path}: Megatron reads at most {MAX_LENGTH} sequences a prefix: write several")
        lengths.astype("<i4", copy=False).tofile(self._file)
        if modes is not None:
            modes.astype("i1", copy=False).tofile(self._modes)

    def add_documents(self, sequences: npt.NDArray[np.integer | np.bool_]) -> None:
        """Append documents of `sequences` sequences each, [documents]; 0 is an empty document."""
        sequences.astype("<i4", copy=False).tofile(self._document_sizes)

    def close(self) -> None:
        """Write pointers, document indices, modes and, last, the header."""
        lengths_end = self._file.tell()
        pointer = 0
        for lengths in read_chunks(self._file, HEADER.size, lengths_end, "<i4"):
            pointers = running_starts(lengths.astype(np.int64) * self._itemsize, pointer)
            pointer = int(pointers[-1])
            self._write_at_end(pointers[:-1])
        self._write_at_end(np.zeros(1, np.int64))
        documents = covered = 0
        for sizes in read_chunks(self._document_sizes, 0, self._document_sizes.tell(), "<i4"):
            indices = running_starts(sizes.astype(np.int64), covered)
            covered = int(indices[-1])
            documents += sizes.size
            self._write_at_end(indices[1:])
        if covered != self._sequences:
            raise ValueError(f"{self.path}: documents hold {covered} sequences, but {self._sequences} were added")
        modes = self._modes.tell()
        if modes not in (0, self._sequences):
            raise ValueError(f"{self.path}: {modes} sequences have a mode, but {self._sequences} were added")
        for chunk in read_chunks(self._modes, 0, modes, "i1"):
            self._write_at_end(chunk)
        self._file.seek(0)
        self._file.write(HEADER.pack(MAGIC, VERSION, self._code, self._sequences, documents + 1))
        self._files.close()

    def abandon(self) -> None:
        """Give up: the unfinished file is removed."""
        self._files.close()
        self.path.unlink(missing_ok=True)

    def _write_at_end(self, array: npt.NDArray[np.generic]) -> None:
        self._file.seek(0, 2)
        self._file.write(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


def open_unnamed(path: Path) -> BinaryIO:
    """A scratch file that goes when it is closed, beside what it is scratch for: /tmp may be too small."""
    file = path.open("w+b")
    path.unlink()
    return file


def id_chunks(ids: npt.NDArray[np.integer], dtype: np.dtype) -> Iterator[memoryview]:
    """The bytes of ids as `dtype`, which can hold them, without a second array of their size."""
    for start in range(0, ids.size, CHUNK):
        yield ids[start : start + CHUNK].astype(dtype).data


def read_chunks(file: BinaryIO, begin: int, end: int, dtype: str) -> Iterator[npt.NDArray[np.integer]]:
    """The entries between two offsets of a file, CHUNK at a time."""
    step = CHUNK * np.dtype(dtype).itemsize
    for offset in range(begin, end, step):
        file.seek(offset)
        yield np.frombuffer(file.read(min(step, end - offset)), dtype)


def running_starts(sizes: Int64, first: int) -> Int64:
    """Where runs of these sizes start when they lie back to back from `first`, and where the last ends."""
    out = np.empty(sizes.size + 1, np.int64)
    out[0] = first
    np.cumsum(sizes, out=out[1:])
    out[1:] += first
    return out


def write_index(
    path: Path,
    dtype: np.dtype,
    sequence_lengths: npt.NDArray[np.integer],
    document_indices: npt.NDArray[np.integer],
    modes: npt.NDArray[np.integer] | None = None,
) -> None:
    """Write a whole `.idx` at once.

    sequence_lengths [sequences] in tokens; document_indices [documents + 1], rising from 0 to the number of
    sequences; modes [sequences] or None. Raises InputError when the format cannot hold it, ValueError when the
    document indices do not cover the sequences.
    """
    if document_indices[0] != 0 or document_indices[-1] != sequence_lengths.size:
        raise ValueError(f"{path}: document indices must run from 0 to the {sequence_lengths.size} sequences")
    with IndexWriter(path, dtype) as writer:
        for i in range(0, sequence_lengths.size, CHUNK):
            writer.add_sequences(sequence_lengths[i : i + CHUNK], None if modes is None else modes[i : i + CHUNK])
        for i in range(0, document_indices.size - 1, CHUNK):
            writer.add_documents(np.diff(document_indices[i : i + CHUNK + 1]))


def read_index(path: Path) -> Index:
    """Map a `.idx`, in time and memory that do not depend on its size.

    Raises InputError naming the file and what is wrong with its header, its size or the ends of its document indices.
    What is in between is checked by `verify`.
    """
    if not path.is_file():
        raise InputError(f"{path} does not exist: name a prefix that has both a .bin and a .idx")
    size = path.stat().st_size
    if size < HEADER.size:
        raise InputError(f"{path} is cut off within its header, at {size} bytes: write or copy it again")
    mapped = np.memmap(path, np.uint8, "r")
    magic, version, code, sequences, boundaries = HEADER.unpack(mapped[: HEADER.size].tobytes())
    if magic != MAGIC:
        raise InputError(f"{path} is no Megatron index, or one whose writing was cut short: it starts with {magic!r}")
    if version != VERSION:
        raise InputError(f"{path} has index version {version}: only version {VERSION} is known")
    if code not in DTYPES:
        raise InputError(f"{path} has dtype code {code}: tokens are int32 (4) or uint16 (8) in Megatron's files")
    plain = HEADER.size + 12 * sequences + 8 * boundaries
    if size not in (plain, plain + sequences) or boundaries < 1:
        raise InputError(
            f"{path} has {size} bytes, but {sequences} sequences and {boundaries - 1} documents take {plain}, "
            f"or {plain + sequences} with modes: write or copy it again"
        )
    ends = np.cumsum([HEADER.size, 4 * sequences, 8 * sequences, 8 * boundaries]).tolist()
    document_indices = mapped[ends[2] : ends[3]].view("<i8")
    if document_indices[0] != 0 or document_indices[-1] != sequences:
        raise InputError(
            f"{path}: document indices run from {document_indices[0]} to {document_indices[-1]}, "
            f"not from 0 to its {sequences} sequences: write it again"
        )
    return Index(
        dtype=DTYPES[code],
        sequence_lengths=np.asarray(mapped[ends[0] : ends[1]].view("<i4")),
        sequence_pointers=np.asarray(mapped[ends[1] : ends[2]].view("<i8")),
        document_indices=np.asarray(document_indices),
        modes=np.asarray(mapped[ends[3] :].view("i1")) if size > plain else None,
    )
