"""packed_sequences/<dataset>: which tokens stand in which pack, by corpus and split; no token is copied.

A unit is a block: a run of shards of one corpus, about BLOCK_DOCUMENTS, and one split. It publishes `plan.parquet`
with a row a segment (pack, part, document, start, length, chunk, chunks, mode), packs numbered in their final order.
A piece of a document with images has a row for each run of text and each image, all with the piece's chunk. The order
of packs is a keyed permutation within the block; how well it mixes is measured and stands in the counts. `fill.json`
says how many packs are filled to less than 10 %, 20 %, … 100 %, and how many are full. The asset's object lists its
blocks in `blocks.parquet`, each corpus and split ordered by the hash of the block's key, and with each block the shards
that `part` counts through.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tokpack_core.config import SPLITS, DatasetConfig, PackingConfig
from tokpack_core.errors import GateError
from tokpack_core.packing.image_spans import ImageSpans, ModeRuns, mode_runs
from tokpack_core.packing.mixing import Mixing, measure_mixing
from tokpack_core.packing.permutation import permuted
from tokpack_core.packing.plan import PackingPlan
from tokpack_core.packing.policies import image_figures, pack_documents
from tokpack_core.packing.truncation import PackingFigures, packing_figures
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.stages.asset import Built, Workplace, current, finish, read_json, write_json
from tokpack_core.stages.runs import cut_runs
from tokpack_core.stages.shards import DOCUMENTS, Shard, read_shards
from tokpack_core.stages.shards import asset_key as shards_key
from tokpack_core.stages.unit import Unit, run_units
from tokpack_core.store import actions, objects
from tokpack_core.store.actions import Action, library_versions
from tokpack_core.store.objects import ObjectFile, ObjectRef
from tokpack_core.store.store import Store
from tokpack_core.tokenizers.huggingface.interleaved import ImageCounts, compression
from tokpack_core.verdict import Verdict

STAGE = "packed_sequences"
UNIT_STAGE = "packing_block"
PLAN = "plan.parquet"
FILL = "fill.json"
VERSION = 3
BLOCK_DOCUMENTS = 10**5
BLOCK_SHARDS = 256
BLOCK_LIMIT = 10**6
LENGTH_BYTES = 8
FILL_STEPS = 10
LEAST_FILLED = 3
"""Splits that a failed check names."""

PLAN_SCHEMA = pa.schema(
    {"pack": pa.int64(), "part": pa.int32(), "document": pa.int64(), "start": pa.int64(), "length": pa.int32()}
    | {"chunk": pa.int32(), "chunks": pa.int32(), "mode": pa.int8()}
)
BLOCKS_SCHEMA = pa.schema(
    {"corpus": pa.string(), "split": pa.string(), "object": pa.string(), "shards": pa.list_(pa.string())}
    | {"packs": pa.int64(), "tokens": pa.int64()}
)


@dataclass(frozen=True)
class Block:
    """One packing plan and the shards its rows point into."""

    corpus: str
    split: str
    object: ObjectRef
    shards: list[ObjectRef]
    packs: int
    tokens: int


def asset_key(dataset: str) -> str:
    return f"packed_sequences/{dataset}"


def build(work: Workplace, dataset: str) -> Built:
    config = work.project.datasets[dataset]
    places = [
        (corpus, split, run)
        for corpus in sorted(config.mixture)
        for run in shard_runs(read_shards(work, config.tokenizer, corpus))
        for split in SPLITS
    ]
    units = [make_unit(config.packing, config.seed, run, split) for _, split, run in places]
    results = run_units(work.store, work.engine, units, work.on_progress)
    rows = [
        {"corpus": corpus, "split": split, "object": str(ref), "shards": [str(s.object) for s in run], "key": key}
        for (corpus, split, run), ref, key in zip(places, results.refs, [u.action.key for u in units], strict=True)
    ]
    tokenizer, _ = tokenizer_stage.current_tokenizer(work, config.tokenizer)
    parameters = config.packing.parameters()
    inputs: dict[str, Any] = {"tokenizer": str(tokenizer), "blocks": rows}
    vision = vision_counts(work, config)
    inputs |= {"vision": vision} if vision else {}
    action = Action(STAGE, VERSION, parameters, inputs)
    reads = tuple(ObjectFile(ref, FILL) for ref in results.refs)
    unit = Unit(action, partial(write_blocks, work.store, rows, str(tokenizer), config.packing, vision), reads=reads)
    return finish(work, asset_key(dataset), unit, results)


def vision_counts(work: Workplace, config: DatasetConfig) -> dict[str, Any] | None:
    """What the shards of all corpora say of images, summed; None if none holds images."""
    refs = [current(work, shards_key(config.tokenizer, corpus))[0] for corpus in sorted(config.mixture)]
    found = [objects.read_manifest(work.store, ref).counts.get("vision") for ref in refs]
    told = [vision for vision in found if vision is not None]
    if not told:
        return None
    total = sum((ImageCounts.from_dict(vision) for vision in told), ImageCounts())
    return {"scheme": told[0]["scheme"], **total.as_dict(), "warnings": told[0]["warnings"]}


def shard_runs(shards: list[Shard]) -> list[list[Shard]]:
    runs = cut_runs(shards, lambda s: s.part, lambda s: s.documents, BLOCK_DOCUMENTS, BLOCK_SHARDS, BLOCK_LIMIT)
    return list(runs)


def make_unit(packing: PackingConfig, seed: int, shards: list[Shard], split: str) -> Unit:
    action = Action(
        UNIT_STAGE,
        VERSION,
        {**packing.parameters(), "split": split, "seed": seed},
        {"documents": [shard.documents_sha256 for shard in shards]},
        library_versions("pyarrow"),
    )
    paths = [shard.folder / DOCUMENTS for shard in shards]
    build_plan = partial(write_plan, paths, split, packing, action.key)
    reads = tuple(ObjectFile(shard.object, DOCUMENTS) for shard in shards)
    return Unit(action, build_plan, LENGTH_BYTES * sum(shard.documents for shard in shards), reads)


def write_plan(paths: list[Path], split: str, packing: PackingConfig, key: str, folder: Path) -> dict[str, Any]:
    documents = read_documents(paths, split)
    packed = pack_documents(documents.tokens, packing, f"noise of {key}".encode(), documents.images)
    plan = packed.plan
    order = permuted(plan.packs, f"packs of {key}".encode())
    write_segments(plan.in_order(order), documents, folder / PLAN)
    write_json(folder / FILL, packs_by_fill(plan, packing.sequence_length))
    of_images = image_figures(packed, documents.images, packing)
    figures = packing_figures(plan, documents.tokens, packing.sequence_length, packing.align, packed.dropped, of_images)
    return {"split": split, "figures": figures.as_dict(), "mixing": measure_mixing(plan, order).as_dict()}


def packs_by_fill(plan: PackingPlan, sequence_length: int) -> list[int]:
    """Packs by the tenth up to which they are filled, [FILL_STEPS + 1]; the last ones are full."""
    steps: list[int] = np.bincount(plan.loads() * FILL_STEPS // sequence_length, minlength=FILL_STEPS + 1).tolist()
    return steps


@dataclass(frozen=True)
class Documents:
    """The documents of one split, in order; arrays are [documents]."""

    part: npt.NDArray[np.int32]
    row: npt.NDArray[np.int64]
    """In its part."""
    tokens: npt.NDArray[np.int64]
    images: ImageSpans | None
    """None for text."""


def read_documents(paths: list[Path], split: str) -> Documents:
    parts, rows, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    spans: list[pa.Array] = []
    interleaved = False
    for number, path in enumerate(paths):
        columns = [name for name in ("split", "tokens", "images") if name in pq.read_schema(path).names]
        table = pq.ParquetFile(path).read(columns=columns)
        chosen = np.flatnonzero(pa.compute.equal(table["split"], split).to_numpy())
        parts.append(np.full(chosen.size, number, np.int32))
        rows.append(chosen.astype(np.int64))
        lengths.append(table["tokens"].to_numpy()[chosen])
        if "images" in columns:
            interleaved = True
            spans += table["images"].take(pa.array(chosen)).chunks
    images = image_spans(spans) if interleaved else None
    return Documents(np.concatenate(parts), np.concatenate(rows), np.concatenate(lengths), images)


def image_spans(lists: list[pa.Array]) -> ImageSpans:
    """The column `images` of documents.parquet, in pieces of any size, as flat arrays."""
    counts = [np.zeros(1, np.int64)] + [pa.compute.list_value_length(part).to_numpy() for part in lists]
    flat = [part.flatten() for part in lists]
    start, length = (
        np.concatenate([np.zeros(0, np.int64)] + [part.field(name).to_numpy() for part in flat])
        for name in ("start", "length")
    )
    return ImageSpans(np.cumsum(np.concatenate(counts), dtype=np.int64), start, length)


def write_segments(plan: PackingPlan, documents: Documents, path: Path) -> None:
    """The plan's segments, packs as they stand, as one parquet file: a row a run of one mode."""
    runs = ModeRuns.of_text(plan.length) if documents.images is None else mode_runs(plan, documents.images)
    segment, start = runs.segments(), plan.start
    document = plan.document[segment]
    columns = [
        plan.pack_numbers()[segment],
        documents.part[document],
        documents.row[document],
        start[segment] + runs.within(),
        runs.length,
        plan.chunk[segment],
        plan.chunks[segment],
        runs.mode,
    ]
    pq.write_table(pa.table(columns, schema=PLAN_SCHEMA), path, compression="zstd")


