"""The control that separates encoder from vocabulary.

A tokenizer with fewer tokens than another may owe that to its entries or to how it chooses among them. So both are also
counted with one and the same encoder, that of the fewest tokens: what is left of the difference then is due to the
vocabularies, the rest to the encoders. In logarithms the two parts add up to the whole:

    ln(own_a / own_b) = ln(fewest_a / fewest_b) + [ln(own_a / fewest_a) - ln(own_b / fewest_b)]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tokpack_core.comparison.held_out import HeldOut

SAME_SIZE = 0.01
"""Vocabularies that differ by at most this share are of the same size."""


def encoder_control(held_out: HeldOut, name: str) -> dict[str, Any]:
    """Same vocabulary, two encoders: the tokens of a tokenizer's own encoder over the fewest that its entries allow."""
    own = int(held_out.tokens[name].sum())
    if name not in held_out.fewest:
        return {"tokenizer": name, "tokens": own, "fewest": None, "encoder_excess": None}
    fewest = int(held_out.fewest[name].sum())
    return {"tokenizer": name, "tokens": own, "fewest": fewest, "encoder_excess": own / fewest - 1 if fewest else None}


def vocabulary_control(held_out: HeldOut, name: str, baseline: str, sizes: dict[str, int]) -> dict[str, Any]:
    """Two vocabularies, one encoder: how much of the difference to the baseline is due to what."""
    row: dict[str, Any] = {
        "tokenizer": name,
        "baseline": baseline,
        "same_size": abs(sizes[name] - sizes[baseline]) <= SAME_SIZE * sizes[baseline],
        "whole": share(held_out.tokens, name, baseline),
        "by_vocabulary": None,
        "by_encoder": None,
    }
    if name in held_out.fewest and baseline in held_out.fewest:
        row["by_vocabulary"] = share(held_out.fewest, name, baseline)
        row["by_encoder"] = math.expm1(math.log1p(row["whole"]) - math.log1p(row["by_vocabulary"]))
    return row


def share(tokens: dict[str, Any], name: str, baseline: str) -> float:
    """How much longer than the baseline, as a share: -0.1 is a tenth shorter."""
    return int(tokens[name].sum()) / int(tokens[baseline].sum()) - 1


def controls(held_out: HeldOut, names: Sequence[str], baseline: str, sizes: dict[str, int]) -> dict[str, Any]:
    return {
        "same_vocabulary_two_encoders": [encoder_control(held_out, name) for name in names],
        "two_vocabularies_one_encoder": [
            vocabulary_control(held_out, name, baseline, sizes) for name in names if name != baseline
        ],
    }
