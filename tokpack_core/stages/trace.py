"""Traces documents and packs through a published dataset: which shard, rows, packs and tokens.

A dataset's own action names its plans and its tokenizer; the plans list their blocks and the shards behind them; a
shard's action names the normalized part. Nothing is looked up by "newest", so an old version is traced as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tokpack_core.errors import InputError, StoreError
from tokpack_core.megatron.indexed_reader import IndexedReader
from tokpack_core.stages import export
from tokpack_core.stages.pack import Block, first_rows, read_blocks
from tokpack_core.store import objects
from tokpack_core.store.lineage import LineageGraph
from tokpack_core.store.objects import ObjectFile, ObjectRef
from tokpack_core.store.store import Store

DESCRIBED = ["id", "lang", "source", "row", "split", "tokens"]


@dataclass(frozen=True)
class DatasetVersion:
    """One published dataset and what it was made from.

    Attributes:
        first_pack: number, within its prefix, of the first pack of each block.
    """

    store: Store
    ref: ObjectRef
    folder: Path
    plans: ObjectRef
    tokenizer: ObjectRef
    sequence_length: int
    align: int
    blocks: list[Block]
    first_pack: list[int]

    def prefix(self, block: Block) -> Path:
        return self.folder / block.corpus / f"{block.split}_{self.sequence_length}"


@dataclass(frozen=True)
class Segment:
    """Where a run of tokens of a document stands: tokens [start, start + length) at `offset` of a pack of `prefix`."""

    prefix: str
    pack: int
    offset: int
    document: str
    start: int
    length: int
    chunk: int
    chunks: int


def open_dataset(store: Store, graph: LineageGraph, ref: ObjectRef) -> DatasetVersion:
    """Raises InputError if `ref` is no dataset, StoreError if what it was made from is gone or damaged."""
    action = graph.action(ref)
    if ref.stage != export.STAGE or action is None:
        raise InputError(f"{ref} is no Megatron dataset; name an asset like megatron_dataset/NAME, or its digest")
    plans = ObjectRef.parse(action.inputs["plans"])
    blocks = read_blocks(objects.require_object(store, plans))
    packs: dict[tuple[str, str], int] = defaultdict(int)
    first = []
    for block in blocks:
        first.append(packs[block.corpus, block.split])
        packs[block.corpus, block.split] += block.packs
    counts = objects.stated_manifest(store, ref).counts
    return DatasetVersion(
        store,
        ref,
        objects.folder_of(store, ref),
        plans,
        ObjectRef.parse(action.inputs["tokenizer"]),
        counts["sequence_length"],
        counts["align"],
        blocks,
        first,
    )


def part_path(store: Store, graph: LineageGraph, shard: ObjectRef) -> Path:
    """The normalized part that a shard was made from.

    Raises:
        StoreError: no object of the store holds it any more.
    """
    action = graph.action(shard)
    sha256 = action.inputs["part"] if action else ""
    for ref in graph.files.get(sha256, []):
        for file in objects.stated_manifest(store, ref).files:
            if file.sha256 == sha256:
                objects.require_files(store, [ObjectFile(ref, file.path)])
                return objects.folder_of(store, ref) / file.path
    raise StoreError(f"{shard}: the normalized text that it was made from is gone; build the dataset again")


def plan_columns(version: DatasetVersion, block: Block) -> dict[str, npt.NDArray[Any]]:
    """A block's plan as arrays, with `offset`: first position of each segment within its pack."""
    table = pq.ParquetFile(objects.require_object(version.store, block.object) / "plan.parquet").read()
    columns = {name: table[name].to_numpy() for name in table.column_names}
    taken = columns["length"].astype(np.int64)
    pieces = first_rows(columns)
    if pieces.size:  # what follows a piece up to the next multiple counts with its last run
        taken[np.append(pieces[1:], taken.size) - 1] += -np.add.reduceat(taken, pieces) % version.align
    ends = np.cumsum(taken)
    starts = ends - taken
    first = np.searchsorted(columns["pack"], columns["pack"])
    return columns | {"offset": starts - starts[first] if starts.size else starts}


