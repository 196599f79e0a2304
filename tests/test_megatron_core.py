"""The real megatron-core reads what we write: IndexedDataset token by token, GPTDataset sample by sample."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokpack_core.config import PackingConfig, Strategy
from tokpack_core.megatron.export import PackedWriter, TokenSource
from tokpack_core.megatron.indexed_dataset import dtype_for, read_index
from tokpack_core.megatron.indexed_reader import IndexedReader
from tokpack_core.megatron.shards import ShardWriter
from tokpack_core.packing.image_spans import ImageSpans, document_runs, mode_runs
from tokpack_core.packing.permutation import permuted
from tokpack_core.packing.plan import PackingPlan
from tokpack_core.packing.policies import pack_documents
from tokpack_core.packing.strategies import pack
from tokpack_core.packing.truncation import packing_figures
from tokpack_core.training.segments import ImageAttention

SEQUENCE_LENGTH = 32
EOD = 0
VOCABULARIES = {"narrow": 32_000, "wide": 150_000}
STRATEGIES: tuple[Strategy, ...] = ("naive", "concat", "best_fit")
CASES = [(name, strategy) for name in VOCABULARIES for strategy in STRATEGIES]


@dataclass(frozen=True)
class Encoded:
    ids: np.ndarray
    offsets: np.ndarray


@dataclass(frozen=True)
class Export:
    folder: Path
    documents: list[list[int]]
    plan: PackingPlan
    order: list[int]

    def prefix(self, name: str) -> str:
        return str(self.folder / name)

    def pack_positions(self, pack: int) -> list[tuple[int, int] | None]:
        """(document, token number) at each position of a pack, None in the filled tail."""
        rows = range(self.plan.pack_offsets[pack], self.plan.pack_offsets[pack + 1])
        positions: list[tuple[int, int] | None] = []
        for s in rows:
            first = int(self.plan.start[s])
            positions += [(int(self.plan.document[s]), t) for t in range(first, first + int(self.plan.length[s]))]
        return positions + [None] * (SEQUENCE_LENGTH - len(positions))

    def pack_tokens(self, pack: int) -> list[int]:
        return [EOD if p is None else self.documents[p[0]][p[1]] for p in self.pack_positions(pack)]


def random_documents(vocab_size: int) -> list[list[int]]:
    """Empty, tiny, exactly one pack, and longer than several packs; each non-empty one ends in its only EOD."""
    rng = np.random.default_rng(vocab_size)
    sizes = [0, 0, 1, SEQUENCE_LENGTH, 3 * SEQUENCE_LENGTH, 100, *rng.integers(0, 45, 90).tolist(), 0]
    return [[*rng.integers(1, vocab_size, size - 1).tolist(), EOD] if size else [] for size in sizes]


def export(folder: Path, vocab_size: int, strategy: Strategy) -> Export:
    folder.mkdir(parents=True)
    documents = random_documents(vocab_size)
    lengths = np.array([len(tokens) for tokens in documents])
    ids = np.array([token for tokens in documents for token in tokens], np.int32)
    dtype = dtype_for(vocab_size)
    with ShardWriter(folder / "shard", dtype, vocab_size) as shard:
        shard.append(Encoded(ids, np.concatenate([[0], np.cumsum(lengths)])))
    plan = pack(lengths, SEQUENCE_LENGTH, strategy)
    order = permuted(plan.packs, b"test")
    source = TokenSource(
        [IndexedReader(folder / "shard").tokens], np.zeros(lengths.size, np.int32), np.cumsum(lengths) - lengths
    )
    with PackedWriter(folder / "packed", folder / "packed_docs", dtype, SEQUENCE_LENGTH, EOD) as writer:
        writer.write_block(plan, order, source)
    return Export(folder, documents, plan, order.tolist())


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Export]:
    root = tmp_path_factory.mktemp("exports")
    return {(name, s): export(root / name / s, VOCABULARIES[name], s) for name, s in CASES}


@dataclass(frozen=True)
class InterleavedExport:
    """Documents of (tokens, mode) runs, in shards and in packs."""

    folder: Path
    documents: list[list[tuple[list[int], int]]]

    def prefix(self, name: str) -> str:
        return str(self.folder / name)


def export_interleaved(folder: Path, vocab_size: int) -> InterleavedExport:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    placeholder = vocab_size - 1
    documents: list[list[tuple[list[int], int]]] = [[]]
    for number in range(80):
        runs: list[tuple[list[int], int]] = []
        for _ in range(int(rng.integers(0, 6))):
            if rng.random() < 0.6 or (runs and runs[-1][1] == 0):
                runs.append(([placeholder] * int(rng.integers(1, 21)), 1))
            else:
                runs.append((rng.integers(1, placeholder, int(rng.integers(1, 30))).tolist(), 0))
        end = [] if runs and runs[-1][1] == 0 else [([EOD], 0)]
        if not end:
            runs[-1][0].append(EOD)
        documents.append(runs + end if number else [])
    lengths = np.array([sum(len(tokens) for tokens, _ in runs) for runs in documents])
    starts, sizes, offsets = [], [], [0]
    for runs in documents:
        ends = np.cumsum([len(tokens) for tokens, _ in runs])
        starts += [int(end) - len(tokens) for end, (tokens, mode) in zip(ends, runs, strict=True) if mode]
        sizes += [len(tokens) for tokens, mode in runs if mode]
        offsets.append(len(starts))
    images = ImageSpans(*(np.array(values, np.int64) for values in (offsets, starts, sizes)))
    ids = np.array([token for runs in documents for tokens, _ in runs for token in tokens], np.int32)
    dtype = dtype_for(vocab_size)
    with ShardWriter(folder / "shard", dtype, vocab_size) as shard:
        shard.append(Encoded(ids, np.concatenate([[0], np.cumsum(lengths)])), document_runs(lengths, images))
    packing = PackingConfig(sequence_length=SEQUENCE_LENGTH, images_per_pack=2, align=4)
    plan = pack_documents(lengths, packing, b"", images).plan
    tokens = IndexedReader(folder / "shard").tokens
    source = TokenSource([tokens], np.zeros(lengths.size, np.int32), np.cumsum(lengths) - lengths)
    names = folder / "packed", folder / "packed_docs"
    with PackedWriter(*names, dtype, SEQUENCE_LENGTH, EOD, 4, ImageAttention.CAUSAL) as writer:
        writer.write_block(plan, np.arange(plan.packs), source, mode_runs(plan, images))
    return InterleavedExport(folder, documents)


@pytest.fixture(scope="module")
def interleaved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, InterleavedExport]:
    root = tmp_path_factory.mktemp("interleaved")
    return {name: export_interleaved(root / name, vocab_size) for name, vocab_size in VOCABULARIES.items()}


@pytest.fixture(scope="module")
def oracle(
    exports: dict[tuple[str, str], Export],
    interleaved: dict[str, InterleavedExport],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """What megatron-core reads, by dataset and by case; its import is slow, so one process reads everything."""
    datasets = [
        {"prefix": e.prefix(name), "mmap": mmap}
        for e in exports.values()
        for name in ("shard", "packed", "packed_docs")
        for mmap in (True, False)
    ]
    datasets += [
        {"prefix": e.prefix(name), "mmap": mmap, "multimodal": True}
        for e in interleaved.values()
        for name in ("shard", "packed_docs")
        for mmap in (True, False)
    ]
    cache = tmp_path_factory.mktemp("cache")
    gpt = [
        {
            "prefix": e.prefix("packed"),
            "sequence_length": SEQUENCE_LENGTH,
            "eod": EOD,
            "vocab_size": VOCABULARIES[name],
            "cache": str(cache / name / strategy),
        }
        for (name, strategy), e in exports.items()
    ]
    script = Path(__file__).with_name("megatron_core_oracle.py")
    request = json.dumps({"datasets": datasets, "gpt": gpt})
    run = subprocess.run([sys.executable, script], input=request, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    answers = json.loads(run.stdout)
    return {
        "datasets": dict(zip([(d["prefix"], d["mmap"]) for d in datasets], answers["datasets"], strict=True)),
        "gpt": dict(zip(exports, answers["gpt"], strict=True)),
    }


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_indexed_dataset_reads_the_same_arrays_and_tokens(
    exports: dict[tuple[str, str], Export], oracle: dict[str, Any], case: tuple[str, str], mmap: bool
) -> None:
    e = exports[case]
    read = {name: oracle["datasets"][e.prefix(name), mmap] for name in ("shard", "packed", "packed_docs")}
    assert read["shard"]["sequences"] == [tokens for tokens in e.documents if tokens]
    assert np.diff(read["shard"]["document_indices"]).tolist() == [int(bool(tokens)) for tokens in e.documents]
    assert read["packed"]["sequences"] == [e.pack_tokens(pack) for pack in e.order]
    assert read["packed"]["document_indices"] == list(range(e.plan.packs + 1))
    docs = read["packed_docs"]
    edges = docs["document_indices"]
    for number, number_of_pack in enumerate(e.order):
        pieces = docs["sequences"][edges[number] : edges[number + 1]]
        assert [token for piece in pieces for token in piece] == e.pack_tokens(number_of_pack)
        segments = e.plan.length[e.plan.pack_offsets[number_of_pack] : e.plan.pack_offsets[number_of_pack + 1]].tolist()
        tail = SEQUENCE_LENGTH - sum(segments)
        assert [len(piece) for piece in pieces] == segments + [tail] * (tail > 0)
    for name, got in read.items():
        index = read_index(e.folder / f"{name}.idx")
        assert got["dtype"] == index.dtype.name == ("uint16" if case[0] == "narrow" else "int32")
        assert got["sequence_lengths"] == index.sequence_lengths.tolist()
        assert got["sequence_pointers"] == index.sequence_pointers.tolist()
        assert got["document_indices"] == index.document_indices.tolist()


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("name", VOCABULARIES)
def test_multimodal_indexed_dataset_reads_runs_and_modes(
    interleaved: dict[str, InterleavedExport], oracle: dict[str, Any], name: str, mmap: bool
) -> None:
    e = interleaved[name]
    shard = oracle["datasets"][e.prefix("shard"), mmap]
    read = list(zip(shard["sequences"], shard["modes"], strict=True))
    assert read == [run for runs in e.documents for run in runs]
    assert np.diff(shard["document_indices"]).tolist() == [len(runs) for runs in e.documents]
    packed = oracle["datasets"][e.prefix("packed_docs"), mmap]
    edges = packed["document_indices"]
    images = []
    for begin, end in pairwise(edges):
        sequences, modes = packed["sequences"][begin:end], packed["modes"][begin:end]
        assert sum(map(len, sequences)) == SEQUENCE_LENGTH
        assert sum(modes) <= 2
        images += [tokens for tokens, mode in zip(sequences, modes, strict=True) if mode]
        assert all(
            VOCABULARIES[name] - 1 not in tokens for tokens, mode in zip(sequences, modes, strict=True) if not mode
        )
    assert sorted(images) == sorted(tokens for runs in e.documents for tokens, mode in runs if mode)


@pytest.mark.parametrize("case", CASES)
def test_every_gpt_sample_is_exactly_one_pack(
    exports: dict[tuple[str, str], Export], oracle: dict[str, Any], case: tuple[str, str]
) -> None:
    e, samples = exports[case], oracle["gpt"][case]
    packs = sorted(e.pack_tokens(pack) for pack in range(e.plan.packs))
    read = sorted(sample["tokens"] for sample in samples)
    assert len(read) == e.plan.packs - 1
    for tokens in read:
        packs.remove(tokens)  # raises when a sample is no pack, or one pack twice
    assert len(packs) == 1
    for sample in samples:
        assert sample["labels"][:-1] == sample["tokens"][1:]


@pytest.mark.parametrize("case", CASES)
def test_no_trained_label_crosses_a_document_except_after_a_chunk_that_fills_its_pack(
    exports: dict[tuple[str, str], Export], oracle: dict[str, Any], case: tuple[str, str]
) -> None:
    e, samples = exports[case], oracle["gpt"][case]
    unread = {number: e.pack_tokens(number) for number in range(e.plan.packs)}
    foreign = 0
    for sample in samples:
        number = next(number for number, tokens in unread.items() if tokens == sample["tokens"])
        del unread[number]
        positions = e.pack_positions(number)
        followed = [a is not None and b == (a[0], a[1] + 1) for a, b in pairwise(positions)]
        assert [bool(trained) for trained in sample["loss_mask"]] == [*followed, ends_unfinished(e, number)]
        foreign += ends_unfinished(e, number)
        first_of: dict[int, int] = {}
        for at, here in enumerate(positions):
            if here is not None:
                assert sample["position_ids"][at] == at - first_of.setdefault(here[0], at)
    figures = packing_figures(e.plan, np.array([len(tokens) for tokens in e.documents]), SEQUENCE_LENGTH)
    assert foreign > 0
    assert foreign + sum(ends_unfinished(e, number) for number in unread) == figures.foreign_labels


def ends_unfinished(e: Export, number: int) -> bool:
    """Whether the last position of a pack has a token whose document goes on elsewhere."""
    last = e.pack_positions(number)[-1]
    return last is not None and last[1] + 1 < len(e.documents[last[0]])