def write_blocks(
    store: Store,
    rows: list[dict[str, Any]],
    tokenizer: str,
    packing: PackingConfig,
    vision: dict[str, Any] | None,
    folder: Path,
) -> dict[str, Any]:
    """Lists the blocks in their final order and sums their figures by corpus and split."""
    total = PackingFigures()
    mixing = Mixing()
    fill = [0] * (FILL_STEPS + 1)
    by_split: dict[str, PackingFigures] = {}
    listed = []
    for row in sorted(rows, key=lambda r: (r["corpus"], SPLITS.index(r["split"]), r["key"])):
        ref = ObjectRef.parse(row["object"])
        counts = actions.counts_of(store, ref, row["key"])
        block_fill = read_json(objects.folder_of(store, ref) / FILL)
        fill = [sum(packs) for packs in zip(fill, block_fill, strict=True)]
        figures = PackingFigures.from_dict(counts["figures"])
        place = f"{row['corpus']}/{row['split']}"
        by_split[place] = by_split.get(place, PackingFigures()) + figures
        total += figures
        mixing += Mixing.from_dict(counts["mixing"])
        listed.append({**row, "packs": figures.packs, "tokens": figures.tokens})
    pq.write_table(pa.Table.from_pylist(listed, schema=BLOCKS_SCHEMA), folder / "blocks.parquet", compression="zstd")
    split_figures = {place: figures.as_dict() for place, figures in by_split.items()}
    sums = {"figures": total.as_dict(), "by_split": split_figures, "mixing": mixing.as_dict()}
    sums["packs_by_fill"] = fill
    if vision:
        sums["vision"] = vision | {"compression": compression(ImageCounts.from_dict(vision), total, packing)}
    return {"tokenizer": tokenizer, **packing.parameters(), **sums}


