"""Utilization against the amount of text: would more text use more of the vocabulary?

Rarefaction (Hurlbert 1971): had only a share p of the tokens been drawn, an entry seen c times would be missing with
probability (1 - p)^c, so the expected number of entries seen follows from the counts alone, at any p. Good and Toulmin
(1956) turn it round: entries that as much text again would show for the first time are f1 - f2 + f3 - …, where fk
entries were seen k times; the sum is smoothed by Efron and Thisted's binomial weights, since it may swing. Both take
tokens as drawn alone; words come in bursts, so real text shows a little less.

Singletons over tokens (f1 / N) is Good and Turing's chance that the next token is one not seen before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

POINTS = 40
SMALLEST_SHARE = 2**-14
TERMS = 20
SATURATED_BELOW = 0.01
"""Share of the entries that as much text again would show for the first time; below it, text is no longer the limit."""


@dataclass(frozen=True)
class Growth:
    """share: float64 [points] of the tokens; seen: float64 [points], expected entries; new_if_doubled: entries."""

    share: NDArray[np.float64]
    seen: NDArray[np.float64]
    new_if_doubled: float
    chance_of_new: float | None

    def saturated(self, entries: int) -> bool:
        return self.new_if_doubled < SATURATED_BELOW * entries


def growth(frequencies: NDArray[np.int64]) -> Growth:
    """frequencies: int64 [entries], occurrences of each, zeros included."""
    counts, entries = np.unique(frequencies[frequencies > 0], return_counts=True)
    shares = np.geomspace(SMALLEST_SHARE, 1.0, POINTS)
    with np.errstate(divide="ignore"):
        absent = np.exp(np.outer(np.log1p(-shares), counts))
    seen = ((1 - absent) * entries).sum(axis=1)
    total = int(frequencies.sum())
    once = int(entries[counts == 1].sum())
    unseen = int((frequencies == 0).sum())
    new = float(np.clip(good_toulmin(frequencies), 0, unseen))
    return Growth(shares, seen, new, once / total if total else None)


def good_toulmin(frequencies: NDArray[np.int64]) -> float:
    """Entries that as much text again would show for the first time, by the first TERMS terms of the smoothed sum."""
    of_frequency = np.bincount(frequencies[(frequencies > 0) & (frequencies <= TERMS)], minlength=TERMS + 1)[1:]
    return float((alternating_weights() * of_frequency).sum())


def alternating_weights() -> NDArray[np.float64]:
    """(-1)^(k+1) P(Binomial(TERMS, 1/2) >= k) for k = 1..TERMS."""
    chances = np.ones(1)
    for _ in range(TERMS):
        chances = np.convolve(chances, [0.5, 0.5])
    tails = np.cumsum(chances[::-1])[::-1][1:]
    return tails * np.where(np.arange(1, TERMS + 1) % 2, 1.0, -1.0)
