"""`tokpack pack`: documents of indexed datasets to packs that Megatron's GPTDataset reads one a sample.

Blocks (`pack_inputs`) are packed one by one and come in the order of a keyed permutation, and so do the packs within a
block; both keys are the seed. With `append_eod`, a document that does not end in EOD gets one, in a copy of its
block; otherwise no token is copied before it stands in its pack.

PREFIX_plan.parquet has a row a segment, by pack and place in it: pack, input (index of the prefix given), document (in
that prefix), start, length (tokens of that document, appended EOD included), chunk and chunks (piece k of n), mode (0
text, 1 image). A piece of a document with images has a row for each run of text and each image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from tokpack_core.commands.images import summed_vision
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.pack_inputs import BLOCK_DOCUMENTS, Run, TokenInput, block_tokens, cut_blocks, open_inputs
from tokpack_core.commands.progress import OnDone, progress
from tokpack_core.commands.run_manifest import describe_file, write_manifest
from tokpack_core.config import PackingConfig
from tokpack_core.errors import InputError
from tokpack_core.megatron.export import Exported, PackedWriter, TokenSource
from tokpack_core.megatron.indexed_dataset import bin_path, idx_path
from tokpack_core.packing.image_spans import ImageSpans, ModeRuns, mode_runs
from tokpack_core.packing.mixing import Mixing, measure_mixing
from tokpack_core.packing.permutation import permuted
from tokpack_core.packing.plan import PackingPlan
from tokpack_core.packing.policies import image_figures, pack_documents
from tokpack_core.packing.truncation import PackingFigures, packing_figures
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.framing import framed
from tokpack_core.tokenizers.huggingface.interleaved import ImageCounts, compression
from tokpack_core.training.segments import ImageAttention

Int64 = npt.NDArray[np.int64]
PLAN_ENDING = "_plan.parquet"
ENDINGS = (".bin", "_docs.bin", "_docs.segments.npy", "_docs.idx", PLAN_ENDING, ".idx", MANIFEST_ENDING)
PLAN_SCHEMA = pa.schema(
    {"pack": pa.int64(), "input": pa.int32(), "document": pa.int64(), "start": pa.int64(), "length": pa.int32()}
    | {"chunk": pa.int32(), "chunks": pa.int32(), "mode": pa.int8()}
)


@dataclass(frozen=True)
class Packing:
    """How documents become packs.

    Attributes:
        eod: id that ends each document and fills tails.
        append_eod: whether a document that does not end in it gets one.
        seed: keys the order of blocks and packs.
        image_attention: what images see, if documents hold images.
    """

    config: PackingConfig
    eod: int
    append_eod: bool
    seed: int
    image_attention: ImageAttention = ImageAttention.CAUSAL

    def parameters(self) -> dict[str, Any]:
        own = {"eod": self.eod, "append_eod": self.append_eod, "seed": self.seed}
        attention = self.image_attention
        named = {"image_attention": attention.name.lower()} if attention != ImageAttention.CAUSAL else {}
        return self.config.parameters() | own | named


@dataclass(frozen=True)
class Measured:
    """Sums over blocks."""

    figures: PackingFigures
    mixing: Mixing
    eod_appended: int
    exported: Exported


def packing_config(**settings: Any) -> PackingConfig:
    """Raises InputError for settings that do not go together."""
    try:
        return PackingConfig(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}: " for part in first["loc"])
        raise InputError(where + first["msg"].removeprefix("Value error, ")) from None


def pack(prefixes: list[Path], output: Path, packing: Packing, quiet: bool) -> dict[str, Any]:
    """Writes OUTPUT.bin/.idx, OUTPUT_docs.bin/.idx/.segments.npy, the plan and the manifest; returns the manifest.

    Raises:
        InputError: see `pack_inputs.open_inputs`; or an output exists, or policies drop everything.
    """
    with new_output(output, ENDINGS) as draft:
        inputs = open_inputs(prefixes, packing.eod, packing.append_eod)
        total = sum(item.tokens.size for item in inputs)
        with progress("packing", total, "tokens", quiet) as on_done:
            measured = write_packs(inputs, draft, packing, on_done)
        if not measured.figures.packs:
            raise InputError(
                f"{inputs[0].prefix}: all {total} tokens are dropped, there is no pack to write: take "
                "`long_documents: chunk`, a longer sequence_length, or images of fewer tokens"
            )
        counts: dict[str, Any] = {
            "sequence_length": packing.config.sequence_length,
            "eod": packing.eod,
            "align": packing.config.align,
            "dtype": inputs[0].index.dtype.name,
            "eod_appended": measured.eod_appended,
            **measured.figures.as_dict(),
            "mixing": measured.mixing.as_dict(),
        }
        if has_images(inputs):
            counts["packed_images"] = measured.exported.images
            counts["packed_image_tokens"] = measured.exported.image_tokens
            counts["vision"] = common_vision(inputs, measured.figures, packing.config)
        read = [path(item.prefix) for item in inputs for path in (bin_path, idx_path)]
        described = [describe_file(path) for path in read]
        return write_manifest(draft, "pack", packing.parameters(), described, counts, common_tokenizer(inputs))


def write_packs(inputs: list[TokenInput], draft: Path, packing: Packing, on_done: OnDone) -> Measured:
    sequence_length, align, seed = packing.config.sequence_length, packing.config.align, packing.seed
    blocks = list(cut_blocks(inputs, BLOCK_DOCUMENTS, block_tokens(sequence_length)))
    figures, mixing = PackingFigures(), Mixing()
    appended = 0
    docs = draft.with_name(f"{draft.name}_docs")
    dtype = inputs[0].index.dtype
    attention = packing.image_attention if has_images(inputs) else None
    with (
        PackedWriter(draft, docs, dtype, sequence_length, packing.eod, align, attention) as writer,
        pq.ParquetWriter(draft.with_name(f"{draft.name}{PLAN_ENDING}"), PLAN_SCHEMA, compression="zstd") as plans,
    ):
        for number in permuted(len(blocks), f"blocks {seed}".encode()).tolist():
            source, lengths = block_source(inputs, blocks[number])
            if packing.append_eod:
                source, longer = with_eod(source, lengths, packing.eod)
                appended += int((longer - lengths).sum())
                lengths = longer
            images = block_images(inputs, blocks[number])
            packed = pack_documents(lengths, packing.config, f"noise {seed} {number}".encode(), images)
            order = permuted(packed.plan.packs, f"packs {seed} {number}".encode())
            plan = packed.plan.in_order(order)
            runs = ModeRuns.of_text(plan.length) if images is None else mode_runs(plan, images)
            writer.write_block(plan, np.arange(plan.packs), source, runs)
            plans.write_table(plan_table(plan, runs, blocks[number], figures.packs))
            of_images = image_figures(packed, images, packing.config)
            figures += packing_figures(plan, lengths, sequence_length, align, packed.dropped, of_images)
            mixing += measure_mixing(packed.plan, order)
            on_done(figures.tokens)
    return Measured(figures, mixing, appended, writer.close())


def plan_table(plan: PackingPlan, runs: ModeRuns, block: list[Run], first_pack: int) -> pa.Table:
    """Rows of PREFIX_plan.parquet: the packs of a block, in the order in which they are written."""
    prefix = np.repeat([run.prefix for run in block], [run.last - run.first for run in block])
    number = np.concatenate([np.arange(run.first, run.last) for run in block])
    segment = runs.segments()
    document = plan.document[segment]
    columns = [plan.pack_numbers()[segment] + first_pack, prefix[document].astype(np.int32), number[document]]
    columns += [plan.start[segment] + runs.within(), runs.length, plan.chunk[segment], plan.chunks[segment], runs.mode]
    return pa.table(columns, schema=PLAN_SCHEMA)


def has_images(inputs: list[TokenInput]) -> bool:
    return any(item.index.modes is not None for item in inputs)


def block_images(inputs: list[TokenInput], block: list[Run]) -> ImageSpans | None:
    """The images of a block's documents, None where all inputs are text."""
    if not has_images(inputs):
        return None
    spans = [inputs[run.prefix].images(run.first, run.last) for run in block]
    counts = np.concatenate([np.diff(part.offsets) for part in spans])
    start, length = np.concatenate([part.start for part in spans]), np.concatenate([part.length for part in spans])
    return ImageSpans(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), start, length)


