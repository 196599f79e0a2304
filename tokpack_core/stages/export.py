"""megatron_dataset/<dataset>: packs as Megatron `.bin/.idx`, one prefix a corpus and split.

    <corpus>/<split>_<S>.bin/.idx         one sequence = one pack of exactly S tokens
    <corpus>/<split>_<S>_docs.bin/.idx    the same bytes with documents as sequences and packs as documents; where there
                                          are images, cut at their borders, with modes
    <corpus>/<split>_<S>_docs.segments.npy    of each of these sequences, which document it is of: what masks stand on
    blend.json                            for --per-split-data-args-path, prefixes relative to this folder
    megatron_arguments.sh                 sourced by bash: MEGATRON_DATA_ARGUMENTS, with absolute paths

With `packing.align`, pieces start at multiples of it and EOD fills the gaps, which are sequences of `_docs` too. The
counts say of each prefix how many positions are filled so, how many pieces go on in another pack and so end without
EOD, and how many images there are with how many tokens: `verify` holds the files against all of them.

A prefix of fewer than two packs gives GPTDataset no sample and is left out of the blend.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from tokpack_core.config import SPLITS, Split
from tokpack_core.engine import Engine
from tokpack_core.errors import StoreError
from tokpack_core.megatron.blend import blend_line, blend_weights, shell_arguments, write_blend
from tokpack_core.megatron.export import PackedWriter, TokenSource
from tokpack_core.megatron.indexed_dataset import bin_path, dtype_for, idx_path, read_index
from tokpack_core.megatron.indexed_reader import map_tokens
from tokpack_core.packing.image_spans import ModeRuns
from tokpack_core.packing.plan import PackingPlan
from tokpack_core.stages import pack as pack_stage
from tokpack_core.stages import shards as shards_stage
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.stages.asset import Built, Workplace, current, finish, note_version_read
from tokpack_core.stages.pack import PLAN, Block, first_rows, read_blocks
from tokpack_core.stages.unit import Unit
from tokpack_core.store import actions, history, objects
from tokpack_core.store.actions import Action
from tokpack_core.store.objects import ObjectFile
from tokpack_core.store.store import Store
from tokpack_core.training.segments import ImageAttention

STAGE = "megatron_dataset"
VERSION = 3
FEWEST_PACKS = 2
PART_BITS = 40
"""Of a document's row in its part, in the number that tells documents of a block apart."""


@dataclass(frozen=True)
class PrefixJob:
    """One prefix to write: the blocks of a corpus and split, in order."""

    store: Store
    folder: Path
    corpus: str
    split: Split
    blocks: list[Block]
    vocab_size: int
    sequence_length: int
    eod: int
    align: int
    image_attention: ImageAttention | None
    """None for a corpus of text."""

    @property
    def name(self) -> str:
        return f"{self.corpus}/{self.split}_{self.sequence_length}"


def asset_key(dataset: str) -> str:
    return f"megatron_dataset/{dataset}"


def build(work: Workplace, dataset: str) -> Built:
    config = work.project.datasets[dataset]
    pack_stage.require_passed(work, dataset)
    plans, plans_folder = current(work, pack_stage.asset_key(dataset))
    tokenizer, _ = tokenizer_stage.current_tokenizer(work, config.tokenizer)
    # The object may be another dataset's too, whose tokenizer gives the same ids: its manifest names that one.
    packed_by = history.require_latest(work.store, pack_stage.asset_key(dataset)).action
    packed_with = actions.counts_of(work.store, plans, packed_by)["tokenizer"]
    if packed_with != str(tokenizer):
        raise StoreError(
            f"packed_sequences/{dataset} was packed with another version of tokenizer {config.tokenizer}; "
            f"run `tokpack build packed_sequences/{dataset}`"
        )
    facts = objects.read_manifest(work.store, tokenizer).counts
    length = config.packing.sequence_length
    align = config.packing.align
    parameters: dict[str, Any] = {"sequence_length": length, "mixture": config.mixture, "align": align}
    interleaved = {name for name in config.mixture if work.project.corpora[name].content_field is not None}
    attention = ImageAttention[config.image_attention.upper()]
    attentions = {name: attention if name in interleaved else None for name in config.mixture}
    if interleaved:
        parameters["image_attention"] = {name: config.image_attention for name in sorted(interleaved)}
    inputs = {"plans": str(plans), "tokenizer": str(tokenizer)}
    action = Action(STAGE, VERSION, parameters, inputs)
    blocks = read_blocks(plans_folder)
    note_shards(work, config.tokenizer, blocks)
    write = partial(write_dataset, work.store, work.engine, blocks, config.mixture, attentions, facts, length, align)
    return finish(work, asset_key(dataset), Unit(action, write, reads=tuple(files_read(blocks))))


def files_read(blocks: list[Block]) -> Iterator[ObjectFile]:
    for block in blocks:
        yield ObjectFile(block.object, PLAN)
        for shard in block.shards:
            yield ObjectFile(shard, "part.bin")
            yield ObjectFile(shard, "part.idx")


def note_shards(work: Workplace, tokenizer: str, blocks: list[Block]) -> None:
    """Notes the shards that were packed, which need not be the newest, as what the dataset is made from."""
    used: dict[str, set[str]] = defaultdict(set)
    for block in blocks:
        used[block.corpus].update(map(str, block.shards))
    for corpus, units in used.items():
        note_version_read(work, shards_stage.asset_key(tokenizer, corpus), shards_stage.listed_units, units)


