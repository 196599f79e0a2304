"""Splits documents into pretokens by an automaton, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.automaton import Automaton
from tokpack_core.bpe.pretokenization_kernels import cut_in_threes, documents_ends

CHUNK_PRETOKENS = 1 << 16


@dataclass(frozen=True)
class Chunk:
    """Consecutive pretokens: the first begins at `begin` of `data`, each ends at its entry of `ends`."""

    data: npt.NDArray[np.uint8]
    begin: int
    ends: npt.NDArray[np.int64]
    document: int
    """The one that the first pretoken belongs to."""
    borders: npt.NDArray[np.int64]
    """How many of the pretokens stand before the end of this document and the next ones, as far as those end here."""


def automaton_chunks(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    automaton: Automaton,
    unmatched: npt.NDArray[np.int64] | None = None,
) -> Iterator[Chunk]:
    """The pretokens of all documents in order, which share one buffer of ends: use a chunk before the next.

    unmatched[0] grows by the bytes that the regex does not match.
    """
    unmatched = np.zeros(1, np.int64) if unmatched is None else unmatched
    ends = np.empty(CHUNK_PRETOKENS, np.int64)
    borders = np.empty(offsets.size, np.int64)
    document = begin = 0
    while document < offsets.size - 1:
        first, first_document = begin, document
        count, document, begin = documents_ends(
            data,
            offsets,
            document,
            begin,
            automaton.classes,
            automaton.transitions,
            automaton.stages,
            automaton.start,
            ends,
            borders,
            unmatched,
        )
        complete = borders[first_document:document]
        if automaton.threes.any():
            cut = np.empty(count + (int(ends[count - 1]) - first if count else 0), np.int64)
            count = cut_in_threes(data, first, ends[:count], complete, automaton.classes, automaton.threes, cut)
            yield Chunk(data, first, cut[:count], first_document, complete)
        else:
            yield Chunk(data, first, ends[:count], first_document, complete)
