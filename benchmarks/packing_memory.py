"""Memory of packing, and packing by blocks in bounded memory.

    python benchmarks/packing_memory.py whole 1e7      added peak memory of one plan, in bytes a document
    python benchmarks/packing_memory.py blocks 1e8     lengths come and go in blocks of 100,000, as the stage packs them

The peak is the kernel's high-water mark of this process (VmHWM), reset after compiling and drawing the lengths. By
blocks, documents a CPU-second includes the figures; drawing lengths is left out of it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from tokpack_core.config import PackingConfig
from tokpack_core.packing.policies import pack_documents
from tokpack_core.packing.strategies import pack
from tokpack_core.packing.truncation import PackingFigures, packing_figures

BLOCK = 100_000
CAPACITY = 4096


def web_lengths(documents: int, seed: int) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(np.log(600.0), 1.2, documents).astype(np.float32)
    np.exp(drawn, out=drawn)
    return np.clip(drawn, 1, 1 << 20).astype(np.int32)


def peak() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def reset_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def whole(documents: int) -> None:
    lengths = web_lengths(documents, 0)
    before = reset_peak()
    began = time.process_time()
    plan = pack(lengths, CAPACITY, "best_fit")
    seconds = time.process_time() - began
    added = (peak() - before) / documents
    over = plan.packs - -(-int(lengths.sum(dtype=np.int64)) // CAPACITY)
    print(
        f"{documents:,} documents: {added:.1f} bytes a document, {documents / seconds:,.0f} documents a CPU-second, "
        f"{plan.packs:,} packs, {over / plan.packs:.1e} over the bound"
    )


def by_blocks(documents: int) -> None:
    packing = PackingConfig(sequence_length=CAPACITY)
    figures = PackingFigures()
    seconds = 0.0
    tokens = 0
    before = reset_peak()
    for block, begin in enumerate(range(0, documents, BLOCK)):
        lengths = web_lengths(min(BLOCK, documents - begin), block)
        tokens += int(lengths.sum(dtype=np.int64))
        began = time.process_time()
        packed = pack_documents(lengths, packing, b"")
        figures += packing_figures(packed.plan, lengths, CAPACITY)
        seconds += time.process_time() - began
    over = figures.packs - -(-tokens // CAPACITY)
    print(
        f"{documents:,} documents in blocks: peak {(peak() - before) / 1e6:.0f} MB added, "
        f"{documents / seconds:,.0f} documents a CPU-second, {figures.packs:,} packs, "
        f"{over / figures.packs:.1e} over the bound of the whole, {figures.tokens_lost} tokens lost"
    )


def main() -> None:
    pack(web_lengths(1_000, 0), CAPACITY, "best_fit")
    {"whole": whole, "blocks": by_blocks}[sys.argv[1]](int(float(sys.argv[2])))


if __name__ == "__main__":
    main()
