"""Which languages a batch is of: seeded draws that depend on nothing but the step.

Step s has 1 to `most` languages, each number with the same chance, drawn without replacement by their weights: the
languages of the smallest -log(u) / weight (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006),
u being a hash of seed, step and language (SplitMix64's finalizer). Position p of a step belongs to its language number
p mod their number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
AT_ONCE = 1 << 14


@dataclass(frozen=True)
class LanguageDraws:
    weights: tuple[float, ...]
    """[languages], positive"""
    most: int
    """languages of a step, 1 to their number"""
    positions: int
    """packs of a step, over all ranks"""
    seed: int

    def languages(self, steps: Int64) -> tuple[Int64, Int64]:
        """Languages by number, in the order of their positions, int64 [steps, most], and how many of them count, int64
        [steps]."""
        keys = hashed_keys(self.seed, len(self.weights) + 1)
        hashed = mixed(steps.astype(np.uint64)[:, None] ^ keys)
        uniform = ((hashed >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        scores = -np.log(uniform[:, 1:]) / np.array(self.weights)
        numbers = 1 + (uniform[:, 0] * self.most).astype(np.int64)
        return np.argsort(scores, axis=1, kind="stable")[:, : self.most], numbers

    def packs_before(self, step: int) -> Int64:
        """Packs of each language in all steps before this one, int64 [languages]."""
        counts = np.zeros(len(self.weights), np.int64)
        for first in range(0, step, AT_ONCE):
            languages, numbers = self.languages(np.arange(first, min(first + AT_ONCE, step)))
            for place in range(self.most):
                taken = np.maximum(-((place - self.positions) // numbers), 0) * (place < numbers)
                counts += np.bincount(languages[:, place], taken, len(counts)).astype(np.int64)
        return counts


def share_of(place: int, number: int, positions: int) -> int:
    """How many of so many positions belong to the language at that place among `number`."""
    return -((place - positions) // number)


def hashed_keys(seed: int, number: int) -> UInt64:
    """Keys of a seed, uint64 [number]."""
    digests = (hashlib.blake2b(f"{seed}/{i}".encode(), digest_size=8).digest() for i in range(number))
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def mixed(words: UInt64) -> UInt64:
    """The finalizer of SplitMix64."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def as_weights(weights: Sequence[float]) -> tuple[float, ...]:
    """Raises ValueError unless all are positive and finite."""
    if not all(np.isfinite(weight) and weight > 0 for weight in weights):
        raise ValueError("weights are positive numbers")
    return tuple(weights)
