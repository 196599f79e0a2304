"""Is one tokenizer shorter than another? Paired bootstrap over documents (Efron 1979), corrected for many questions.

The figure is the ratio of the tokens of all documents. Its interval is the 2.5th to 97.5th percentile over samples of
documents, the same samples for both tokenizers (see `fairness`). The p-value is that of a normal distribution of the
ratio's logarithm with the spread of the samples; all p-values of one comparison are corrected by Holm's step-down rule
(1979). The effect size is Cohen's d of paired documents: mean over spread of the logarithms of their ratios.

With fewer than FEWEST documents nothing is called significant.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokpack_core.vocabulary.fairness import resampled_ratios

FEWEST = 20
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Difference:
    """ratio: tokens over those of the other, with its 95 % interval; `p` before correction, None where too few."""

    documents: int
    ratio: float
    low: float
    high: float
    effect_size: float
    p: float | None


def paired_difference(tokens: NDArray[np.int64], others: NDArray[np.int64]) -> Difference:
    """tokens, others: int64 [documents], of the same documents; documents that are empty for both are left out."""
    kept = (tokens > 0) & (others > 0)
    tokens, others = tokens[kept], others[kept]
    if not len(tokens):
        return Difference(0, math.nan, math.nan, math.nan, math.nan, None)
    ratios = resampled_ratios(tokens, others)
    ratio = float(tokens.sum() / others.sum())
    spread = float(np.log(ratios).std())
    low, high = (float(np.quantile(ratios, share)) for share in (0.025, 0.975))
    p = two_sided(math.log(ratio), spread) if len(tokens) >= FEWEST else None
    return Difference(len(tokens), ratio, low, high, effect_size(tokens, others), p)


def finite(difference: Difference) -> dict[str, Any]:
    """Plain data, where what is no number is null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(difference).items()
    }


def two_sided(value: float, spread: float) -> float:
    """Chance of a normal variable of that spread to be as far from 0 as `value`."""
    if value == 0:
        return 1.0
    return math.erfc(abs(value) / spread / math.sqrt(2)) if spread > 0 else 0.0


def effect_size(tokens: NDArray[np.int64], others: NDArray[np.int64]) -> float:
    """0 where all documents are alike; infinite where all differ by one and the same ratio."""
    logarithms = np.log(tokens / others)
    mean, spread = float(logarithms.mean()), float(logarithms.std(ddof=1)) if len(tokens) > 1 else 0.0
    if spread == 0:
        return 0.0 if mean == 0 else math.copysign(math.inf, mean)
    return mean / spread


def holm(p_values: list[float | None]) -> list[float | None]:
    """Corrected p-values in the same order; None stays None and is no question asked."""
    asked = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(asked):
        highest = max(highest, min(1.0, p * (len(asked) - rank)))
        corrected[place] = highest
    return corrected
