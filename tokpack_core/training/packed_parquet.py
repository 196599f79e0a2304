"""Packed parquet of Megatron-Bridge and NeMo: `NAME.idx.parquet`, a row a pack, row groups of 500.

    input_ids      list<int32>   documents back to back, without the filled tail
    seq_start_id   list<int32>   first token of each document; the first is 0, the end of the last is not listed
    loss_mask      list<int8>    [tokens]: whether the label of this position is trained; 0 at each document's end

At run time each document gives all but its last token as input and all but its first as labels, so a document of one
token would become an empty sequence; it has nothing to train and is left out. The tail is left out because the reader
takes two EODs in a row for padding and fills rows up itself. Its `answer_only_loss` must stay on: it is what reads
loss_mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tokpack_core.errors import InputError
from tokpack_core.training.layout import cu_seqlens, loss_mask
from tokpack_core.training.packed_dataset import Pack, PackedDataset
from tokpack_core.training.segments import FILL, document_ends

ENDING = ".idx.parquet"
ROW_GROUP = 500
SCHEMA = pa.schema(
    {"input_ids": pa.list_(pa.int32()), "seq_start_id": pa.list_(pa.int32()), "loss_mask": pa.list_(pa.int8())}
)


@dataclass(frozen=True)
class Row:
    """One pack as Megatron-Bridge reads it."""

    input_ids: npt.NDArray[np.int32]
    seq_start_id: npt.NDArray[np.int32]
    loss_mask: npt.NDArray[np.int8]
    left_out: int
    """Documents of one token."""


@dataclass(frozen=True)
class Written:
    """What a file holds; `left_out` are the documents of one token."""

    rows: int
    documents: int
    left_out: int


def write_packed_parquet(dataset: PackedDataset, path: Path) -> Written:
    """Write all packs that have something to train; memory is that of one row group.

    Raises InputError when the name does not end in .idx.parquet, by which it is recognized, or a pack has images.
    """
    if not path.name.endswith(ENDING):
        raise InputError(f"{path} must end in {ENDING}: Megatron-Bridge knows packed parquet by its name")
    rows = documents = left_out = 0
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for group in row_groups(dataset):
            left_out += sum(row.left_out for row in group)
            filled = [row for row in group if row.seq_start_id.size]
            columns = [pa.array([getattr(row, field.name) for row in filled], field.type) for field in SCHEMA]
            writer.write_table(pa.table(columns, schema=SCHEMA))
            rows += len(filled)
            documents += sum(row.seq_start_id.size for row in filled)
    return Written(rows, documents, left_out)


def row_groups(dataset: PackedDataset) -> Iterator[list[Row]]:
    for begin in range(0, len(dataset), ROW_GROUP):
        yield [bridge_row(dataset[i]) for i in range(begin, min(begin + ROW_GROUP, len(dataset)))]


def bridge_row(pack: Pack) -> Row:
    """The documents of a pack that have at least two tokens."""
    if not pack.segments.causal:
        raise InputError("a pack has image blocks, and packed parquet is text only: use the Megatron dataset")
    edges = cu_seqlens(pack.segments)
    lengths = np.diff(edges)
    real = pack.segments.document[document_ends(pack.segments)] != FILL
    kept = real & (lengths > 1)
    tokens = np.repeat(kept, lengths)
    starts = np.cumsum(lengths[kept]) - lengths[kept]
    return Row(
        pack.tokens[tokens].astype(np.int32),
        starts.astype(np.int32),
        loss_mask(pack.segments)[tokens].astype(np.int8),
        int((real & ~kept).sum()),
    )
