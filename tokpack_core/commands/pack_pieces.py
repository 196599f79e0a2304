"""Which piece of which document each part of a pack is, where a plan was kept: beside a prefix, or in the store."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow.parquet as pq

from tokpack_core.commands.pack import PLAN_ENDING
from tokpack_core.commands.run_manifest import manifest_of
from tokpack_core.commands.store_access import graph_of, store_around
from tokpack_core.megatron.indexed_dataset import bin_path
from tokpack_core.stages import pack as pack_stage
from tokpack_core.store import objects
from tokpack_core.store.lineage import object_at
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store

PIECE_COLUMNS = ("part", "input", "document", "chunk", "chunks")
"""What rows of one piece share, as far as a plan has it."""


@dataclass(frozen=True)
class Piece:
    """Piece `chunk` (0-based) of the `chunks` of a document."""

    length: int
    chunk: int
    chunks: int


@dataclass(frozen=True)
class KnownPack:
    """What the plan says of one pack."""

    pieces: list[Piece]
    align: int


def find_pack(prefix: Path, number: int) -> KnownPack | None:
    """The plan of pack `number` of a prefix, None where none was kept."""
    prefix = prefix.with_name(prefix.name.removesuffix("_docs"))
    store = store_around(prefix)
    ref = object_at(store, prefix) if store else None
    if store and ref:
        return pack_of_store(store, ref, prefix, number)
    manifest, plan = manifest_of(bin_path(prefix)), prefix.with_name(f"{prefix.name}{PLAN_ENDING}")
    if manifest is None or not plan.is_file():
        return None
    return KnownPack(read_pieces(plan, number), manifest.content["counts"]["align"])


def pack_of_store(store: Store, ref: ObjectRef, prefix: Path, number: int) -> KnownPack | None:
    """Blocks of a corpus and split follow each other in the order in which they are listed."""
    plans = [source for source in graph_of(store).upstream.get(ref, []) if source.stage == pack_stage.STAGE]
    if len(plans) != 1:
        return None
    corpus, split = prefix.parent.name, prefix.name.rpartition("_")[0]
    for block in pack_stage.read_blocks(objects.require_object(store, plans[0])):
        if (block.corpus, block.split) != (corpus, split):
            continue
        if number < block.packs:
            plan = objects.require_object(store, block.object) / "plan.parquet"
            return KnownPack(read_pieces(plan, number), objects.read_manifest(store, ref).counts.get("align", 1))
        number -= block.packs
    return None


def read_pieces(plan: Path, number: int) -> list[Piece]:
    """Rows of one piece follow each other: the runs of text and images that it is made of."""
    columns = [name for name in PIECE_COLUMNS if name in pq.read_schema(plan).names]
    table = pq.read_table(plan, columns=[*columns, "length"], filters=[("pack", "==", number)], memory_map=False)
    runs = groupby(table.to_pylist(), key=lambda row: tuple(row[name] for name in columns))
    return [Piece(sum(row["length"] for row in rows), *key[-2:]) for key, rows in runs]
