"""`tokpack pack`: documents of indexed datasets to packs that Megatron's GPTDataset reads one a sample.

Blocks (`pack_inputs`) are packed one by one and come in the order of a keyed permutation, and so do the packs within a
block; both keys are the seed. With `append_eod`, a document that does not end in EOD gets one, in a copy of its
block; otherwise no token is copied before it stands in its pack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.pack_inputs import BLOCK_DOCUMENTS, Run, TokenInput, block_tokens, cut_blocks, open_inputs
from tokpack_core.commands.progress import OnDone, progress
from tokpack_core.commands.run_manifest import describe_file, write_manifest
from tokpack_core.config import Strategy
from tokpack_core.errors import InputError
from tokpack_core.megatron.export import PackedWriter, TokenSource
from tokpack_core.megatron.indexed_dataset import bin_path, idx_path
from tokpack_core.packing.permutation import permuted
from tokpack_core.packing.strategies import pack as plan_packs
from tokpack_core.packing.truncation import PackingFigures, packing_figures
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.framing import framed

Int64 = npt.NDArray[np.int64]
ENDINGS = (".bin", "_docs.bin", "_docs.idx", ".idx", MANIFEST_ENDING)


@dataclass(frozen=True)
class Packing:
    """How documents become packs.

    Attributes:
        eod: id that ends each document and fills tails.
        append_eod: whether a document that does not end in it gets one.
        seed: keys the order of blocks and packs.
    """

    strategy: Strategy
    sequence_length: int
    eod: int
    append_eod: bool
    seed: int


def pack(prefixes: list[Path], output: Path, packing: Packing, quiet: bool) -> dict[str, Any]:
    """Writes OUTPUT.bin/.idx, OUTPUT_docs.bin/.idx and OUTPUT.manifest.json; returns the manifest.

    Raises:
        InputError: see `pack_inputs.open_inputs`; or an output exists.
    """
    with new_output(output, ENDINGS) as draft:
        inputs = open_inputs(prefixes, packing.eod, packing.append_eod)
        total = sum(item.tokens.size for item in inputs)
        with progress("packing", total, "tokens", quiet) as on_done:
            figures, appended = write_packs(inputs, draft, packing, on_done)
        if figures.tokens_lost:
            raise InputError(f"{output}: {figures.tokens_lost} tokens would be lost, which is a fault of tokpack")
        counts = {
            "sequence_length": packing.sequence_length,
            "eod": packing.eod,
            "dtype": inputs[0].index.dtype.name,
            "eod_appended": appended,
            **figures.as_dict(),
        }
        read = [path(item.prefix) for item in inputs for path in (bin_path, idx_path)]
        described = [describe_file(path) for path in read]
        return write_manifest(draft, "pack", asdict(packing), described, counts, common_tokenizer(inputs))


def write_packs(inputs: list[TokenInput], draft: Path, packing: Packing, on_done: OnDone) -> tuple[PackingFigures, int]:
    """The sum of all blocks' figures, and how many EODs were appended."""
    sequence_length, eod, seed = packing.sequence_length, packing.eod, packing.seed
    blocks = list(cut_blocks(inputs, BLOCK_DOCUMENTS, block_tokens(sequence_length)))
    figures = PackingFigures()
    appended = 0
    docs = draft.with_name(f"{draft.name}_docs")
    with PackedWriter(draft, docs, inputs[0].index.dtype, sequence_length, eod) as writer:
        for number in permuted(len(blocks), f"blocks {seed}".encode()).tolist():
            source, lengths = block_source(inputs, blocks[number])
            if packing.append_eod:
                source, longer = with_eod(source, lengths, eod)
                appended += int((longer - lengths).sum())
                lengths = longer
            plan = plan_packs(lengths, sequence_length, packing.strategy)
            writer.write_block(plan, permuted(plan.packs, f"packs {seed} {number}".encode()), source)
            figures += packing_figures(plan, lengths, sequence_length)
            on_done(figures.tokens)
    return figures, appended


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
