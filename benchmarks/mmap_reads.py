"""Opening and reading a packed set of 1 GB through PackedDataset, and what its pages cost four processes.

Writes packs of 4,096 uint16 tokens (about five documents each) into a folder that is removed at the end. Measured:

    open       time and memory (RSS) that opening adds, after the imports
    read       random packs a second: tokens copied out (every byte touched), segments read, all in the page cache
    share      four processes, each reading every pack: sum of their PSS of the mapped files against one file's size

    python benchmarks/mmap_reads.py [GIGABYTES] [FOLDER]
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path
from queue import Queue

import numpy as np

from tokpack_core.megatron.indexed_dataset import IndexWriter, bin_path, idx_path
from tokpack_core.packing.permutation import permuted
from tokpack_core.training.packed_dataset import PackedDataset

SEQUENCE_LENGTH = 4_096
DOCUMENTS = 5
CHUNK_PACKS = 4_096
PROCESSES = 4
READS = 200_000
TOKENS = np.dtype(np.uint16)


def write_set(prefix: Path, packs: int) -> None:
    rng = np.random.default_rng(0)
    docs = prefix.with_name(f"{prefix.name}_docs")
    with bin_path(prefix).open("wb") as tokens, IndexWriter(idx_path(docs), TOKENS) as index:
        for begin in range(0, packs, CHUNK_PACKS):
            count = min(CHUNK_PACKS, packs - begin)
            rng.integers(1, 32_000, (count, SEQUENCE_LENGTH), TOKENS).tofile(tokens)
            cuts = (
                np.sort(rng.permuted(np.tile(np.arange(1, 1_024), (count, 1)), axis=1)[:, : DOCUMENTS - 1], axis=1) * 4
            )
            edges = np.pad(cuts, ((0, 0), (1, 1)), constant_values=(0, SEQUENCE_LENGTH))
            index.add_sequences(np.diff(edges, axis=1).ravel())
            index.add_documents(np.full(count, DOCUMENTS, np.int32))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def mapped_pss(prefix: Path) -> int:
    """This process's proportional share of the pages of the prefix's files, in bytes."""
    total, ours = 0, False
    for line in smaps_lines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            ours = str(prefix) in line
        elif ours and line.startswith("Pss:"):
            total += int(line.split()[1]) * 1024
    return total


def smaps_lines() -> Iterator[str]:
    with Path("/proc/self/smaps").open() as file:
        yield from file


def measure_open(prefix: Path) -> PackedDataset:
    before = resident_bytes()
    begin = time.perf_counter()
    dataset = PackedDataset(prefix, eod=0)
    seconds = time.perf_counter() - begin
    added = resident_bytes() - before
    size = bin_path(prefix).stat().st_size
    print(
        f"open   {size / 1e9:.2f} GB, {len(dataset):,} packs: {seconds * 1e3:.2f} ms, {added / 1e6:+.2f} MB of memory"
    )
    return dataset


def measure_reads(dataset: PackedDataset) -> None:
    order = permuted(len(dataset), b"reads")[np.arange(READS) % len(dataset)].tolist()
    buffer = np.empty(SEQUENCE_LENGTH, TOKENS)
    for number in range(len(dataset)):
        buffer[:] = dataset[number].tokens
    wall, cpu = time.perf_counter(), time.process_time()
    for number in order:
        buffer[:] = dataset[number].tokens
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    gigabytes = READS * buffer.nbytes / 1e9
    print(
        f"read   {READS:,} random packs: {READS / wall:,.0f} a second of wall time, {READS / cpu:,.0f} of CPU time, "
        f"{gigabytes / wall:.2f} GB/s"
    )


def read_all(prefix: Path, ready: Barrier, done: Queue[int]) -> None:
    """Touches every page; PSS is taken while all processes still hold their maps."""
    dataset = PackedDataset(prefix, eod=0)
    for number in range(len(dataset)):
        pack = dataset[number]
        int(pack.tokens[::2_048].sum()), int(pack.segments.length.sum())
    ready.wait()
    done.put(mapped_pss(prefix))
    ready.wait()


def measure_sharing(prefix: Path) -> None:
    context = multiprocessing.get_context("spawn")
    for processes in (1, PROCESSES):
        ready, done = context.Barrier(processes), context.Queue()
        workers = [context.Process(target=read_all, args=(prefix, ready, done)) for _ in range(processes)]
        for worker in workers:
            worker.start()
        shares = [done.get() / 1e6 for _ in workers]
        for worker in workers:
            worker.join()
        each = ", ".join(f"{share:,.0f}" for share in shares)
        print(f"share  {processes} process(es) that read everything: PSS {each} MB, together {sum(shares):,.0f} MB")


def main() -> None:
    gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    packs = round(gigabytes * 1e9 / (SEQUENCE_LENGTH * TOKENS.itemsize))
    with tempfile.TemporaryDirectory(dir=folder) as name:
        prefix = Path(name) / f"train_{SEQUENCE_LENGTH}"
        write_set(prefix, packs)
        measure_reads(measure_open(prefix))
        measure_sharing(prefix)


if __name__ == "__main__":
    main()
