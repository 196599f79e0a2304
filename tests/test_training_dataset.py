"""PackedDataset and PackBatches: maps, pickles, workers, order, resuming, ranks, faulty files."""

from __future__ import annotations

import pickle
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from tests.training_sets import SEQUENCE_LENGTH, write_interleaved_set, write_text_set
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import bin_path, idx_path
from tokpack_core.training.collators import flatten, megatron_batch
from tokpack_core.training.pack_batches import PackBatches
from tokpack_core.training.packed_dataset import PackedDataset
from tokpack_core.training.segments import ImageAttention
from tokpack_core.training.segments_file import segments_path


def test_packs_are_read_only_views_of_one_map(tmp_path: Path) -> None:
    write_text_set(tmp_path / "set", "best_fit", 32_000)
    dataset = PackedDataset(tmp_path / "set", eod=0)
    first, second = dataset[0], dataset[1]
    assert first.tokens.dtype == np.uint16
    assert not first.tokens.flags.owndata
    assert not first.tokens.flags.writeable
    assert second.tokens.ctypes.data - first.tokens.ctypes.data == 2 * SEQUENCE_LENGTH
    for bad in (len(dataset), -1):
        with pytest.raises(IndexError, match=f"no pack {bad}"):
            dataset[bad]


def test_pickling_sends_the_path_only(tmp_path: Path) -> None:
    write_text_set(tmp_path / "set", "best_fit", 32_000)
    dataset = PackedDataset(tmp_path / "set", eod=0)
    pickled = pickle.dumps(dataset)
    assert len(pickled) < 300
    again = pickle.loads(pickled)
    assert all((again[i].tokens == dataset[i].tokens).all() for i in range(len(dataset)))


@pytest.mark.parametrize(("start_method", "workers"), [("fork", 2), ("spawn", 1)])
def test_workers_give_the_batches_of_one_process(tmp_path: Path, start_method: str, workers: int) -> None:
    write_text_set(tmp_path / "set", "best_fit", 32_000)
    dataset = PackedDataset(tmp_path / "set", eod=0)
    order = PackBatches(len(dataset), 2, seed=5, steps=4)
    loader = DataLoader(
        dataset,
        batch_sampler=order,
        collate_fn=megatron_batch,
        num_workers=workers,
        multiprocessing_context=start_method,
    )
    batches = list(loader)
    assert len(batches) == len(loader) == 4
    for step, batch in enumerate(batches):
        expected = megatron_batch([dataset[number] for number in order.batch(step)])
        assert all(torch.equal(batch[name], values) for name, values in expected.items())


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 5), st.integers(0, 3))
def test_ranks_share_every_epoch_without_overlap_or_loss(packs: int, batch_size: int, ranks: int, seed: int) -> None:
    steps = -(-3 * packs // (batch_size * ranks))
    shares = [list(PackBatches(packs, batch_size, seed=seed, rank=r, ranks=ranks, steps=steps)) for r in range(ranks)]
    assert all(len(share) == steps for share in shares)
    stream = [number for step in range(steps) for share in shares for number in share[step]]
    for epoch in range(3):
        assert sorted(stream[epoch * packs : (epoch + 1) * packs]) == list(range(packs))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 4), st.integers(0, 40))
def test_any_step_resumes_the_same_stream(packs: int, batch_size: int, start: int) -> None:
    whole = list(islice(PackBatches(packs, batch_size, rank=1, ranks=2), start + 5))
    resumed = PackBatches(packs, batch_size, rank=1, ranks=2, start_step=start, steps=start + 5)
    assert list(resumed) == whole[start:]
    assert len(resumed) == 5


def test_order_depends_on_seed_and_epoch_and_never_changes() -> None:
    numbers = list(islice(PackBatches(10, 10, seed=1), 2))
    # A change of these would reorder every run that is resumed.
    assert numbers == [[5, 8, 4, 1, 7, 3, 9, 6, 2, 0], [4, 0, 1, 8, 3, 6, 5, 7, 9, 2]]
    assert next(iter(PackBatches(10, 10, seed=2))) != numbers[0]
    uses = Counter(next(iter(PackBatches(10, 1, seed=seed)))[0] for seed in range(300))
    assert set(uses) == set(range(10))


def test_endless_batches_have_no_length() -> None:
    with pytest.raises(TypeError, match="steps"):
        len(PackBatches(3, 1))
    for packs, batch_size, rank, ranks in ((0, 1, 0, 1), (1, 0, 0, 1), (1, 1, 1, 1)):
        with pytest.raises(InputError, match="rank"):
            PackBatches(packs, batch_size, rank=rank, ranks=ranks)


def test_faulty_sets_are_refused_by_name(tmp_path: Path) -> None:
    prefix = tmp_path / "set"
    write_text_set(prefix, "best_fit", 32_000, with_segments=True)
    rows = segments_path(tmp_path / "set_docs")
    good = rows.read_bytes()
    rows.write_bytes(good[:-5])
    with pytest.raises(InputError, match=r"set_docs\.segments\.npy"):
        PackedDataset(prefix)
    rows.write_bytes(good[:20])
    with pytest.raises(InputError, match=r"set_docs\.segments\.npy"):
        PackedDataset(prefix)
    np.save(rows, np.zeros(3, np.int64))
    with pytest.raises(InputError, match="export both again"):
        PackedDataset(prefix)
    rows.unlink()
    with pytest.raises(InputError, match="eod"):
        PackedDataset(prefix)
    tokens = bin_path(prefix)
    tokens.write_bytes(tokens.read_bytes()[:-2])
    with pytest.raises(InputError, match=r"set\.bin has"):
        PackedDataset(prefix, eod=0)


def test_segments_that_do_not_fill_their_pack_are_found(tmp_path: Path) -> None:
    write_text_set(tmp_path / "set", "best_fit", 32_000)
    index = idx_path(tmp_path / "set_docs")
    dataset = PackedDataset(tmp_path / "set", eod=0)
    first = dataset[0].segments.length.size
    data = bytearray(index.read_bytes())
    lengths = np.frombuffer(data, "<i4", offset=34, count=first + 1)
    lengths[first - 1] += 1
    lengths[first] -= 1
    index.write_bytes(data)
    with pytest.raises(InputError, match="pack 0"):
        PackedDataset(tmp_path / "set", eod=0)[0]


def test_images_without_their_segments_file_are_refused_and_cu_seqlens_are_not_made_of_them(tmp_path: Path) -> None:
    prefix = tmp_path / "set"
    packs = [[[("text", 4), ("image", 8)], [("text", 4)]]]
    tokens = write_interleaved_set(prefix, packs, 16, ImageAttention.CAUSAL)
    pack = PackedDataset(prefix)[0]
    assert pack.tokens.tolist() == tokens[0].tolist()
    assert pack.segments.document.tolist() == [0, 0, 1]
    for collate in (flatten, megatron_batch):
        with pytest.raises(InputError, match="flatten_visible"):
            collate([pack])
    segments_path(tmp_path / "set_docs").unlink()
    with pytest.raises(InputError, match="has images"):
        PackedDataset(prefix, eod=0)
