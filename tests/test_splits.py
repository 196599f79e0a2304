"""Splits and samples: exact thresholds, stability, and independence of one from the other."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tokpack_core.config import SplitShares
from tokpack_core.corpus.document_hash import text_hash
from tokpack_core.corpus.splits import assign_splits, sample_mask

IDS = pa.array([f"document-{k}" for k in range(100_000)])
DOG, COG = "The quick brown fox jumps over the lazy dog", "The quick brown fox jumps over the lazy cog"


def test_published_digests_fall_where_their_leading_digits_say() -> None:
    """First lanes with seed 0 (MurmurHash3's published digests): hell 0x6299…, dog 0xe34b…, cog 0x658c…."""
    ids = pa.array(["hell", DOG, COG])
    share = 0x629942693E10F867 / 2**64
    assert assign_splits(ids, SplitShares(train=0.39, valid=0.5, test=0.11), 0).to_pylist() == [
        "train",
        "valid",
        "valid",
    ]
    assert assign_splits(ids, SplitShares(train=0.38, valid=0.01, test=0.61), 0).to_pylist() == [
        "valid",
        "test",
        "test",
    ]
    assert 0.38 < share < 0.39


def test_thresholds_are_exact() -> None:
    shares = SplitShares(train=0.7, valid=0.2, test=0.1)
    total = sum(map(Fraction, (0.7, 0.2, 0.1)))
    splits = assign_splits(IDS, shares, 7).to_pylist()
    for number, split in zip(text_hash(IDS, 7)[:, 0].tolist(), splits, strict=True):
        position = Fraction(number >> 1, 2**63) * total
        assert split == (
            "train" if position < Fraction(0.7) else "valid" if position < Fraction(0.7) + Fraction(0.2) else "test"
        )


def test_shares_are_met() -> None:
    splits = assign_splits(IDS, SplitShares(train=0.98, valid=0.01, test=0.01), 0)
    counts = {row["values"]: row["counts"] for row in pc.value_counts(splits).to_pylist()}
    assert counts.keys() == {"train", "valid", "test"}
    assert counts["valid"] == pytest.approx(1000, abs=5 * 31)
    assert counts["test"] == pytest.approx(1000, abs=5 * 31)


@pytest.mark.parametrize("only", ["train", "valid", "test"])
def test_a_share_of_zero_gets_nothing(only: str) -> None:
    shares = SplitShares(**({"train": 0.0} | {only: 1.0}))
    assert pc.unique(assign_splits(IDS, shares, 3)).to_pylist() == [only]


def test_float_shares_that_sum_to_one_only_nearly_leave_no_document_over() -> None:
    shares = SplitShares(train=1 - 9e-10, valid=0.0, test=0.0)
    assert pc.unique(assign_splits(IDS, shares, 0)).to_pylist() == ["train"]


def test_the_split_depends_on_seed_and_id_only() -> None:
    shares = SplitShares(train=0.5, valid=0.3, test=0.2)
    splits = assign_splits(IDS, shares, 1)
    assert splits.type == pa.string()
    shuffled = np.random.default_rng(0).permutation(len(IDS))
    assert assign_splits(IDS.take(pa.array(shuffled)), shares, 1).equals(splits.take(pa.array(shuffled)))
    assert assign_splits(IDS[500:600], shares, 1).equals(splits[500:600])
    agreeing = pc.sum(pc.equal(splits, assign_splits(IDS, shares, 2))).as_py() / len(IDS)
    assert agreeing == pytest.approx(0.5**2 + 0.3**2 + 0.2**2, abs=0.01)


def test_a_larger_train_share_keeps_every_training_document() -> None:
    small = pc.equal(assign_splits(IDS, SplitShares(train=0.5, test=0.5), 0), "train")
    large = pc.equal(assign_splits(IDS, SplitShares(train=0.6, test=0.4), 0), "train")
    assert pc.all(pc.or_(pc.invert(small), large)).as_py()


def test_samples_are_nested_and_independent_of_splits_and_seeds() -> None:
    tenth, fifth = sample_mask(IDS, 0, 0.1), sample_mask(IDS, 0, 0.2)
    assert tenth.mean() == pytest.approx(0.1, abs=0.005)
    assert not (tenth & ~fifth).any()
    train = pc.equal(assign_splits(IDS, SplitShares(train=0.5, test=0.5), 0), "train").to_numpy(zero_copy_only=False)
    assert tenth[train].mean() == pytest.approx(0.1, abs=0.007)
    assert (tenth & sample_mask(IDS, 1, 0.1)).mean() == pytest.approx(0.01, abs=0.002)


def test_ends_of_the_range_of_fractions() -> None:
    assert not sample_mask(IDS, 5, 0.0).any()
    assert sample_mask(IDS, 5, 1.0).all()
    with pytest.raises(ValueError, match="between 0 and 1"):
        sample_mask(IDS, 5, 1.1)
