"""Does a small model tell text with fewer bits by one tokenizer than by another? Two sources of chance, added up.

Documents: the spread of the ratio of bits over bootstrap samples of held-out documents, drawn alike for both.
Seeds: the variance of the logarithm of each tokenizer's bits over its seeds, divided by their number. The ratio's
logarithm over the root of their sum is held against Student's t with 2 (seeds - 1) degrees of freedom, those of the
seeds, which are few. For an even number of degrees its distribution is a finite sum (Abramowitz and Stegun 26.7.4).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokpack_core.comparison.bootstrap import FEWEST, SIGNIFICANT
from tokpack_core.vocabulary.fairness import resampled_ratios

UNIT = 1000
"""Samples are drawn of whole thousandths of bits."""

CERTAIN_BITS = ("fewer bits", "more bits")
LOSES_TEXT = "loses text"

Bits = NDArray[np.float64]


def model_difference(bits: Bits, others: Bits) -> dict[str, Any]:
    """bits, others: float64 [seeds, documents], with as many seeds each.

    ratio: of the sums; low, high: its 95 % interval; p: before correction. All but ratio are None with one seed or
    fewer than FEWEST documents, and all of them where one gives no token for any document.
    """
    if not bits.any() or not others.any():
        return dict.fromkeys(("ratio", "low", "high", "p"))
    value = math.log(bits.sum() / others.sum())
    found: dict[str, Any] = {"ratio": math.exp(value), "low": None, "high": None, "p": None}
    seeds, documents = bits.shape
    if seeds < 2 or documents < FEWEST:
        return found
    spread = math.hypot(document_spread(bits, others), seed_error(bits), seed_error(others))
    freedom = 2 * (seeds - 1)
    reach = critical(freedom) * spread
    p = two_sided_t(value / spread, freedom) if spread else float(value == 0)
    return found | {"low": math.exp(value - reach), "high": math.exp(value + reach), "p": p}


def document_spread(bits: Bits, others: Bits) -> float:
    ours, theirs = (np.rint(UNIT * of_one.mean(axis=0)).astype(np.int64) for of_one in (bits, others))
    return float(np.log(resampled_ratios(ours, theirs)).std())


def seed_error(bits: Bits) -> float:
    """Standard error of the mean over seeds of the logarithm of the bits of all documents."""
    return float(np.log(bits.sum(axis=1)).std(ddof=1) / math.sqrt(len(bits)))


def two_sided_t(value: float, freedom: int) -> float:
    """Chance of Student's t with an even number of degrees of freedom to be as far from 0 as `value`."""
    angle = math.atan(abs(value) / math.sqrt(freedom))
    term = total = 1.0
    for factor in range(2, freedom, 2):
        term *= (factor - 1) / factor * math.cos(angle) ** 2
        total += term
    return max(0.0, 1 - math.sin(angle) * total)


def critical(freedom: int) -> float:
    """The value that t exceeds in size with a chance of SIGNIFICANT."""
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided_t(middle, freedom) > SIGNIFICANT else (low, middle)
    return high


def bits_verdict(ratio: float, corrected_p: float | None) -> str:
    if corrected_p is None:
        return "too few documents or seeds"
    if corrected_p >= SIGNIFICANT:
        return "not significant"
    return CERTAIN_BITS[0] if ratio < 1 else CERTAIN_BITS[1]