def common_vision(inputs: list[TokenInput], figures: PackingFigures, packing: PackingConfig) -> dict[str, Any] | None:
    """What the manifests of the inputs say of images, summed; None if one with images says nothing."""
    manifests = [item.manifest for item in inputs if item.index.modes is not None]
    found = [manifest.content["counts"].get("vision") if manifest else None for manifest in manifests]
    told: list[dict[str, Any]] = [vision for vision in found if vision is not None]
    vision = summed_vision(told) if len(told) == len(found) else None
    if vision is None:
        return None
    return vision | {"compression": compression(ImageCounts.from_dict(vision), figures, packing)}


def block_source(inputs: list[TokenInput], block: list[Run]) -> tuple[TokenSource, Int64]:
    """Where the documents of a block stand, and their lengths."""
    starts = [inputs[run.prefix].starts(run.first, run.last) for run in block]
    part = np.repeat(np.arange(len(block), dtype=np.int32), [run.last - run.first for run in block])
    position = np.concatenate([edges[:-1] for edges in starts])
    lengths = np.concatenate([np.diff(edges) for edges in starts])
    return TokenSource([inputs[run.prefix].tokens for run in block], part, position), lengths


def with_eod(source: TokenSource, lengths: Int64, eod: int) -> tuple[TokenSource, Int64]:
    """The same documents, each non-empty one with an EOD at its end; copied into memory if one lacks it."""
    missing = lengths > 0
    for number, tokens in enumerate(source.parts):
        filled = np.flatnonzero((source.part == number) & (lengths > 0))
        missing[filled] = tokens[source.position[filled] + lengths[filled] - 1] != eod
    if not missing.any():
        return source, lengths
    runs = [tokens[slice(*bounds)] for tokens, bounds in zip(source.parts, run_bounds(source, lengths), strict=True)]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    ended = framed(Encoded(np.concatenate(runs).astype(np.int32), offsets), missing, None, eod)
    tokens = ended.ids.astype(source.parts[0].dtype)
    return TokenSource([tokens], np.zeros(lengths.size, np.int32), ended.offsets[:-1]), ended.lengths


def run_bounds(source: TokenSource, lengths: Int64) -> Iterator[tuple[int, int]]:
    """First token and end of the documents of each part, which lie back to back in it."""
    for number in range(len(source.parts)):
        first, last = np.flatnonzero(source.part == number)[[0, -1]].tolist()
        yield int(source.position[first]), int(source.position[last] + lengths[last])


def common_tokenizer(inputs: list[TokenInput]) -> dict[str, Any] | None:
    """The tokenizer that the manifests of all inputs name, or None if one names none."""
    named = [item.manifest.content["tokenizer"] if item.manifest else None for item in inputs]
    return named[0] if all(named) else None
