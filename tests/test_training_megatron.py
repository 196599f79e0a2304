"""PackedGPTDataset in the real megatron-core: samples are packs with exact boundaries, positions and labels."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training_examples import example
from tests.training_sets import EOD, SEQUENCE_LENGTH, TextSet, write_interleaved_set, write_text_set
from tokpack_core.config import Strategy
from tokpack_core.megatron.indexed_dataset import idx_path, write_index
from tokpack_core.training.collators import megatron_batch
from tokpack_core.training.packed_dataset import PackedDataset
from tokpack_core.training.segments import ImageAttention
from tokpack_core.training.visibility import dense_mask
from tokpack_core.training.visible_keys import visibility

CASES: list[tuple[Strategy, int, bool, bool]] = [
    ("best_fit", 32_000, True, False),
    ("concat", 150_000, True, True),
    ("naive", 32_000, False, False),
]
"""Strategy, vocabulary, whether Megatron reads S + 1 tokens, whether it wants the mask."""
INTERLEAVED = [[[("text", 9), ("image", 12)], [("text", 11)]], [[("image", 16), ("text", 4)]], [[("text", 32)]]]


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> list[TextSet]:
    folder = tmp_path_factory.mktemp("sets")
    return [write_text_set(folder / f"{case[0]}_{SEQUENCE_LENGTH}", case[0], case[1]) for case in CASES]


@pytest.fixture(scope="module")
def interleaved(tmp_path_factory: pytest.TempPathFactory) -> PackedDataset:
    prefix = tmp_path_factory.mktemp("interleaved") / "set"
    tokens = write_interleaved_set(prefix, INTERLEAVED, SEQUENCE_LENGTH, ImageAttention.CAUSAL)
    packs = [SEQUENCE_LENGTH] * len(INTERLEAVED)
    write_index(idx_path(prefix), tokens.dtype, torch.tensor(packs).numpy(), torch.arange(len(packs) + 1).numpy())
    return PackedDataset(prefix)


@pytest.fixture(scope="module")
def oracle(sets: list[TextSet], interleaved: PackedDataset, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The import of megatron-core is slow, so one process answers everything."""
    cache: Path = tmp_path_factory.mktemp("cache")
    kinds = [(one.prefix, case[1], case[2], case[3]) for one, case in zip(sets, CASES, strict=True)]
    kinds.append((interleaved.prefix, 32_000, False, True))
    jobs = [
        {
            "prefix": str(prefix),
            "sequence_length": SEQUENCE_LENGTH,
            "eod": EOD,
            "vocab_size": vocab_size,
            "cache": str(cache / str(number)),
            "extra_token": extra_token,
            "attention_mask": attention_mask,
        }
        for number, (prefix, vocab_size, extra_token, attention_mask) in enumerate(kinds)
    ]
    request = json.dumps({"sets": jobs, "code": example("Megatron-Core"), "many": 3 * len(sets[0].order) - 4})
    command = [sys.executable, "-m", "tests.megatron_training_oracle"]
    root = Path(__file__).parent.parent
    run = subprocess.run(command, input=request, capture_output=True, text=True, check=False, cwd=root)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("case", range(len(CASES)), ids=[str(case) for case in CASES])
def test_every_sample_is_a_pack_with_exact_boundaries(sets: list[TextSet], oracle: dict[str, Any], case: int) -> None:
    written, samples = sets[case], oracle["samples"][case]
    _, _, extra_token, attention_mask = CASES[case]
    assert len(samples) == len(written.order) - extra_token
    unread = {number: written.tokens(number) for number in range(len(written.order))}
    for sample in samples:
        number = next(number for number, tokens in unread.items() if tokens == sample["tokens"])
        del unread[number]
        pieces, tail = [len(piece) for piece in written.pieces(number)], written.places(number).count(None)
        lengths = pieces + [tail] * (tail > 0)
        assert sample["labels"][:-1] == sample["tokens"][1:]
        assert sample["loss_mask"] == [float(flag) for flag in written.trained(number)]
        assert sample["position_ids"] == [i for length in lengths for i in range(length)]
        edges = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
        assert sample["cu_seqlens"] == edges + [SEQUENCE_LENGTH] * (SEQUENCE_LENGTH + 1 - len(edges))
        assert sample["max_seqlen"] == max(lengths)
        assert ("attention_mask" in sample) is attention_mask
        if attention_mask:
            owner = [i for i, length in enumerate(lengths) for _ in range(length)]
            masked = [[k > q or owner[k] != owner[q] for k in range(SEQUENCE_LENGTH)] for q in range(SEQUENCE_LENGTH)]
            assert sample["attention_mask"] == [masked]
    assert len(unread) == extra_token


def test_samples_stay_packs_over_several_epochs(sets: list[TextSet], oracle: dict[str, Any]) -> None:
    written = sets[0]
    assert len(oracle["epochs"]) >= 3 * len(written.order) - 4
    read = Counter(tuple(tokens) for tokens in oracle["epochs"])
    packs = Counter(tuple(written.tokens(number)) for number in range(len(written.order)))
    assert set(read) == set(packs)
    assert all(2 * times <= read[tokens] <= 3 * times for tokens, times in packs.items())


def test_filler_samples_train_nothing(oracle: dict[str, Any]) -> None:
    for sample in oracle["filler"]:
        assert not any(sample["loss_mask"])


def test_image_blocks_come_with_their_mask(interleaved: PackedDataset, oracle: dict[str, Any]) -> None:
    samples = oracle["samples"][len(CASES)]
    assert len(samples) == len(interleaved)
    by_tokens = {tuple(interleaved[i].tokens.tolist()): interleaved[i] for i in range(len(interleaved))}
    for sample in samples:
        pack = by_tokens.pop(tuple(sample["tokens"]))
        expected = ~dense_mask(torch.from_numpy(visibility(pack.segments))[None])
        assert sample["attention_mask"] == expected.tolist()


def test_the_example_of_the_documentation_runs(oracle: dict[str, Any]) -> None:
    assert len(oracle["example"]) == len(oracle["samples"][0])
    assert oracle["example"][0] == [sample["max_seqlen"] for sample in oracle["samples"][0][:1]]


def test_another_sequence_length_is_refused(oracle: dict[str, Any]) -> None:
    assert f"train with --seq-length {SEQUENCE_LENGTH}" in oracle["refused"]


def test_the_collator_gives_the_same_as_megatron(sets: list[TextSet], oracle: dict[str, Any]) -> None:
    dataset = PackedDataset(sets[2].prefix, EOD)
    batch = megatron_batch([dataset[i] for i in range(len(dataset))])
    by_tokens = {tuple(sample["tokens"]): sample for sample in oracle["samples"][2]}
    for row, tokens in enumerate(batch["tokens"].tolist()):
        sample = by_tokens[tuple(tokens)]
        assert {name: values[row].tolist() for name, values in batch.items()} == sample
