"""What can be said about packs from their `_docs` view: ends of documents, gaps and filled tails.

A pack is a Megatron document of the view, its sequences are pieces of documents, each followed by a gap up to the next
multiple of the alignment, and a filled tail at the end. Gaps are known by where they start; a last sequence that is
nothing but EOD is a filled tail. How many positions are filled, and how many pieces go on elsewhere and so end without
EOD, is not in the files: the manifest says it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tokpack_core.megatron.indexed_dataset import CHUNK, Index, idx_path
from tokpack_core.megatron.indexed_reader import Tokens

TOKEN_CHUNK = 1 << 22


@dataclass(frozen=True)
class ExpectedPacks:
    """What a manifest says of packs."""

    sequence_length: int
    eod: int
    align: int = 1
    padding: int | None = None
    """Positions that EOD fills, in gaps and tails; None if unknown."""
    continued: int | None = None
    """Pieces that are not their document's last; None if unknown."""


@dataclass(frozen=True)
class PackView:
    """Some packs, sequence by sequence; arrays are [sequences]."""

    pack: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    is_last: npt.NDArray[np.bool_]
    is_gap: npt.NDArray[np.bool_]
    not_eod: npt.NDArray[np.int64]
    """Tokens that are not EOD."""
    ends_in_eod: npt.NDArray[np.bool_]


def pack_problems(docs_prefix: Path, index: Index, tokens: Tokens, expected: ExpectedPacks) -> list[str]:
    """Problems of a `_docs` view whose index has none, and whose pointers are therefore inside `tokens`."""
    path = idx_path(docs_prefix)
    packs = index.document_indices.size - 1
    for begin in range(0, packs, CHUNK):
        sizes = np.diff(document_starts(index, tokens, begin, min(begin + CHUNK, packs)))
        wrong = np.flatnonzero(sizes != expected.sequence_length)
        if wrong.size:
            return [
                f"{path}: pack {begin + wrong[0]} of {packs} is not {expected.sequence_length} tokens but "
                f"{sizes[wrong[0]]}: Megatron's samples would drift off the packs"
            ]
    padding = opened = 0
    spoiled_gap = open_inside = open_at_end = mixed_tail = -1
    for view in pack_views(index, tokens, expected):
        filler = view.is_gap | (view.is_last & (view.not_eod == 0))
        padding += int(view.length[filler & (view.not_eod == 0)].sum())
        spoiled_gap = first_pack(spoiled_gap, view, view.is_gap & (view.not_eod > 0))
        open_ended = ~view.ends_in_eod & ~view.is_gap
        opened += int(np.count_nonzero(open_ended))
        open_inside = first_pack(open_inside, view, open_ended & ~view.is_last)
        open_at_end = first_pack(open_at_end, view, open_ended & view.is_last)
        has_inner_eod = view.length - view.not_eod > view.ends_in_eod
        mixed_tail = first_pack(mixed_tail, view, view.is_last & (view.not_eod > 0) & has_inner_eod)
    problems = []
    if spoiled_gap >= 0:
        problems.append(
            f"{path}: padding that is not EOD {expected.eod} after a document of pack {spoiled_gap}: pack again"
        )
    elif expected.padding is not None and padding < expected.padding:
        where = f", perhaps at the end of pack {mixed_tail}" if mixed_tail >= 0 else ""
        problems.append(
            f"{path}: padding that is not EOD {expected.eod}: by the manifest {expected.padding} positions are "
            f"padding, but {padding} are found filled with it{where}: pack again"
        )
    if expected.continued is not None and opened > expected.continued:
        first = open_inside if open_inside >= 0 else open_at_end
        problems.append(
            f"{path}: {opened} pieces of documents do not end in EOD {expected.eod}, but only {expected.continued} go "
            f"on in another pack by the manifest, first in pack {first}: pack again"
        )
    return problems


def document_starts(index: Index, tokens: Tokens, begin: int, end: int) -> npt.NDArray[np.int64]:
    """First token of documents begin .. end - 1, and where the last of them ends: [end - begin + 1]."""
    edges = index.document_indices[begin : end + 1]
    starts = np.full(edges.size, tokens.size, np.int64)
    inside = edges < index.sequence_lengths.size
    starts[inside] = index.sequence_pointers[edges[inside]] // index.dtype.itemsize
    return starts


def first_pack(known: int, view: PackView, flags: npt.NDArray[np.bool_]) -> int:
    """The first pack with a flag in this view, unless one is known from an earlier one."""
    return known if known >= 0 or not flags.any() else int(view.pack[np.argmax(flags)])


def pack_views(index: Index, tokens: Tokens, expected: ExpectedPacks) -> Iterator[PackView]:
    step = max(1, TOKEN_CHUNK // expected.sequence_length)
    edges, size = index.document_indices, expected.sequence_length
    for begin in range(0, edges.size - 1, step):
        end = min(begin + step, edges.size - 1)
        first, last = int(edges[begin]), int(edges[end])
        length = index.sequence_lengths[first:last].astype(np.int64)
        stop = np.cumsum(length)
        start = stop - length
        not_eod = tokens[begin * size : end * size] != expected.eod
        yield PackView(
            pack=begin + start // size,
            length=length,
            is_last=stop % size == 0,
            is_gap=start % size % expected.align != 0,
            not_eod=np.add.reduceat(not_eod, start, dtype=np.int64),
            ends_in_eod=~not_eod[stop - 1],
        )
