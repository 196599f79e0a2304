"""Trains byte-level BPE from a stream of documents; small streams in plain Python, without the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tokpack_core.bpe.collection_pause import without_collection
from tokpack_core.bpe.merge_settings import Merges, MergeSettings
from tokpack_core.bpe.regex_splitting import count_pieces
from tokpack_core.bpe.small_merges import learn_merges_in_python
from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.errors import InputError

if TYPE_CHECKING:
    from tokpack_core.bpe.pretoken_counts import PretokenCounts

SMALL = 10**6
"""Bytes of text up to which plain Python is faster than loading the kernels, let alone compiling them."""
LONG_PRETOKEN = 1000


@dataclass
class Seen:
    """What the training text held."""

    documents: int = 0
    bytes: int = 0
    bytes_dropped: int = 0
    """In pretokens that were longer than allowed."""
    bytes_unmatched: int = 0
    """That the regex did not match: they are pretokens too."""

    def __add__(self, other: Seen) -> Seen:
        return Seen(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))


def train_merges(
    texts: Iterator[pa.Array], splits: tuple[str, ...], settings: MergeSettings, workers: int = 1, remedy: str = ""
) -> tuple[Merges, Seen]:
    """`texts`: string arrays without nulls, an entry a document, read once; `splits`: regexes, see `automaton`.

    The merges depend neither on the order of documents nor on `workers`. Raises InputError for text that the regex
    does not split (the 99.9th percentile of pretokens is longer than LONG_PRETOKEN bytes), unless a limit is set;
    `remedy` says what helps, by default another pretokenizer or a limit.
    """
    seen = Seen()
    counted = counting(texts, seen)
    head = []
    for array in counted:
        head.append(array)
        if seen.bytes > SMALL:
            break
    else:
        return train_small(head, splits, settings, seen, remedy), seen
    with without_collection():
        # Loading the kernels takes longer than small texts need altogether.
        from tokpack_core.bpe.byte_pair_kernels import note_bytes
        from tokpack_core.bpe.merges import learn_merges
        from tokpack_core.bpe.pretoken_counting import count_parts

        # numba gets itself ready when the first kernel is called.
        note_bytes(np.empty(0, np.uint8), np.empty(256, bool))
    parts, seen.bytes_unmatched = count_parts(chain(drained(head), counted), splits, workers)
    limit_length(parts, settings.max_pretoken_bytes, seen, remedy)
    return learn_merges(parts, settings, workers), seen


def limit_length(parts: list[PretokenCounts], limit: int | None, seen: Seen, remedy: str = "") -> None:
    """Leaves out what is longer than the limit; without one, refuses text that is hardly split."""
    from tokpack_core.bpe.pretoken_counts import without_long

    if limit is None:
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        refuse_unsplit(lengths, np.concatenate([part.counts for part in parts]), remedy)
    for number in range(len(parts)):
        parts[number], dropped = without_long(parts[number], limit)
        seen.bytes_dropped += dropped


def train_small(
    arrays: list[pa.Array], splits: tuple[str, ...], settings: MergeSettings, seen: Seen, remedy: str
) -> Merges:
    texts = (text for array in arrays for text in array.cast(pa.large_string()).to_pylist())
    words, seen.bytes_unmatched = count_pieces(texts, splits)
    limit = settings.max_pretoken_bytes
    if limit is None:
        if words:
            refuse_unsplit(np.array([len(word) for word in words]), np.array(list(words.values())), remedy)
        return learn_merges_in_python(words, settings)
    kept = {word: count for word, count in words.items() if len(word) <= limit}
    seen.bytes_dropped = sum(len(word) * count for word, count in words.items() if word not in kept)
    return learn_merges_in_python(kept, settings)


def counting(texts: Iterator[pa.Array], seen: Seen) -> Iterator[pa.Array]:
    for array in texts:
        seen.documents += len(array)
        seen.bytes += int(text_buffers(array)[1][-1])
        yield array


def drained(arrays: list[pa.Array]) -> Iterator[pa.Array]:
    while arrays:
        yield arrays.pop(0)


OTHER_PRETOKENIZER = "choose another `pretokenizer`"
OR_LEAVE_OUT = f"{OTHER_PRETOKENIZER}, or leave long pretokens out with `max_pretoken_bytes`"


def refuse_unsplit(lengths: np.ndarray, counts: np.ndarray, remedy: str = "") -> None:
    """Few pretokens have no 99.9th percentile: they are refused if most of the text is in long ones."""
    long = lengths > LONG_PRETOKEN
    total = counts.sum()
    if total - counts[long].sum() >= 0.999 * total:
        return
    order = np.argsort(lengths)
    reached = np.cumsum(counts[order])
    percentile = int(lengths[order][np.searchsorted(reached, 0.999 * total)])
    if total >= 1000 or 2 * (lengths * counts)[long].sum() > (lengths * counts).sum():
        raise InputError(
            f"the pretokenizer hardly splits the text (one pretoken in a thousand has {percentile} bytes or more): "
            f"{remedy or OR_LEAVE_OUT}"
        )
