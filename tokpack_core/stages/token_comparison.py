"""Tokens of documents against what a shard and the exported packs hold, run by run of equal length, without a loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.megatron.indexed_reader import IndexedReader
from tokpack_core.packing.truncation import PackingFigures
from tokpack_core.stages.trace import DatasetVersion
from tokpack_core.store import objects
from tokpack_core.store.objects import ObjectRef
from tokpack_core.tokenizers.encoded import Encoded

Flags = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Expected:
    """Documents of a shard as they are now.

    Attributes:
        rows: in the shard, ascending.
        ids: as recorded; `renamed` where the source gives another id or no such document.
        tokens: of the text as it is now.
    """

    rows: Int64
    ids: pa.ChunkedArray
    renamed: Flags
    tokens: Encoded


def compare_with_shard(version: DatasetVersion, shard: ObjectRef, documents: Expected) -> Flags:
    """Which documents have other tokens in the shard."""
    reader = IndexedReader(objects.folder_of(version.store, shard) / "part")
    rows, expected = documents.rows, documents.tokens
    bounds = reader.index.document_indices
    lengths = np.concatenate([[0], np.cumsum(reader.index.sequence_lengths, dtype=np.int64)])
    begins, ends = lengths[bounds[rows]], lengths[bounds[rows + 1]]
    differs = ends - begins != np.diff(expected.offsets)
    same = np.flatnonzero(~differs)
    wrong = unequal_runs(reader.tokens, begins[same], expected.ids, expected.offsets[:-1][same], (ends - begins)[same])
    differs[same[wrong]] = True
    return differs


def compare_with_packs(
    version: DatasetVersion,
    plan: dict[str, npt.NDArray[np.int64]],
    part: int,
    documents: Expected,
    meant: Flags,
    packs: IndexedReader,
    first_pack: int,
) -> tuple[Flags, Flags]:
    """Which documents have other tokens at their places in the packs, and of which some are in no pack.

    `meant` are the documents of the packs' split: any other must have no place there.
    """
    rows, expected = documents.rows, documents.tokens
    place = np.full(max(int(rows.max(initial=-1)), int(plan["document"].max(initial=-1))) + 1, -1, np.int64)
    place[rows] = np.arange(rows.size)
    segments = np.flatnonzero(plan["part"] == part)
    document = place[plan["document"][segments]]
    segments, document = segments[document >= 0], document[document >= 0]
    lengths = plan["length"][segments].astype(np.int64)
    begins = (first_pack + plan["pack"][segments]) * version.sequence_length + plan["offset"][segments]
    wrong = unequal_runs(
        packs.tokens, begins, expected.ids, expected.offsets[document] + plan["start"][segments], lengths
    )
    differs = np.zeros(rows.size, np.bool_)
    differs[document[wrong]] = True
    packed = np.bincount(document, lengths, rows.size).astype(np.int64)
    differs |= (packed > 0) & ~meant
    missing = (packed != np.diff(expected.offsets)) & meant
    if not drops_tokens(version):
        differs |= missing
        missing &= False
    return differs, missing


def drops_tokens(version: DatasetVersion) -> bool:
    """Whether a packing policy of the dataset leaves tokens out."""
    figures = objects.read_manifest(version.store, version.plans).counts["figures"]
    return PackingFigures.from_dict(figures).tokens_dropped > 0


def unequal_runs(
    one: npt.NDArray[np.integer], one_begins: Int64, other: npt.NDArray[np.integer], other_begins: Int64, lengths: Int64
) -> Int64:
    """Indices of the runs of `lengths` whose tokens are not the same in both arrays."""
    filled = np.flatnonzero(lengths)
    lengths = lengths[filled]
    ends = np.cumsum(lengths)
    within = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
    left = one[np.repeat(one_begins[filled], lengths) + within]
    right = other[np.repeat(other_begins[filled], lengths) + within]
    if not filled.size:
        return filled
    return filled[np.logical_or.reduceat(left != right, ends - lengths)]
