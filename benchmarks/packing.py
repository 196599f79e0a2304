"""Packing speed and quality in one run: our strategies against plain best-fit-decreasing.

The peer is best-fit-decreasing in good plain Python: items sorted by length, open packs in a sorted list of rooms
searched by bisection; over the whole set, and over batches of 1,000 documents as trainers that map a dataset do.
Lengths are lognormal like web documents (median 600 tokens, sigma 1.2). CPU time of this process; the packers are
compiled before they are timed.

    python benchmarks/packing.py [DOCUMENTS] [SEQUENCE_LENGTH]
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_left, insort
from collections.abc import Callable

import numpy as np

from tokpack_core.packing.strategies import pack
from tokpack_core.packing.truncation import packing_figures

Packs = list[list[tuple[int, int]]]


def web_lengths(documents: int) -> np.ndarray:
    drawn = np.exp(np.random.default_rng(0).normal(np.log(600.0), 1.2, documents))
    return np.clip(drawn, 1, 1 << 20).astype(np.int64)


def bisecting_best_fit(lengths: np.ndarray, capacity: int) -> Packs:
    """Each pack is a list of (document, tokens)."""
    full, rest = lengths // capacity, lengths % capacity
    packs: Packs = [[(d, capacity)] for d in np.repeat(np.arange(lengths.size), full).tolist()]
    rooms: list[int] = []
    open_packs: dict[int, Packs] = {}
    order = np.argsort(-rest, kind="stable")
    for document, length in zip(order.tolist(), rest[order].tolist(), strict=True):
        if length == 0:
            break
        at = bisect_left(rooms, length)
        if at < len(rooms):
            room = rooms[at]
            chosen = open_packs[room].pop()
            if not open_packs[room]:
                del rooms[at], open_packs[room]
        else:
            room, chosen = capacity, []
            packs.append(chosen)
        chosen.append((document, length))
        left = room - length
        if left:
            if left not in open_packs:
                insort(rooms, left)
            open_packs.setdefault(left, []).append(chosen)
    return packs


def in_batches(lengths: np.ndarray, capacity: int) -> Packs:
    return [p for i in range(0, lengths.size, 1_000) for p in bisecting_best_fit(lengths[i : i + 1_000], capacity)]


def cpu_seconds(work: Callable[[], object]) -> tuple[float, object]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def main() -> None:
    documents = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    capacity = int(sys.argv[2]) if len(sys.argv) > 2 else 4096
    lengths = web_lengths(documents)
    tokens = int(lengths.sum())
    bound = -(-tokens // capacity)
    print(f"{documents:,} documents, {tokens:,} tokens, sequence length {capacity}, at least {bound:,} packs\n")
    print(
        f"{'packer':<30}{'documents/CPU-s':>16}{'ratio':>8}{'packs over':>12}{'utilization':>13}"
        f"{'needless':>10}{'unavoidable':>13}{'lost':>6}{'out of context':>16}{'padding':>15}"
    )
    plain = 0.0
    for name, peer in [("plain, whole set", bisecting_best_fit), ("plain, batches of 1,000", in_batches)]:
        seconds, packs = cpu_seconds(lambda peer=peer: peer(lengths, capacity))
        plain = plain or seconds
        print(
            f"{name:<30}{documents / seconds:>16,.0f}{plain / seconds:>8,.1f}{len(packs) - bound:>12,}"
            f"{tokens / (len(packs) * capacity):>13.5f}"
        )
    for strategy in ("best_fit", "concat", "naive"):
        pack(lengths[:1_000], capacity, strategy)
        runs = [cpu_seconds(lambda strategy=strategy: pack(lengths, capacity, strategy)) for _ in range(3)]
        seconds, plan = min(runs, key=lambda run: run[0])
        f = packing_figures(plan, lengths, capacity)
        print(
            f"{'tokpack ' + strategy:<30}{documents / seconds:>16,.0f}{plain / seconds:>8,.1f}{f.packs - bound:>12,}"
            f"{f.utilization:>13.5f}{f.needless_cuts:>10,}{f.unavoidable_cuts:>13,}{f.tokens_lost:>6,}"
            f"{f.out_of_context_tokens:>16,}{f.padding:>15,}"
        )


if __name__ == "__main__":
    main()