def first_rows(rows: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    """Rows of a plan with which a piece begins: those of one piece follow each other and differ in start and mode."""
    size = rows["pack"].size
    new = np.ones(size, np.bool_)
    if size:
        new[1:] = np.logical_or.reduce([np.diff(rows[name]) != 0 for name in ("pack", "part", "document", "chunk")])
    return np.flatnonzero(new)


def read_blocks(folder: Path) -> list[Block]:
    rows = pq.ParquetFile(folder / "blocks.parquet").read().to_pylist()
    return [
        Block(
            row["corpus"],
            row["split"],
            ObjectRef.parse(row["object"]),
            [ObjectRef.parse(shard) for shard in row["shards"]],
            row["packs"],
            row["tokens"],
        )
        for row in rows
    ]


def checks(config: DatasetConfig) -> dict[str, bool]:
    """Names of the checks, and whether each blocks what is downstream."""
    return {"packing_utilization": "packing_utilization" not in config.checks.warn, "nothing_lost": True}


def verdicts(work: Workplace, dataset: str) -> list[Verdict]:
    """The stored figures of the newest plans against the current limits."""
    ref, _ = current(work, asset_key(dataset))
    counts = objects.read_manifest(work.store, ref).counts
    figures = PackingFigures.from_dict(counts["figures"])
    return [
        utilization_verdict(work.project.datasets[dataset], figures, counts),
        nothing_lost_verdict(figures, counts["by_split"]),
    ]


def utilization_verdict(config: DatasetConfig, figures: PackingFigures, counts: dict[str, Any]) -> Verdict:
    limit = config.checks.min_packing_utilization
    all_dropped = not figures.packs and figures.tokens_dropped > 0
    utilization = 0.0 if all_dropped else figures.utilization
    explanation = (
        f"packing fills {utilization:.2%} of {figures.packs:,} packs of {config.packing.sequence_length} "
        f"tokens ({figures.padding:,} positions are padding); at least {limit:.2%} is asked."
    )
    if figures.alignment_padding:
        explanation += f" Of the padding, {figures.alignment_padding:,} positions are due to `align`."
    if all_dropped:
        explanation += " Policies dropped every token: take long_documents `chunk` or a longer sequence_length."
    elif utilization < limit:
        explanation += f" Least filled: {least_filled(counts)}."
        strategy = config.packing.strategy
        better = "" if strategy == "best_fit" else f"strategy best_fit (now {strategy}), "
        explanation += (
            f" Use {better}another sequence_length, or more text in small splits; "
            "or lower checks.min_packing_utilization."
        )
    passed = utilization >= limit and not all_dropped
    return Verdict(
        "packing_utilization", passed, utilization, limit, explanation, checks(config)["packing_utilization"]
    )


def least_filled(counts: dict[str, Any]) -> str:
    """The splits whose packs hold the fewest tokens, and how many packs are less than half full."""
    splits = [(place, PackingFigures.from_dict(figures)) for place, figures in counts["by_split"].items()]
    filled = sorted(((figures.utilization, place, figures.packs) for place, figures in splits if figures.packs))
    named = [f"{place} ({share:.2%} of {packs:,} packs)" for share, place, packs in filled[:LEAST_FILLED]]
    half = sum(counts["packs_by_fill"][: FILL_STEPS // 2])
    return f"{', '.join(named)}; {half:,} packs are less than half full"


def nothing_lost_verdict(figures: PackingFigures, by_split: dict[str, dict[str, Any]]) -> Verdict:
    """Lost tokens are a fault of the packing itself, which tells where."""
    explanation = f"{figures.tokens_lost:,} of {figures.tokens:,} tokens of {figures.documents:,} documents are lost."
    if figures.tokens_lost:
        lost = {place: PackingFigures.from_dict(of).tokens_lost for place, of in by_split.items()}
        named = ", ".join(f"{place} {tokens:,}" for place, tokens in lost.items() if tokens)
        explanation += f" They are of {named}. Take another packing.strategy, and report this as a fault of tokpack."
    if figures.tokens_dropped:
        explanation += (
            f" Policies dropped {figures.tokens_dropped:,} as they were told: {figures.dropped_documents:,} documents "
            f"longer than a pack ({figures.dropped_document_tokens:,} tokens), {figures.dropped_chunks:,} last "
            f"pieces shorter than min_chunk ({figures.dropped_chunk_tokens:,}) and {figures.dropped_images:,} images "
            f"longer than a pack ({figures.dropped_image_tokens:,})."
        )
    return Verdict("nothing_lost", figures.tokens_lost == 0, float(figures.tokens_lost), 0.0, explanation)


def require_passed(work: Workplace, dataset: str) -> None:
    """The gate before the export.

    Raises:
        GateError: a figure is beyond its limit.
    """
    failed = [verdict for verdict in verdicts(work, dataset) if verdict.blocking and not verdict.passed]
    if failed:
        raise GateError(f"packed_sequences/{dataset} stops here: " + " ".join(v.explanation for v in failed))
