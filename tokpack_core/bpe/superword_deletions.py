"""BoundlessBPE over words that are learned with deletions (arXiv 2604.05192, with PickyBPE's, arXiv 2409.04599).

The first pass is `picky_merges`: merges of words, each with the deletions that follow it. The second one is that of
`superwords`: what may be part of a superword is a pretoken that all of the first pass makes one living token; the best
supermerge competes with the next word merge, and may use a token from the merge on that made it for good. The
vocabulary is full when the tokens that live after the merges taken, and the superwords, are as many as wanted.
Deletions count words only, so a supermerge never deletes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.merge_settings import MergeSettings
from tokpack_core.bpe.picky_merges import Events, event_encoder, train_with_deletions
from tokpack_core.bpe.superword_merges import Supermerges, SupermergeSettings, WordMerges, compete
from tokpack_core.bpe.superword_runs import run_spool
from tokpack_core.bpe.text_spool import text_spool
from tokpack_core.bpe.training import OTHER_PRETOKENIZER, Seen
from tokpack_core.bpe.whole_words import WholeWords
from tokpack_core.bpe.word_memory import WordMemory


@dataclass(frozen=True)
class Course:
    """How the first pass went, merge by merge."""

    alive: npt.NDArray[np.bool_]
    """[symbols]: at the end"""
    sizes: npt.NDArray[np.int64]
    """[merges + 1]: tokens that live after so many merges and their deletions"""
    revealed: npt.NDArray[np.int64]
    """[symbols]: after how many merges each was made for the last time"""
    stops: npt.NDArray[np.int64]
    """[merges + 1]: events up to so many merges and their deletions"""


def train_boundless_with_deletions(
    texts: Iterator[pa.Array],
    splits: tuple[str, ...],
    words: MergeSettings,
    threshold: float,
    supermerges: SupermergeSettings,
    eligible: Callable[[bytes], bool],
    workers: int = 1,
) -> tuple[Events, Supermerges, Seen]:
    """The events of the merges that were taken, and supermerges, whose symbols are numbered after those of the events.

    `threshold`: see `picky_merge_kernel`; the others as in `superwords.train_boundless`.
    """
    with text_spool() as spool, run_spool() as runs:
        found, seen = train_with_deletions(spool.keeping(texts), splits, words, threshold, workers, OTHER_PRETOKENIZER)
        course = course_of(found)
        flags = np.array(
            [lives and eligible(symbol) for symbol, lives in zip(found.symbols, course.alive, strict=True)]
        )
        joinable = WholeWords(WordMemory(encoder_of(found)), splits, found.symbols, flags)
        runs.collect(spool.again(), joinable, workers)
        counts = found.counts[found.events[:, 1] >= 0]
        made = compete(
            runs, WordMerges(found.symbols, counts, course.sizes, course.revealed), words.vocab_size, supermerges
        )
    return taken(found, int(course.stops[made.word_merges])), made, seen


def course_of(found: Events) -> Course:
    alphabet = sum(len(symbol) == 1 for symbol in found.symbols)
    alive = np.arange(len(found.symbols)) < alphabet
    revealed = np.zeros(alive.size, np.int64)
    sizes, stops = [alphabet], [0]
    living = alphabet
    for number, (left, right, made) in enumerate(found.events.tolist()):
        if right < 0:
            alive[left] = False
            living -= 1
            sizes[-1], stops[-1] = living, number + 1
            continue
        if not alive[made]:
            alive[made] = True
            revealed[made] = len(sizes)
            living += 1
        sizes.append(living)
        stops.append(number + 1)
    return Course(alive, np.array(sizes), revealed, np.array(stops))


def taken(found: Events, stop: int) -> Events:
    """The first events only; symbols keep their numbers."""
    events = found.events[:stop]
    deletions = int(np.count_nonzero(events[:, 1] < 0))
    borders = found.part_offsets[: deletions + 1]
    first = Events(found.symbols, found.alive, events, found.counts[:stop], found.parts[: borders[-1]], borders)
    return Events(first.symbols, course_of(first).alive, first.events, first.counts, first.parts, first.part_offsets)


def bytes_of(found: Events) -> npt.NDArray[np.int32]:
    """[256]: the symbol of each byte."""
    numbers = np.zeros(256, np.int32)
    single = [number for number, symbol in enumerate(found.symbols) if len(symbol) == 1]
    numbers[[found.symbols[number][0] for number in single]] = single
    return numbers


def encoder_of(found: Events) -> Callable[..., tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]]:
    lengths = np.array([len(symbol) for symbol in found.symbols], np.int64)
    return event_encoder(bytes_of(found), lengths, found.events, found.parts, found.part_offsets)
