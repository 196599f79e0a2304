"""Packing speed and quality in one run: our strategies, the algorithms of three trainers, and the usual baselines.

The peers are the published packages' own functions, imported as they stand; one that is not installed is left out and
said so. They need not be in the project's environment (without their torch and CUDA extras they are small):

    pip install --target peers --no-deps trl datasets dill multiprocess xxhash axolotl accelerate ai2-olmo-core
    pip install --target peers cached_path omegaconf bettermap dataclass-extensions google-cloud-storage
    PYTHONPATH=peers python benchmarks/packing.py [DOCUMENTS] [SEQUENCE_LENGTH]

    TRL         trl.data_utils._pack_bfd, the function behind `packing_strategy="bfd"`, over batches of 1,000 documents
                as `pack_dataset` maps it, and over the whole set of up to 2e8 tokens: it copies them by an index of
                each, which takes 20 bytes a token even where the tokens are of Arrow's null type, as here.
    OLMo-core   olmo_core.data.utils.InstancePacker over the whole set.
    Axolotl     axolotl.utils.samplers.multipack.pack_parallel with its sampler's defaults (first fit in groups of
                100,000), one process.

Each packs the pieces of documents longer than a pack, and once more what its defaults leave of the documents: TRL
("bfd") and OLMo-core (`long_doc_strategy`) truncate longer ones, Axolotl (`excess_length_strategy`) drops them.

`plain` is best-fit-decreasing in good plain Python: sorted rooms searched by bisection. Lengths are lognormal like web
documents (median 600 tokens, sigma 1.2). CPU time of this process; what is compiled is compiled before it is timed.
Truncation: cuts of documents that would fit, unavoidable cuts, tokens lost, tokens without the start of their document,
and padding.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from tokpack_core.config import PackingConfig
from tokpack_core.packing.pieces import Pieces, cut
from tokpack_core.packing.plan import PackingPlan
from tokpack_core.packing.policies import pack_documents
from tokpack_core.packing.truncation import packing_figures

Loads = np.ndarray
Packer = Callable[[np.ndarray, int], Loads]
"""From the lengths of pieces, each at most a pack, to the tokens of each pack."""


def web_lengths(documents: int) -> np.ndarray:
    drawn = np.exp(np.random.default_rng(0).normal(np.log(600.0), 1.2, documents))
    return np.clip(drawn, 1, 1 << 20).astype(np.int64)


def bisecting_best_fit(lengths: np.ndarray, capacity: int) -> Loads:
    loads: list[int] = []
    rooms: list[int] = []
    open_packs: dict[int, list[int]] = {}
    for length in np.sort(lengths)[::-1].tolist():
        at = bisect_left(rooms, length)
        if at < len(rooms):
            room = rooms[at]
            chosen = open_packs[room].pop()
            if not open_packs[room]:
                del rooms[at], open_packs[room]
        else:
            room, chosen = capacity, len(loads)
            loads.append(0)
        loads[chosen] += length
        left = room - length
        if left:
            if left not in open_packs:
                insort(rooms, left)
            open_packs.setdefault(left, []).append(chosen)
    return np.array(loads)


def trl_packer(batch: int) -> Packer:
    from trl.data_utils import _pack_bfd

    def loads(lengths: np.ndarray, capacity: int) -> Loads:
        packed = []
        for begin in range(0, lengths.size, batch):
            part = lengths[begin : begin + batch]
            offsets = np.concatenate([[0], np.cumsum(part)])
            tokens = pa.LargeListArray.from_arrays(pa.array(offsets), pa.nulls(int(offsets[-1])))
            table = _pack_bfd(pa.table({"input_ids": tokens}), capacity, "split")
            packed.append(np.diff(table["input_ids"].combine_chunks().offsets.to_numpy()))
        return np.concatenate(packed)

    return loads


def olmo_packer() -> Packer:
    from olmo_core.data.utils import InstancePacker

    def loads(lengths: np.ndarray, capacity: int) -> Loads:
        ends = np.cumsum(lengths)
        bins, ordered, _ = InstancePacker(capacity).pack_documents(np.stack([ends - lengths, ends], 1))
        sizes = ordered[:, 1] - ordered[:, 0]
        return loads_of(bins, sizes)

    return loads


def axolotl_packer() -> Packer:
    from axolotl.utils.samplers.multipack import pack_parallel

    def loads(lengths: np.ndarray, capacity: int) -> Loads:
        bins = pack_parallel(lengths.astype(np.int32), capacity, 100_000, capacity, num_processes=1)
        return loads_of(bins, lengths)

    return loads


def loads_of(bins: Iterable[list[int]], sizes: np.ndarray) -> Loads:
    counts = np.array([len(held) for held in bins])
    items = np.fromiter((item for held in bins for item in held), np.int64, counts.sum())
    return np.add.reduceat(sizes[items], np.cumsum(counts) - counts)


def in_batches(lengths: np.ndarray, capacity: int) -> Loads:
    return np.concatenate([bisecting_best_fit(lengths[i : i + 1_000], capacity) for i in range(0, lengths.size, 1_000)])


MOST_COPIED = 200_000_000
"""Tokens that TRL packs at once."""


def peers() -> Iterable[tuple[str, tuple[str, ...], Packer]]:
    """Name, what it is given (cut, truncated, dropped: what happens to documents longer than a pack), packer."""
    yield "plain, whole set", ("cut",), bisecting_best_fit
    yield "plain, batches of 1,000", ("cut",), in_batches
    for name, given, load in [
        ("TRL, batches of 1,000", ("cut", "truncated"), lambda: trl_packer(1_000)),
        ("TRL, whole set", ("cut",), lambda: trl_packer(1 << 62)),
        ("OLMo-core", ("cut", "truncated"), olmo_packer),
        ("Axolotl", ("cut", "dropped"), axolotl_packer),
    ]:
        try:
            yield name, given, load()
        except ImportError as error:
            print(f"{name}: left out, {error}")


def cpu_seconds(work: Callable[[], object]) -> tuple[float, object]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def show(name: str, seconds: float, plan: PackingPlan, packs: int, lengths: np.ndarray, capacity: int) -> None:
    """One line; the figures of truncation depend on the pieces, those of padding on the number of packs."""
    f = packing_figures(plan, lengths, capacity)
    packed = f.tokens - f.tokens_lost
    filled = packed / (packs * capacity)
    print(
        f"{name:<34}{lengths.size / seconds:>14,.0f}{packs - f.lower_bound_packs:>12,}{filled:>13.5f}"
        f"{f.needless_cuts:>10,}{f.unavoidable_cuts:>13,}{f.tokens_lost:>14,}{f.out_of_context_tokens:>16,}"
        f"{packs * capacity - packed:>15,}"
    )


def alone(pieces: Pieces, given: str, lengths: np.ndarray, capacity: int) -> PackingPlan:
    """The pieces that are packed, each by itself."""
    if given == "cut":
        kept = np.ones(pieces.document.size, bool)
    else:
        kept = pieces.chunk == 0 if given == "truncated" else lengths[pieces.document] <= capacity
    columns = (pieces.document, pieces.start, pieces.length, pieces.chunk, pieces.chunks)
    return PackingPlan(np.arange(kept.sum() + 1, dtype=np.int64), *(column[kept] for column in columns))


def main() -> None:
    documents = int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000
    capacity = int(sys.argv[2]) if len(sys.argv) > 2 else 4096
    lengths = web_lengths(documents)
    pieces = cut(lengths, capacity)
    print(f"{documents:,} documents, {int(lengths.sum()):,} tokens, sequence length {capacity}\n")
    print(
        f"{'packer':<34}{'documents/CPU-s':>16}{'packs over':>10}{'utilization':>13}"
        f"{'needless':>10}{'unavoidable':>13}{'lost':>14}{'out of context':>16}{'padding':>15}"
    )
    ours = [
        PackingConfig(strategy=s, sequence_length=capacity) for s in ("best_fit", "first_fit_decreasing", "first_fit")
    ]
    ours.insert(1, PackingConfig(sequence_length=capacity, noise=0.2))
    ours += [PackingConfig(strategy=s, sequence_length=capacity) for s in ("concat", "naive")]
    for packing in ours:
        pack_documents(lengths[:1_000], packing, b"")
        runs = [cpu_seconds(lambda packing=packing: pack_documents(lengths, packing, b"").plan) for _ in range(3)]
        seconds, plan = min(runs, key=lambda run: run[0])
        name = f"tokpack {packing.strategy}" + (f", noise {packing.noise}" if packing.noise else "")
        show(name, seconds, plan, plan.packs, lengths, capacity)
    for name, givens, packer in peers():
        for given in givens:
            if name == "TRL, whole set" and int(lengths.sum()) > MOST_COPIED:
                print(f"{name}: left out, more than {MOST_COPIED:,} tokens")
                continue
            plan = alone(pieces, given, lengths, capacity)
            sizes = plan.length.astype(np.int64)
            packer(sizes[:1_000], capacity)
            seconds, loads = cpu_seconds(lambda packer=packer, sizes=sizes: packer(sizes, capacity))
            if int(loads.sum()) != int(sizes.sum()) or loads.max() > capacity:
                print(f"{name}: gives {int(loads.sum()):,} tokens, not {int(sizes.sum()):,}")
            show(f"{name}, {given}", seconds, plan, loads.size, lengths, capacity)


if __name__ == "__main__":
    main()
