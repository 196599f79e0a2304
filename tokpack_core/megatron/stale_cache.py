"""Megatron's index cache beside a prefix, which it reuses whatever the prefix holds by now.

GPTDataset keeps its shuffles in `PREFIX/cache/<class>_indices/` unless told otherwise; `cache/` in the prefix's folder
is looked at too. The key hashes the prefix's path and the settings but not its content, so after a prefix is rewritten
the old indices are reused silently. A cache is taken to be fresh only when it is newer than both files, every index in
it lies inside the sequences, and it holds what its description makes of them: all sequences of its split, and a sample
every `sequence_length` tokens.

    <hash>-<class>-<split>-description.txt     the hashed JSON; dataset_path is the prefix
    ...-document_index.npy                     int32 [epochs x sequences]: sequences in the order in which they are read
    ...-sample_index.npy                       int [samples + 1, 2]: place in document_index, first token there
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokpack_core.megatron.indexed_dataset import CHUNK, Index, bin_path, idx_path

DESCRIPTION = "-description.txt"
SPLITS = ("train", "valid", "test")
Integers = npt.NDArray[np.integer]


def stale_cache_problems(prefix: Path, index: Index) -> tuple[list[str], list[str]]:
    """Faults (a cache that may be stale) and notes (a cache that fits), one sentence a folder."""
    faults, notes = [], []
    for folder in cache_folders(prefix):
        cached = list(caches_of(prefix, folder))
        if not cached:
            continue
        if all(is_fresh(prefix, index, base) for base in cached):
            notes.append(
                f"{folder} caches Megatron's indices of this content: remove it before you write {prefix} again"
            )
        else:
            faults.append(
                f"{folder} is a stale cache: Megatron would reuse its indices whatever {prefix} holds now; remove it "
                "and set --data-cache-path to a folder elsewhere"
            )
    return faults, notes


def cache_folders(prefix: Path) -> list[Path]:
    parents = [prefix / "cache", prefix.parent / "cache"]
    return [folder for parent in parents if parent.is_dir() for folder in sorted(parent.glob("*_indices"))]


def caches_of(prefix: Path, folder: Path) -> Iterator[Path]:
    """Paths, without what follows the split's name, of each cached set of indices that may be of this prefix."""
    described = set()
    for path in sorted(folder.glob(f"*{DESCRIPTION}")):
        base = path.with_name(path.name.removesuffix(DESCRIPTION))
        described.add(base.name)
        if described_name(path) in (None, prefix.name):
            yield base
    for path in sorted(folder.iterdir()):
        if not any(path.name.startswith(name) for name in described):
            yield path


def described_name(description: Path) -> str | None:
    """Name of the prefix that a description is about, None if it does not say."""
    try:
        return os.path.basename(json.loads(description.read_text(encoding="utf-8"))["dataset_path"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_fresh(prefix: Path, index: Index, base: Path) -> bool:
    files = [
        base.with_name(f"{base.name}-{name}") for name in ("description.txt", "document_index.npy", "sample_index.npy")
    ]
    if not all(file.is_file() for file in files):
        return False
    written = max(path.stat().st_mtime_ns for path in (bin_path(prefix), idx_path(prefix)))
    if min(file.stat().st_mtime_ns for file in files) < written:
        return False
    try:
        documents = np.load(files[1], mmap_mode="r", allow_pickle=False)
        samples = np.load(files[2], mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        return False
    if documents.ndim != 1 or samples.ndim != 2 or documents.size == 0 or samples.shape[0] == 0:
        return False
    if documents.min() < 0 or documents.max() >= index.sequence_lengths.size:
        return False
    places, offsets = samples[:, 0], samples[:, 1]
    if places.min() < 0 or places.max() >= documents.size:
        return False
    if not (offsets <= index.sequence_lengths[documents[places]]).all():
        return False
    try:
        return is_as_described(index, json.loads(files[0].read_text(encoding="utf-8")), documents, samples)
    except (OSError, ValueError, TypeError, AttributeError, IndexError):
        return False  # no description of Megatron's


def is_as_described(index: Index, said: dict[str, Any], documents: Integers, samples: Integers) -> bool:
    """Whether the indices are what Megatron makes of these sequences, as far as the description says of what."""
    split = said.get("index_split")
    if split in SPLITS and "split_matrix" in said:
        begin, end = (said["split_matrix"] or [(0, 1)] * len(SPLITS))[SPLITS.index(split)]
        size = float(index.sequence_lengths.size)
        if (documents.min(), documents.max()) != (round(begin * size), round(end * size) - 1):
            return False
    step = said.get("sequence_length")
    return step is None or starts_every(step, index, documents, samples[:-1])


def starts_every(step: int, index: Index, documents: Integers, samples: Integers) -> bool:
    """Whether sample k starts at token k x step of the sequences in their order."""
    places = samples[:, 0]
    if (np.diff(places) < 0).any():
        return False
    before = 0
    for begin in range(0, documents.size, CHUNK):
        lengths = index.sequence_lengths[documents[begin : begin + CHUNK]].astype(np.int64)
        first, last = np.searchsorted(places, [begin, begin + lengths.size])
        starts = before + np.cumsum(lengths) - lengths
        if (starts[places[first:last] - begin] + samples[first:last, 1] != np.arange(first, last) * step).any():
            return False
        before += int(lengths.sum())
    return True
