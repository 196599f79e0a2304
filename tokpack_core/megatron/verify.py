"""What Megatron does not check about a prefix: structure, sizes, ids, ends of documents, alignment of packs.

Everything is read once, in chunks; memory does not depend on the size of the files. Faults make a prefix unfit for
training; notes are advice about a sound one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import (
    CHUNK,
    FIRST_INT32_VOCABULARY,
    Index,
    bin_path,
    dtype_for,
    idx_path,
    read_index,
)
from tokpack_core.megatron.indexed_reader import Tokens, map_tokens
from tokpack_core.megatron.stale_cache import stale_cache_problems
from tokpack_core.megatron.verify_modes import ExpectedImages, mode_problems
from tokpack_core.megatron.verify_packs import ExpectedPacks, pack_problems

Flags = npt.NDArray[np.bool_]
TOKEN_CHUNK = 1 << 23


@dataclass(frozen=True)
class Findings:
    """One sentence each."""

    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __add__(self, other: Findings) -> Findings:
        return Findings(self.faults + other.faults, self.notes + other.notes)


def verify(
    prefix: Path, *, vocab_size: int | None = None, eod: int | None = None, sequence_length: int | None = None
) -> list[str]:
    """Faults of `prefix.bin` and `prefix.idx`; an empty list when there is none. See `examine`."""
    return examine(prefix, vocab_size=vocab_size, eod=eod, sequence_length=sequence_length).faults


def examine(
    prefix: Path,
    *,
    vocab_size: int | None = None,
    eod: int | None = None,
    sequence_length: int | None = None,
    packs: ExpectedPacks | None = None,
    images: ExpectedImages | None = None,
) -> Findings:
    """Faults and notes of `prefix.bin` and `prefix.idx`, and of a cache of Megatron's beside them.

    vocab_size: every id must be below it, and the dtype must be the one that Megatron takes for it.
    eod: every document that is not empty must end in it (for shards; a pack may end inside a document).
    sequence_length: every sequence must have exactly so many tokens (for packs).
    packs: what is known of the packs whose `_docs` view this is.
    images: what is known of images that are sequences (for shards of text and images).
    """
    try:
        index = read_index(idx_path(prefix))
    except InputError as error:
        return Findings([str(error)])
    faults = index_problems(idx_path(prefix), index)
    if sequence_length is not None:
        faults += length_problems(idx_path(prefix), index, sequence_length)
    if vocab_size is not None:
        faults += dtype_problems(idx_path(prefix), index, vocab_size)
    notes = [] if vocab_size is None else vocabulary_notes(idx_path(prefix), vocab_size)
    try:
        tokens = map_tokens(bin_path(prefix), index.dtype)
    except InputError as error:
        return Findings([*faults, str(error)], notes)
    faults += size_problems(bin_path(prefix), index, tokens)
    sound = not faults
    if vocab_size is not None:
        faults += id_problems(bin_path(prefix), tokens, vocab_size)
    if eod is not None and sound:
        faults += eod_problems(bin_path(prefix), index, tokens, eod)
    if packs is not None and sound:
        faults += pack_problems(prefix, index, tokens, packs)
    if images is not None and sound:
        faults += mode_problems(prefix, index, tokens, images)
    return Findings(faults, notes) + Findings(*stale_cache_problems(prefix, index))


def count_flagged(size: int, flags: Callable[[int, int], Flags], step: int = CHUNK) -> tuple[int, int]:
    """Number of flagged entries of 0 .. size - 1 and the first of them, when flags(a, b) looks at a .. b - 1."""
    count, first = 0, -1
    for begin in range(0, size, step):
        flagged = flags(begin, min(begin + step, size))
        if flagged.any():
            first = begin + int(np.argmax(flagged)) if first < 0 else first
            count += int(np.count_nonzero(flagged))
    return count, first


def index_problems(path: Path, index: Index) -> list[str]:
    lengths, pointers, documents = index.sequence_lengths, index.sequence_pointers, index.document_indices
    problems = []
    if lengths.size == 0:
        problems.append(f"{path} has no sequence: Megatron cannot open an empty set, so leave it out of the blend")
    count, first = count_flagged(lengths.size, lambda a, b: lengths[a:b] <= 0)
    if count:
        problems.append(f"{path}: {count} sequences have no token or fewer, first sequence {first}: write it again")
    if lengths.size and pointers[0] != 0:
        problems.append(f"{path}: the first sequence starts at byte {pointers[0]} instead of 0: write it again")
    steps = lengths.size - 1
    item = np.int64(index.dtype.itemsize)
    count, first = count_flagged(steps, lambda a, b: np.diff(pointers[a : b + 1]) != lengths[a:b] * item)
    if count:
        missing = int(pointers[first]) + int(lengths[first]) * int(item) - int(pointers[first + 1])
        wrapped = int(pointers[first + 1]) < 0 or missing % 2**32 == 0
        overflowed = " (32-bit overflow)" if wrapped else ""
        problems.append(
            f"{path}: pointers disagree with lengths after {count} sequences, first sequence {first}, whose next "
            f"starts at byte {pointers[first + 1]}{overflowed}: write it again"
        )
    count, first = count_flagged(documents.size - 1, lambda a, b: np.diff(documents[a : b + 1]) < 0)
    if count:
        problems.append(f"{path}: document indices fall {count} times, first after document {first}: write it again")
    if index.modes is not None:
        modes = index.modes
        count, first = count_flagged(modes.size, lambda a, b: (modes[a:b] < 0) | (modes[a:b] > 1))
        if count:
            problems.append(f"{path}: {count} modes are neither 0 nor 1, first sequence {first}: write it again")
    return problems


def length_problems(path: Path, index: Index, sequence_length: int) -> list[str]:
    lengths = index.sequence_lengths
    count, first = count_flagged(lengths.size, lambda a, b: lengths[a:b] != sequence_length)
    if not count:
        return []
    return [
        f"{path}: {count} of {lengths.size} sequences are not {sequence_length} tokens, first sequence {first} with "
        f"{lengths[first]}: Megatron's samples would drift off the packs"
    ]


def dtype_problems(path: Path, index: Index, vocab_size: int) -> list[str]:
    if index.dtype == dtype_for(vocab_size):
        return []
    return [
        f"{path} has {index.dtype.name} tokens, but Megatron takes {dtype_for(vocab_size).name} for a vocabulary of "
        f"{vocab_size}: write it again"
    ]


def vocabulary_notes(path: Path, vocab_size: int) -> list[str]:
    if not FIRST_INT32_VOCABULARY <= vocab_size <= 2**16:
        return []
    return [
        f"{path}: with a vocabulary of {vocab_size} (65500 to 65536) tokens are int32, but Megatron's "
        "fast cache assumes uint16 and reads garbage: do not use --dataloader-fast-cache-load with it"
    ]


def size_problems(path: Path, index: Index, tokens: Tokens) -> list[str]:
    total = 0
    for begin in range(0, index.sequence_lengths.size, CHUNK):
        total += int(index.sequence_lengths[begin : begin + CHUNK].sum(dtype=np.int64))
    if tokens.size == total:
        return []
    fault = "is cut off" if tokens.size < total else "has stray bytes"
    return [f"{path} {fault}: it holds {tokens.size} tokens, its index says {total}: write or copy it again"]


def id_problems(path: Path, tokens: Tokens, vocab_size: int) -> list[str]:
    def outside(begin: int, end: int) -> Flags:
        part = tokens[begin:end]
        return (part < 0) | (part >= vocab_size)

    count, first = count_flagged(tokens.size, outside, TOKEN_CHUNK)
    if not count:
        return []
    return [
        f"{path}: {count} tokens are outside the vocabulary of {vocab_size}, first token {first} with id "
        f"{tokens[first]}: encode it again"
    ]


def eod_problems(path: Path, index: Index, tokens: Tokens, eod: int) -> list[str]:
    """Only for an index without structural problems: every position is then inside `tokens`."""

    def open_ended(begin: int, end: int) -> Flags:
        edges = index.document_indices[begin : end + 1]
        filled = np.diff(edges) > 0
        last = edges[1:][filled] - 1
        ends = index.sequence_pointers[last] // index.dtype.itemsize + index.sequence_lengths[last]
        flags = np.zeros(end - begin, np.bool_)
        flags[filled] = tokens[ends - 1] != eod
        return flags

    documents = index.document_indices.size - 1
    count, first = count_flagged(documents, open_ended)
    if not count:
        return []
    return [
        f"{path}: {count} of {documents} documents do not end in EOD {eod}, first document {first} (counted from 0): "
        "append it, or training runs documents into one another"
    ]
