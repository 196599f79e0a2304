"""Joins indexed datasets into one: sequences and documents of each prefix, one prefix after the other.

Tokens are copied byte by byte, so the result is what Megatron's own builder gives when the same prefixes are added in
the same order; pointers are derived anew from the lengths, in 64 bits. A prefix is checked before anything is written:
its `.bin` must end where its index says, and its sequences lie back to back in it, for stray bytes would shift all that
comes after them. Indexes are read and written a chunk at a time, so memory does not grow with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import (
    CHUNK,
    HEADER,
    Index,
    IndexWriter,
    bin_path,
    idx_path,
    read_chunks,
    read_index,
)

COPIED = 2**24
"""Bytes of tokens copied at a time."""
Integers = npt.NDArray[np.integer]
OnTokens = Callable[[Path, bytes], None]


@dataclass(frozen=True)
class Shard:
    """One prefix to be joined; `bytes` is the size of its `.bin`."""

    prefix: Path
    dtype: np.dtype
    sequences: int
    documents: int
    multimodal: bool
    bytes: int


def natural_order(prefix: Path) -> tuple[list[tuple[int, str]], str]:
    """A key that sorts shard_2 before shard_10: runs of digits by their number, all else as text."""
    parts = re.split(r"(\d+)", str(prefix))
    return [(int(part) if place % 2 else 0, part) for place, part in enumerate(parts)], str(prefix)


def open_shards(prefixes: Sequence[Path]) -> list[Shard]:
    """The prefixes, each sound by itself and all of one kind.

    Raises:
        InputError: a prefix is damaged, or they differ in their dtype or in being multimodal.
    """
    shards = [open_shard(prefix) for prefix in prefixes]
    first = shards[0]
    for other in shards[1:]:
        if other.dtype != first.dtype:
            raise InputError(
                f"{other.prefix} holds {other.dtype.name} tokens and {first.prefix} {first.dtype.name}: "
                "encode both with the same tokenizer, or merge them apart"
            )
        if other.multimodal != first.multimodal:
            plain, modal = (first, other) if other.multimodal else (other, first)
            raise InputError(f"{modal.prefix} has modes and {plain.prefix} has none: merge them apart")
    return shards


def open_shard(prefix: Path) -> Shard:
    index = read_index(idx_path(prefix))
    if not bin_path(prefix).is_file():
        raise InputError(f"{bin_path(prefix)} does not exist: name a prefix that has both a .bin and a .idx")
    size = bin_path(prefix).stat().st_size
    expected = check_back_to_back(prefix, index)
    if size != expected:
        raise InputError(
            f"{bin_path(prefix)} has {size} bytes, but its index says {expected}: write or copy the prefix again"
        )
    documents = index.document_indices.size - 1
    return Shard(prefix, index.dtype, index.sequence_lengths.size, documents, index.modes is not None, size)


def check_back_to_back(prefix: Path, index: Index) -> int:
    """Bytes of all sequences. Raises InputError when one does not begin where the one before it ends."""
    end = 0
    sequences = index.sequence_lengths.size
    with idx_path(prefix).open("rb") as file:
        columns = zip(
            read_chunks(file, HEADER.size, HEADER.size + 4 * sequences, "<i4"),
            read_chunks(file, HEADER.size + 4 * sequences, HEADER.size + 12 * sequences, "<i8"),
            strict=True,
        )
        for number, (lengths, pointers) in enumerate(columns):
            ends = end + np.cumsum(lengths.astype(np.int64) * index.dtype.itemsize)
            if pointers[0] != end or not np.array_equal(pointers[1:], ends[:-1]):
                starts = np.concatenate([[end], ends[:-1]])
                bad = number * CHUNK + int(np.argmax(pointers != starts))
                raise InputError(
                    f"{idx_path(prefix)}: sequence {bad} does not begin where the one before it ends: write it again"
                )
            end = int(ends[-1])
    return end


def merge(shards: Sequence[Shard], output: Path, on_tokens: OnTokens) -> None:
    """Writes OUTPUT.bin and OUTPUT.idx; `on_tokens` sees the bytes of each `.bin` as they are copied."""
    with bin_path(output).open("wb") as tokens:
        for shard in shards:
            with bin_path(shard.prefix).open("rb") as file:
                while block := file.read(COPIED):
                    tokens.write(block)
                    on_tokens(bin_path(shard.prefix), block)
    with IndexWriter(idx_path(output), shards[0].dtype) as index:
        for shard in shards:
            copy_index(shard, index)


def copy_index(shard: Shard, index: IndexWriter) -> None:
    ends = np.cumsum([HEADER.size, 4 * shard.sequences, 8 * shard.sequences, 8 * (shard.documents + 1)]).tolist()
    with idx_path(shard.prefix).open("rb") as file:
        lengths = read_chunks(file, ends[0], ends[1], "<i4")
        modes = read_chunks(file, ends[3], ends[3] + shard.sequences, "i1") if shard.multimodal else None
        for chunk in lengths:
            index.add_sequences(chunk, None if modes is None else next(modes))
        for sizes in document_sizes(read_chunks(file, ends[2], ends[3], "<i8"), shard.prefix):
            index.add_documents(sizes)


def document_sizes(chunks: Iterator[Integers], prefix: Path) -> Iterator[Integers]:
    """Sequences of each document, out of document indices in chunks."""
    before = next(chunks)
    yield sizes_of(before, prefix)
    for chunk in chunks:
        yield sizes_of(np.concatenate([before[-1:], chunk]), prefix)
        before = chunk


def sizes_of(indices: Integers, prefix: Path) -> Integers:
    sizes = np.diff(indices)
    if sizes.size and sizes.min() < 0:
        raise InputError(f"{idx_path(prefix)}: its document indices do not rise: write it again")
    return sizes
