"""Trains superword models from a stream of documents: words first, then what is merged of whole neighbours.

BoundlessBPE (arXiv 2504.00178, in the two passes of arXiv 2604.05192): `train_boundless`. SuperBPE (arXiv 2503.13423):
`train_superbpe`; its second stage starts from the tokens of the first one's merges, so these are the first merges of
the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.encoder import BpeModel, ByteBpeEncoder
from tokpack_core.bpe.merge_settings import Merges, MergeSettings
from tokpack_core.bpe.superword_merges import (
    Supermerges,
    SupermergeSettings,
    WordMerges,
    append_supermerges,
    compete,
)
from tokpack_core.bpe.superword_runs import Joinable, Runs, run_spool
from tokpack_core.bpe.superword_units import JoinablePieces
from tokpack_core.bpe.text_spool import TextSpool, text_spool
from tokpack_core.bpe.training import OTHER_PRETOKENIZER, Seen, train_merges
from tokpack_core.bpe.whole_words import WholeWords
from tokpack_core.errors import InputError

BYTES = 256
Eligible = Callable[[bytes], bool]


@dataclass(frozen=True)
class Superwords:
    """Tokens and merges in the order in which they were made."""

    tokens: list[bytes]
    """By id: the single bytes, then what the merges made."""
    left: npt.NDArray[np.int32]
    """[merges]"""
    right: npt.NDArray[np.int32]
    count: npt.NDArray[np.int64]
    is_superword: npt.NDArray[np.bool_]
    seen: Seen


def train_boundless(
    texts: Iterator[pa.Array],
    splits: tuple[str, ...],
    words: MergeSettings,
    supermerges: SupermergeSettings,
    eligible: Eligible,
    workers: int = 1,
) -> Superwords:
    """Word merges and supermerges share the `vocab_size` of `words` by their counts."""
    with text_spool() as spool:
        merges, seen = train_merges(spool.keeping(texts), splits, words, workers, OTHER_PRETOKENIZER)
        with collected(spool, joinable_words(merges, splits, eligible), workers) as runs:
            found = compete(runs, competing(merges), words.vocab_size, supermerges)
        return interleaved(merges, found, seen)


def train_superbpe(
    texts: Iterator[pa.Array],
    splits: tuple[str, ...],
    piece_splits: tuple[str, ...] | None,
    words: MergeSettings,
    transition: int | None,
    supermerges: SupermergeSettings,
    eligible: Eligible,
    workers: int = 1,
) -> Superwords:
    """`transition` word tokens, bytes included, then supermerges up to the `vocab_size` of `words`.

    `piece_splits`: the second stage's regexes; None lets whole eligible words join, as in BoundlessBPE. `transition`
    None takes as many words as BoundlessBPE takes of the same text. Raises InputError where the text has too few pairs
    for the transition.
    """
    with text_spool() as spool:
        limits = words if transition is None else replace(words, vocab_size=transition)
        merges, seen = train_merges(spool.keeping(texts), splits, limits, workers, OTHER_PRETOKENIZER)
        if transition is None:
            with collected(spool, joinable_words(merges, splits, eligible), workers) as runs:
                taken = compete(runs, competing(merges), words.vocab_size, supermerges).word_merges
            merges = first_merges(merges, taken)
        elif seen.bytes and len(merges.tokens) < transition:
            raise InputError(
                f"the training sample gives {len(merges.tokens)} word tokens, fewer than `transition_size` "
                f"{transition}: lower it, or train on more text"
            )
        joinable: Joinable
        if piece_splits is None:
            joinable = joinable_words(merges, splits, eligible)
        else:
            joinable = JoinablePieces(byte_level_model(merges), piece_splits, dict(enumerate(merges.tokens)))
        with collected(spool, joinable, workers) as runs:
            found = append_supermerges(runs, competing(merges), words.vocab_size - len(merges.tokens), supermerges)
        return interleaved(merges, found, seen)


@contextmanager
def collected(spool: TextSpool, joinable: Joinable, workers: int) -> Iterator[Runs]:
    with run_spool() as runs:
        runs.collect(spool.again(), joinable, workers)
        yield runs


def joinable_words(merges: Merges, splits: tuple[str, ...], eligible: Eligible) -> WholeWords:
    encoder = ByteBpeEncoder(byte_level_model(merges), splits)
    return WholeWords(encoder, splits, merges.tokens, np.array([eligible(token) for token in merges.tokens]))


def byte_level_model(merges: Merges) -> BpeModel:
    """The model of word merges over all bytes, with ids as in `Merges`."""
    alphabet = len(merges.tokens) - merges.count.size
    byte_ids = np.zeros(BYTES, np.int32)
    byte_ids[np.frombuffer(b"".join(merges.tokens[:alphabet]), np.uint8)] = np.arange(alphabet, dtype=np.int32)
    made = np.arange(alphabet, len(merges.tokens), dtype=np.int32)
    return BpeModel(byte_ids, merges.left, merges.right, made, made - np.int32(alphabet))


def competing(merges: Merges) -> WordMerges:
    alphabet = len(merges.tokens) - merges.count.size
    made = np.arange(merges.count.size + 1)
    revealed = np.concatenate([np.zeros(alphabet, np.int64), made[1:]])
    return WordMerges(merges.tokens, merges.count, alphabet + made, revealed)


def first_merges(merges: Merges, taken: int) -> Merges:
    alphabet = len(merges.tokens) - merges.count.size
    return Merges(merges.tokens[: alphabet + taken], merges.left[:taken], merges.right[:taken], merges.count[:taken])


def interleaved(merges: Merges, found: Supermerges, seen: Seen) -> Superwords:
    """The merges that were taken in one order, a supermerge before the word merge that came next."""
    taken = found.word_merges
    alphabet = len(merges.tokens) - merges.count.size
    words = np.arange(taken)
    word_places = words + np.searchsorted(found.after, words, side="right")
    super_places = found.after + np.arange(found.count.size)
    # New ids by old ones; word merges that were not taken have none.
    new_ids = np.full(len(merges.tokens) + found.count.size, -1, np.int32)
    new_ids[:alphabet] = np.arange(alphabet)
    new_ids[alphabet : alphabet + taken] = alphabet + word_places
    new_ids[len(merges.tokens) :] = alphabet + super_places
    order = np.argsort(np.concatenate([word_places, super_places]))
    first = alphabet + taken
    made = [*merges.tokens[alphabet:first], *found.tokens]
    return Superwords(
        [*merges.tokens[:alphabet], *(made[place] for place in order.tolist())],
        new_ids[np.concatenate([merges.left[:taken], found.left])[order]],
        new_ids[np.concatenate([merges.right[:taken], found.right])[order]],
        np.concatenate([merges.count[:taken], found.count])[order],
        order >= taken,
        seen,
    )
