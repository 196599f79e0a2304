"""`tokpack pack`: documents of indexed datasets to packs that Megatron's GPTDataset reads one a sample.

Blocks (`pack_inputs`) are packed one by one and come in the order of a keyed permutation, and so do the packs within a
block; both keys are the seed. With `append_eod`, a document that does not end in EOD gets one, in a copy of its
block; otherwise no token is copied before it stands in its pack.

PREFIX_plan.parquet has a row a segment, by pack and place in it: pack, input (index of the prefix given), document (in
that prefix), start, length (tokens of that document, appended EOD included), chunk and chunks (piece k of n).
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

from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.pack_inputs import BLOCK_DOCUMENTS, Run, TokenInput, block_tokens, cut_blocks, open_inputs
from tokpack_core.commands.progress import OnDone, progress
from tokpack_core.commands.run_manifest import describe_file, write_manifest
from tokpack_core.config import PackingConfig
from tokpack_core.errors import InputError
from tokpack_core.megatron.export import PackedWriter, TokenSource
from tokpack_core.megatron.indexed_dataset import bin_path, idx_path
from tokpack_core.packing.mixing import Mixing, measure_mixing
from tokpack_core.packing.permutation import permuted
from tokpack_core.packing.plan import PackingPlan
from tokpack_core.packing.policies import pack_documents
from tokpack_core.packing.truncation import PackingFigures, packing_figures
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.framing import framed

Int64 = npt.NDArray[np.int64]
PLAN_ENDING = "_plan.parquet"
ENDINGS = (".bin", "_docs.bin", "_docs.idx", PLAN_ENDING, ".idx", MANIFEST_ENDING)
PLAN_SCHEMA = pa.schema(
    {"pack": pa.int64(), "input": pa.int32(), "document": pa.int64(), "start": pa.int64(), "length": pa.int32()}
    | {"chunk": pa.int32(), "chunks": pa.int32()}
)


@dataclass(frozen=True)
class Packing:
    """How documents become packs.

    Attributes:
        eod: id that ends each document and fills tails.
        append_eod: whether a document that does not end in it gets one.
        seed: keys the order of blocks and packs.
    """

    config: PackingConfig
    eod: int
    append_eod: bool
    seed: int

    def parameters(self) -> dict[str, Any]:
        own = {"eod": self.eod, "append_eod": self.append_eod, "seed": self.seed}
        return self.config.parameters() | own


@dataclass(frozen=True)
class Measured:
    """Sums over blocks."""

    figures: PackingFigures
    mixing: Mixing
    eod_appended: int


def packing_config(**settings: Any) -> PackingConfig:
    """Raises InputError for settings that do not go together."""
    try:
        return PackingConfig(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}: " for part in first["loc"])
        raise InputError(where + first["msg"].removeprefix("Value error, ")) from None


def pack(prefixes: list[Path], output: Path, packing: Packing, quiet: bool) -> dict[str, Any]:
    """Writes OUTPUT.bin/.idx, OUTPUT_docs.bin/.idx and OUTPUT.manifest.json; returns the manifest.

    Raises:
        InputError: see `pack_inputs.open_inputs`; or an output exists.
    """
    with new_output(output, ENDINGS) as draft:
        inputs = open_inputs(prefixes, packing.eod, packing.append_eod)
        total = sum(item.tokens.size for item in inputs)
        with progress("packing", total, "tokens", quiet) as on_done:
            measured = write_packs(inputs, draft, packing, on_done)
        counts = {
            "sequence_length": packing.config.sequence_length,
            "eod": packing.eod,
            "align": packing.config.align,
            "dtype": inputs[0].index.dtype.name,
            "eod_appended": measured.eod_appended,
            **measured.figures.as_dict(),
            "mixing": measured.mixing.as_dict(),
        }
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
    with (
        PackedWriter(draft, docs, dtype, sequence_length, packing.eod, align) as writer,
        pq.ParquetWriter(draft.with_name(f"{draft.name}{PLAN_ENDING}"), PLAN_SCHEMA, compression="zstd") as plans,
    ):
        for number in permuted(len(blocks), f"blocks {seed}".encode()).tolist():
            source, lengths = block_source(inputs, blocks[number])
            if packing.append_eod:
                source, longer = with_eod(source, lengths, packing.eod)
                appended += int((longer - lengths).sum())
                lengths = longer
            packed = pack_documents(lengths, packing.config, f"noise {seed} {number}".encode())
            order = permuted(packed.plan.packs, f"packs {seed} {number}".encode())
            plan = packed.plan.in_order(order)
            writer.write_block(plan, np.arange(plan.packs), source)
            plans.write_table(plan_table(plan, blocks[number], figures.packs))
            figures += packing_figures(plan, lengths, sequence_length, align, packed.dropped)
            mixing += measure_mixing(packed.plan, order)
            on_done(figures.tokens)
    return Measured(figures, mixing, appended)


def plan_table(plan: PackingPlan, block: list[Run], first_pack: int) -> pa.Table:
    """Rows of PREFIX_plan.parquet: the packs of a block, in the order in which they are written."""
    prefix = np.repeat([run.prefix for run in block], [run.last - run.first for run in block])
    number = np.concatenate([np.arange(run.first, run.last) for run in block])
    columns = [plan.pack_numbers() + first_pack, prefix[plan.document].astype(np.int32), number[plan.document]]
    columns += [plan.start, plan.length, plan.chunk, plan.chunks]
    return pa.table(columns, schema=PLAN_SCHEMA)


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
