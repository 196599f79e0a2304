"""Packed parquet, read the way Megatron-Bridge reads it: label by label against the documents."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.training_sets import write_interleaved_set, write_text_set
from tokpack_core.errors import InputError
from tokpack_core.training.packed_dataset import PackedDataset
from tokpack_core.training.packed_parquet import write_packed_parquet
from tokpack_core.training.segments import ImageAttention


def bridge_samples(row: dict[str, list[int]]) -> list[tuple[list[int], list[int], list[int]]]:
    """Inputs, labels and loss mask of each document, as GPTSFTPackedDataset cuts a row (answer_only_loss)."""
    bounds = [*row["seq_start_id"], len(row["input_ids"])]
    cuts = list(pairwise(bounds))
    return [(row["input_ids"][a : b - 1], row["input_ids"][a + 1 : b], row["loss_mask"][a : b - 1]) for a, b in cuts]


@pytest.mark.parametrize("strategy", ["best_fit", "concat", "naive"])
def test_every_document_and_label_comes_back(tmp_path: Path, strategy: str) -> None:
    written = write_text_set(tmp_path / "set", strategy, 150_000, with_segments=True)
    dataset = PackedDataset(tmp_path / "set")
    figures = write_packed_parquet(dataset, tmp_path / "set.idx.parquet")
    file = pq.ParquetFile(tmp_path / "set.idx.parquet")
    assert file.schema_arrow.field("input_ids").type == pa.list_(pa.int32())
    assert file.schema_arrow.field("seq_start_id").type == pa.list_(pa.int32())
    assert file.schema_arrow.field("loss_mask").type == pa.list_(pa.int8())
    rows = iter(file.read().to_pylist())
    short = 0
    for number in range(len(dataset)):
        pieces = written.pieces(number)
        kept = [piece for piece in pieces if len(piece) > 1]
        short += len(pieces) - len(kept)
        if not kept:
            continue
        row = next(rows)
        assert row["seq_start_id"][0] == 0
        assert len(row["loss_mask"]) == len(row["input_ids"])
        assert bridge_samples(row) == [(p[:-1], p[1:], [1] * (len(p) - 1)) for p in kept]
    assert next(rows, None) is None
    assert figures.left_out == short > 0
    assert figures.rows == file.metadata.num_rows


def test_row_groups_of_500(tmp_path: Path) -> None:
    packs = [[[("text", 5)], [("text", 3)]]] * 1_201
    write_interleaved_set(tmp_path / "set", packs, 8, ImageAttention.CAUSAL)
    figures = write_packed_parquet(PackedDataset(tmp_path / "set"), tmp_path / "set.idx.parquet")
    metadata = pq.read_metadata(tmp_path / "set.idx.parquet")
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [500, 500, 201]
    assert (figures.rows, figures.documents, figures.left_out) == (1_201, 2_402, 0)


def test_images_and_other_names_are_refused(tmp_path: Path) -> None:
    write_interleaved_set(tmp_path / "set", [[[("image", 8)]]], 8, ImageAttention.CAUSAL)
    dataset = PackedDataset(tmp_path / "set")
    with pytest.raises(InputError, match="image blocks"):
        write_packed_parquet(dataset, tmp_path / "set.idx.parquet")
    with pytest.raises(InputError, match=r"must end in \.idx\.parquet"):
        write_packed_parquet(dataset, tmp_path / "set.parquet")