def describe_documents(version: DatasetVersion, shard: ObjectRef) -> pa.Table:
    path = objects.require_object(version.store, shard) / "documents.parquet"
    return pq.ParquetFile(path).read(columns=DESCRIBED)


def find_document(version: DatasetVersion, document: str) -> list[dict[str, Any]]:
    """Every document with that id: its shard and row, source and row there, and its segments.

    Raises:
        InputError: no document has that id.
    """
    places = []
    for number, block in enumerate(version.blocks):
        plan: dict[str, npt.NDArray[Any]] = {}
        for part, shard in enumerate(block.shards):
            table = describe_documents(version, shard)
            same = pc.and_(pc.equal(table["id"], document), pc.equal(table["split"], block.split))
            for row in np.flatnonzero(same.to_numpy()):
                plan = plan or plan_columns(version, block)
                chosen = np.flatnonzero((plan["part"] == part) & (plan["document"] == row))
                segments = [segment(version, number, plan, int(at), document) for at in chosen]
                segments.sort(key=lambda s: s.start)
                described = table.slice(int(row), 1).to_pylist()[0]
                place = {"corpus": block.corpus, "shard": str(shard), "shard_row": int(row)}
                places.append(described | place | {"segments": [vars(s) for s in segments]})
    if not places:
        raise InputError(f"no document of {version.ref} has the id {document!r}")
    return places


def tokens_of(version: DatasetVersion, shard: ObjectRef, row: int) -> npt.NDArray[np.integer]:
    """Ids of the document at a row of a shard, EOD included."""
    objects.require_files(version.store, [ObjectFile(shard, "part.bin"), ObjectFile(shard, "part.idx")])
    reader = IndexedReader(objects.folder_of(version.store, shard) / "part")
    first, last = reader.index.document_indices[row : row + 2]
    pieces = [reader.sequence(sequence) for sequence in range(first, last)]
    return np.concatenate(pieces) if pieces else np.zeros(0, reader.index.dtype)


def segment(version: DatasetVersion, block: int, plan: dict[str, npt.NDArray[Any]], at: int, document: str) -> Segment:
    prefix = version.prefix(version.blocks[block]).relative_to(version.folder).as_posix()
    pack_number = version.first_pack[block] + int(plan["pack"][at])
    numbers = (int(plan[name][at]) for name in ("start", "length", "chunk", "chunks"))
    return Segment(prefix, pack_number, int(plan["offset"][at]), document, *numbers)


def documents_of_pack(version: DatasetVersion, prefix: str, number: int) -> list[Segment]:
    """The segments of one pack of `<corpus>/<split>_<S>`, in order.

    Raises:
        InputError: there is no such prefix or pack.
    """
    for at, block in enumerate(version.blocks):
        same = version.prefix(block).relative_to(version.folder).as_posix() == prefix
        inside = number - version.first_pack[at]
        if same and 0 <= inside < block.packs:
            return list(block_pack(version, at, inside))
    prefixes = sorted({version.prefix(b).relative_to(version.folder).as_posix() for b in version.blocks if b.packs})
    raise InputError(f"there is no pack {number} of {prefix!r}; prefixes: {', '.join(prefixes)}, packs count from 0")


def block_pack(version: DatasetVersion, at: int, inside: int) -> Iterator[Segment]:
    block = version.blocks[at]
    plan = plan_columns(version, block)
    ids: dict[int, pa.ChunkedArray] = {}
    for row in np.flatnonzero(plan["pack"] == inside):
        part = int(plan["part"][row])
        if part not in ids:
            ids[part] = describe_documents(version, block.shards[part])["id"]
        yield segment(version, at, plan, int(row), ids[part][int(plan["document"][row])].as_py())
