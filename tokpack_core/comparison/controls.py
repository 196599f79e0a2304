"""The control that separates encoder from vocabulary.

A tokenizer with fewer tokens than another may owe that to its entries or to how it chooses among them. So both are also
counted with one and the same encoder, that of the fewest tokens: what is left of the difference then is due to the
vocabularies, the rest to the encoders. In logarithms the parts add up to the whole:

    ln(own_a / own_b) = ln(fewest_a / fewest_b) + [ln(plain_a / fewest_a) - ln(plain_b / fewest_b)]
                      + [ln(own_a / plain_a) - ln(own_b / plain_b)]

`own` is `plain` but for a modular tokenizer, of which `own` is by the sub-tokenizer of each document's language, and
`plain` by the whole vocabulary: another encoder of the same entries, and the last part what using fewer of them does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tokpack_core.comparison.held_out import HeldOut

SAME_SIZE = 0.01
"""Vocabularies that differ by at most this share are of the same size."""


def encoder_control(held_out: HeldOut, name: str) -> dict[str, Any]:
    """Same vocabulary, several encoders: the tokens of a tokenizer's own encoder over the fewest of its entries.

    Of a modular tokenizer also over those that it gives by its whole vocabulary.
    """
    own = int(held_out.tokens[name].sum())
    row: dict[str, Any] = {"tokenizer": name, "tokens": own, "fewest": None, "encoder_excess": None}
    row |= {"whole_vocabulary": None, "sub_tokenizer_excess": None}
    if name in held_out.fewest:
        row["fewest"] = fewest = int(held_out.fewest[name].sum())
        row["encoder_excess"] = own / fewest - 1 if fewest else None
    if name in held_out.whole:
        row["whole_vocabulary"] = whole = int(held_out.whole[name].sum())
        row["sub_tokenizer_excess"] = own / whole - 1 if whole else None
    return row


def vocabulary_control(held_out: HeldOut, name: str, baseline: str, sizes: dict[str, int]) -> dict[str, Any]:
    """Two vocabularies, one encoder: how much of the difference to the baseline is due to what."""
    own, plain = held_out.tokens, held_out.tokens | held_out.whole
    row: dict[str, Any] = {
        "tokenizer": name,
        "baseline": baseline,
        "same_size": abs(sizes[name] - sizes[baseline]) <= SAME_SIZE * sizes[baseline],
        "whole": share(own, name, baseline),
        "by_vocabulary": None,
        "by_encoder": None,
        "by_sub_tokenizers": None,
    }
    if name in held_out.whole or baseline in held_out.whole:
        row["by_sub_tokenizers"] = rest(row["whole"], share(plain, name, baseline))
    if name in held_out.fewest and baseline in held_out.fewest:
        row["by_vocabulary"] = share(held_out.fewest, name, baseline)
        row["by_encoder"] = rest(share(plain, name, baseline), row["by_vocabulary"])
    return row


def rest(whole: float, part: float) -> float:
    """What is left of a change when a part of it is taken away: 0.1 without 0.1 is 0."""
    return math.expm1(math.log1p(whole) - math.log1p(part))


def share(tokens: Mapping[str, Any], name: str, baseline: str) -> float:
    """How much longer than the baseline, as a share: -0.1 is a tenth shorter."""
    return int(tokens[name].sum()) / int(tokens[baseline].sum()) - 1


def controls(held_out: HeldOut, names: Sequence[str], baseline: str, sizes: dict[str, int]) -> dict[str, Any]:
    return {
        "same_vocabulary_two_encoders": [encoder_control(held_out, name) for name in names],
        "two_vocabularies_one_encoder": [
            vocabulary_control(held_out, name, baseline, sizes) for name in names if name != baseline
        ],
    }
