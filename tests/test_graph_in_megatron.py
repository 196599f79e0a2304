"""The real megatron-core reads the graph's own dataset: shards, packs, document views, and GPTDataset's samples.

Expected tokens come from encoding every normalized document one by one; which positions may be trained is derived
here from the documents' borders alone.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.small_project import write_small_project
from tests.test_graph import expected_documents
from tokpack_core.packing.truncation import PackingFigures
from tokpack_core.stages import export, shards

LENGTH = 512


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    project = write_small_project(tmp_path_factory.mktemp("graph"))
    built = project.build()
    dataset = built["megatron_dataset/base"]
    prefixes = [p for p in export.prefixes(dataset) if p.parent.name == "docs"]
    shard_prefixes = [s.folder / "part" for s in shards.read_shards(project.work(), "bpe_600", "docs")]
    train = dataset.folder / "docs" / f"train_{LENGTH}"
    jobs = {
        "datasets": [
            {"prefix": str(prefix), "mmap": True} for p in prefixes for prefix in (p, p.with_name(f"{p.name}_docs"))
        ]
        + [{"prefix": str(p), "mmap": True} for p in shard_prefixes],
        "gpt": [
            {
                "prefix": str(train),
                "sequence_length": LENGTH,
                "eod": dataset.counts["eod"],
                "vocab_size": dataset.counts["vocab_size"],
                "cache": str(tmp_path_factory.mktemp("cache")),
            }
        ],
    }
    oracle = Path(__file__).parent / "megatron_core_oracle.py"
    result = subprocess.run(
        [sys.executable, str(oracle)], input=json.dumps(jobs), capture_output=True, text=True, check=True
    )
    answers = json.loads(result.stdout)
    figures = built["packed_sequences/base"].counts["by_split"]["docs/train"]
    return {
        "eod": dataset.counts["eod"],
        "expected": expected_documents(project, "docs"),
        "datasets": dict(zip((job["prefix"] for job in jobs["datasets"]), answers["datasets"], strict=True)),
        "samples": answers["gpt"][0],
        "train": str(train),
        "prefixes": [str(p) for p in prefixes],
        "shards": [str(p) for p in shard_prefixes],
        "figures": PackingFigures.from_dict(figures),
    }


def test_shards_hold_every_document(read: dict[str, Any]) -> None:
    found = Counter(tuple(s) for prefix in read["shards"] for s in read["datasets"][prefix]["sequences"])
    assert found == Counter(tuple(ids) for ids in read["expected"].values() if ids)


def test_packs_hold_every_token_and_nothing_but_eod_beside(read: dict[str, Any]) -> None:
    tokens = Counter(t for p in read["prefixes"] for s in read["datasets"][p]["sequences"] for t in s)
    wanted = Counter(t for ids in read["expected"].values() for t in ids)
    del tokens[read["eod"]], wanted[read["eod"]]
    assert tokens == wanted


def test_the_document_view_holds_every_document_whole_or_in_chunks(read: dict[str, Any]) -> None:
    whole: Counter[tuple[int, ...]] = Counter()
    for prefix in read["prefixes"]:
        view = read["datasets"][f"{prefix}_docs"]
        packs = read["datasets"][prefix]
        assert [t for s in view["sequences"] for t in s] == [t for s in packs["sequences"] for t in s]
        assert len(view["document_indices"]) == len(packs["sequences"]) + 1
        whole.update(tuple(s) for s in view["sequences"])
    short = [tuple(ids) for ids in read["expected"].values() if 1 < len(ids) <= LENGTH]
    assert len(short) > 20
    assert not Counter(short) - whole


def test_gpt_dataset_gives_each_pack_but_one_exactly(read: dict[str, Any]) -> None:
    packs = Counter(tuple(s) for s in read["datasets"][read["train"]]["sequences"])
    samples = Counter(tuple(sample["tokens"]) for sample in read["samples"])
    assert sum(samples.values()) == sum(packs.values()) - 1
    assert not samples - packs


def test_no_trained_label_is_of_another_document(read: dict[str, Any]) -> None:
    """A document's tokens are followed by its own EOD; a trained label after an EOD, or foreign text, is a leak."""
    follows: dict[tuple[int, ...], set[int]] = {}
    for ids in read["expected"].values():
        for at in range(len(ids) - 1):
            follows.setdefault(tuple(ids[max(0, at - 3) : at + 1]), set()).add(ids[at + 1])
    foreign = 0
    for sample in read["samples"]:
        tokens, labels, mask = sample["tokens"], sample["labels"], sample["loss_mask"]
        for at in range(LENGTH):
            if tokens[at] == read["eod"]:
                assert mask[at] == 0
            elif at < LENGTH - 1:
                assert mask[at] == 1
                begin = max(
                    (k + 1 for k in range(max(0, at - 3), at) if tokens[k] == read["eod"]), default=max(0, at - 3)
                )
                context = tuple(tokens[begin : at + 1])
                assert len(context) < 4 or labels[at] in follows[context]
            else:
                foreign += 1
    assert foreign <= read["figures"].foreign_labels
    assert foreign >= read["figures"].foreign_labels - 1