def write_dataset(
    store: Store,
    engine: Engine,
    blocks: list[Block],
    mixture: dict[str, float],
    attentions: dict[str, ImageAttention | None],
    tokenizer: dict[str, Any],
    sequence_length: int,
    align: int,
    folder: Path,
) -> dict[str, Any]:
    eod = tokenizer["special_tokens"]["eod"]
    jobs = []
    for corpus in sorted(mixture):
        (folder / corpus).mkdir()
        for split in SPLITS:
            chosen = [block for block in blocks if (block.corpus, block.split) == (corpus, split) and block.packs]
            if chosen:
                sizes = tokenizer["vocab_size"], sequence_length, eod, align
                jobs.append(PrefixJob(store, folder, corpus, split, chosen, *sizes, attentions[corpus]))
    written = dict(zip((job.name for job in jobs), engine.map(write_prefix, jobs), strict=True))
    packs = {name: facts["packs"] for name, facts in written.items()}
    lines = {split: split_blend(jobs, packs, mixture, split) for split in SPLITS}
    write_blend(folder / "blend.json", lines)
    script = shell_arguments(lines, sequence_length)
    (folder / "megatron_arguments.sh").write_text(script, encoding="utf-8")
    blended = {prefix for line in lines.values() for prefix in line[1::2]}
    return {
        "sequence_length": sequence_length,
        "vocab_size": tokenizer["vocab_size"],
        "eod": eod,
        "image": tokenizer["special_tokens"].get("image"),
        "dtype": dtype_for(tokenizer["vocab_size"]).name,
        "align": align,
        "packs": packs,
        "prefixes": written,
        "left_out_of_blend": sorted(set(packs) - blended),
    }


def write_prefix(job: PrefixJob) -> dict[str, int]:
    """Writes one prefix and returns its number of packs and what `verify` expects of them."""
    dtype = dtype_for(job.vocab_size)
    prefix = job.folder / job.name
    docs_prefix = prefix.with_name(f"{prefix.name}_docs")
    continued = 0
    sizes = job.sequence_length, job.eod, job.align
    with PackedWriter(prefix, docs_prefix, dtype, *sizes, job.image_attention) as writer:
        for block in job.blocks:
            plan, runs, source = read_plan(job.store, block, dtype)
            writer.write_block(plan, np.arange(plan.packs), source, runs)
            continued += int(np.count_nonzero(plan.chunk < plan.chunks - 1))
    exported = writer.close()
    counts = {"packs": exported.packs, "padding": exported.padding, "continued_pieces": continued}
    if job.image_attention is None:
        return counts
    return counts | {"images": exported.images, "image_tokens": exported.image_tokens}


def read_plan(store: Store, block: Block, dtype: np.dtype) -> tuple[PackingPlan, ModeRuns, TokenSource]:
    """A block's plan with its packs in final order, the runs of its segments, and where their tokens are.

    Documents are numbered by part and row, so that pieces of one document can be told from others.
    """
    table = pq.ParquetFile(objects.folder_of(store, block.object) / PLAN).read()
    rows = {name: table[name].to_numpy() for name in table.column_names}
    first = first_rows(rows)
    offsets = np.append(first, table.num_rows).astype(np.int64)
    runs = ModeRuns(offsets, rows["length"], rows["mode"])
    pieces = {name: rows[name][first] for name in ("pack", "part", "document", "start", "chunk", "chunks")}
    length = np.add.reduceat(rows["length"], first) if first.size else rows["length"]
    pack_offsets = np.searchsorted(pieces["pack"], np.arange(block.packs + 1))
    keys = pieces["part"].astype(np.int64) << PART_BITS | pieces["document"]
    known, document = np.unique(keys, return_inverse=True)
    columns = document.astype(np.int32), pieces["start"], length.astype(np.int32), pieces["chunk"], pieces["chunks"]
    part, row = known >> PART_BITS, known & ((1 << PART_BITS) - 1)
    parts = [objects.folder_of(store, shard) / "part" for shard in block.shards]
    position = np.zeros(known.size, np.int64)
    for number, prefix in enumerate(parts):
        chosen = part == number
        position[chosen] = document_positions(prefix, row[chosen], dtype)
    tokens = [map_tokens(bin_path(prefix), dtype) for prefix in parts]
    return PackingPlan(pack_offsets, *columns), runs, TokenSource(tokens, part.astype(np.int32), position)


def document_positions(prefix: Path, documents: npt.NDArray[np.int64], dtype: np.dtype) -> npt.NDArray[np.int64]:
    """First token of each document (a row number) within its shard."""
    index = read_index(idx_path(prefix))
    return index.sequence_pointers[index.document_indices[documents]] // dtype.itemsize


def split_blend(jobs: list[PrefixJob], packs: dict[str, int], mixture: dict[str, float], split: Split) -> list[str]:
    """weight, prefix, weight, prefix, ... of one split."""
    chosen = [job for job in jobs if job.split == split and packs[job.name] >= FEWEST_PACKS]
    weights = blend_weights([mixture[job.corpus] for job in chosen], [packs[job.name] for job in chosen])
    return blend_line(weights, [job.name for job in chosen])


def prefixes(built: Built) -> Iterator[Path]:
    """Path of every prefix of a dataset, without ending."""
    for name in sorted(built.counts["packs"]):
        yield built.folder / name
