"""Export speed: plan and shards to `.bin/.idx`, against a plain copy of the same bytes, both with fsync.

    python benchmarks/export_speed.py [MEGABYTES] [FOLDER]

Documents have web-like lengths and stand in several shards, which are in the page cache for both; hashing is not part
of it. The copy reads and writes in pieces of 8 MiB, through this process, without copy_file_range (which some file
systems answer without copying). Best of three of each, taken in turn, wall time.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tokpack_core.megatron.export import PackedWriter, TokenSource
from tokpack_core.megatron.indexed_reader import map_tokens
from tokpack_core.packing.permutation import permuted
from tokpack_core.packing.plan import PackingPlan
from tokpack_core.packing.strategies import pack

SEQUENCE_LENGTH = 4096
PARTS = 4
UINT16 = np.dtype("<u2")
PIECE = 8 << 20


def web_lengths(tokens: int) -> np.ndarray:
    documents = tokens // 1_200
    drawn = np.exp(np.random.default_rng(0).normal(np.log(600.0), 1.2, documents))
    return np.clip(drawn, 1, 1 << 20).astype(np.int64)


def write_shards(folder: Path, lengths: np.ndarray) -> TokenSource:
    part = np.arange(lengths.size) * PARTS // lengths.size
    position = np.zeros(lengths.size, np.int64)
    rng = np.random.default_rng(1)
    for number in range(PARTS):
        own = part == number
        position[own] = np.cumsum(lengths[own]) - lengths[own]
        rng.integers(0, 32_000, int(lengths[own].sum()), np.uint16).tofile(folder / f"part{number}.bin")
    return TokenSource([map_tokens(folder / f"part{n}.bin", UINT16) for n in range(PARTS)], part, position)


def synced(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def export(folder: Path, plan: PackingPlan, order: np.ndarray, source: TokenSource) -> None:
    with PackedWriter(folder / "x", folder / "x_docs", UINT16, SEQUENCE_LENGTH, 0) as writer:
        writer.write_block(plan, order, source)
    for path in folder.glob("x*"):
        synced(path)


def copy(folder: Path) -> None:
    with (folder / "copy.bin").open("wb", buffering=0) as target:
        for number in range(PARTS):
            with (folder / f"part{number}.bin").open("rb", buffering=0) as source:
                while piece := source.read(PIECE):
                    target.write(piece)
    synced(folder / "copy.bin")


def seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as name:
        folder = Path(name)
        lengths = web_lengths(megabytes * 10**6 // 2)
        source = write_shards(folder, lengths)
        plan = pack(lengths, SEQUENCE_LENGTH, "best_fit")
        order = permuted(plan.packs, b"key")
        small = pack(lengths[:100], SEQUENCE_LENGTH, "best_fit")
        export(folder, small, permuted(small.packs, b"key"), source)
        exports, copies = [], []
        for _ in range(3):
            for path in [*folder.glob("x*"), *folder.glob("copy*")]:
                path.unlink()
            copies.append(seconds(lambda: copy(folder)))
            exports.append(seconds(lambda: export(folder, plan, order, source)))
        size = int(lengths.sum()) * 2 / 1e6
        rates = size / min(copies), size / min(exports)
        print(
            f"{size:,.0f} MB of tokens, {lengths.size:,} documents, {plan.packs:,} packs: copy {rates[0]:,.0f} MB/s, "
            f"export {rates[1]:,.0f} MB/s, {rates[1] / rates[0]:.0%}"
        )


if __name__ == "__main__":
    main()
