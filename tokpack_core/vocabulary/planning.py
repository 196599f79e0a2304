"""How large a vocabulary should be, before anything is trained (Tao et al. 2024, arXiv 2407.13623).

Three fits of the paper give the vocabulary parameters N_v (entries · width) from the other parameters N_nv, for
training that is compute-optimal:

1. IsoFLOPs (section 4.1): N_nv = e^-2.4847 · C^0.5 and N_v = e^-1.5890 · C^0.4164, C in FLOPs.
2. Derivative of FLOPs by vocabulary (section 4.2): N_v = 3,145,728 · (N_nv / 33·10⁶)^0.8354.
3. Parametric loss (section 4.3): the N_v at which L = A1 / N_nv^α1 + A2 / N_v^α2 + B / H^β - E is least at C, with the
   characters H = C / 6 (N_nv + N_v), the parameters in millions and C in 10¹⁵.

Constants are those of the authors' published code. The entries depend on the width: V = N_v / d_model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tokpack_core.errors import InputError

NON_VOCABULARY_FACTOR, NON_VOCABULARY_EXPONENT = math.exp(-2.4846510161625193), 0.5
VOCABULARY_FACTOR, VOCABULARY_EXPONENT = math.exp(-1.589031299255507), 0.4163622634135234
BASE_VOCABULARY, BASE_OTHERS, GAMMA = 3_145_728, 33e6, 0.8353974035228025
A2, B = 0.19584238398665638, 2.1241123120064955
ALPHA_2, BETA = 0.6707374679896795, 0.44660634152009615
MULTIPLE = 128
"""Tensor-parallel training pads the vocabulary to a multiple of this."""


@dataclass(frozen=True)
class PlannedVocabulary:
    approach: str
    vocabulary_parameters: int
    vocab_size: int
    """Rounded to a multiple of MULTIPLE."""
    share_tied: float
    """Of all parameters, where one matrix serves as embedding and output."""
    share_untied: float
    """Where there are two."""


def plan_vocabulary(params: float, d_model: int) -> list[PlannedVocabulary]:
    """A size by each approach for a model with `params` parameters beside its embeddings.

    Raises InputError for a model that the fits say nothing about.
    """
    if not 1e6 <= params <= 1e13 or not 1 <= d_model <= 2**20:
        raise InputError(f"{params:g} parameters of width {d_model}: give 1e6 to 1e13, and a width of 1 to 1048576")
    flops = (params / NON_VOCABULARY_FACTOR) ** (1 / NON_VOCABULARY_EXPONENT)
    fits = {
        "isoflops": VOCABULARY_FACTOR * flops**VOCABULARY_EXPONENT,
        "derivative": BASE_VOCABULARY * (params / BASE_OTHERS) ** GAMMA,
        "parametric_loss": least_loss(params, flops),
    }
    return [planned(approach, vocabulary, params, d_model) for approach, vocabulary in fits.items()]


def least_loss(params: float, flops: float) -> float:
    """N_v where the loss has no slope: below it a larger vocabulary helps, above it costs too much data."""
    others, budget = params / 1e6, flops / 1e15

    def slope(vocabulary: float) -> float:
        gained = ALPHA_2 * A2 * vocabulary ** (-ALPHA_2 - 1)
        lost = BETA * B * (budget / 6) ** -BETA * (others + vocabulary) ** (BETA - 1)
        return lost - gained

    low, high = 1e-6, 1e9
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return low * 1e6


def planned(approach: str, vocabulary: float, params: float, d_model: int) -> PlannedVocabulary:
    size = max(round(vocabulary / d_model / MULTIPLE), 1) * MULTIPLE
    embedding = size * d_model
    return PlannedVocabulary(
        approach, round(vocabulary), size, embedding / (params + embedding), 2 * embedding / (params + 2 * embedding)
    )
