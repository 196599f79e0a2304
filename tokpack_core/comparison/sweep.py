"""Are the algorithms different at all? Families at several vocabulary sizes, trained on the same text.

At each size every family is compared with every other on the held-out documents; the corrected p-values are over all
pairs of all sizes. The question is that of a study of Hungarian (LREC 2026), which found differences between algorithms
small beside those between sizes. Utilization by size, family beside family, tells where a larger vocabulary no longer
finds use: a line that falls is vocabulary that this text does not need.

A text may give a family fewer entries than the size says: `entries` tells how many. A family with too many unknown
tokens has lost text: it is in no spread, and its pairs do not compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from tokpack_core.comparison.bootstrap import finite, holm, paired_difference
from tokpack_core.comparison.comparison import CERTAIN, UNKNOWN, verdict
from tokpack_core.comparison.held_out import Candidate, HeldOut
from tokpack_core.comparison.unknown import TOLERATED, unknown_share
from tokpack_core.vocabulary.utilization import vocabulary_utilization


@dataclass(frozen=True)
class Trained:
    """One tokenizer of the sweep: `name` is that of the candidate."""

    name: str
    family: str
    size: int


def sweep(candidates: Sequence[tuple[Candidate, Trained]], held_out: HeldOut) -> dict[str, Any]:
    """pairs: a row a size and two families; sizes: the spread between families at each size, and their utilization."""
    trained = [one for _, one in candidates]
    sizes = sorted({one.size for one in trained})
    lost = {one.name: unknown_share(held_out.unknown[one.name], held_out.tokens[one.name]) for one in trained}
    pairs = [
        {
            "size": size,
            "family": one.family,
            "other": other.family,
            **finite(paired_difference(held_out.tokens[one.name], held_out.tokens[other.name])),
            "unknown_share": max(lost[one.name], lost[other.name]),
        }
        for size in sizes
        for one, other in combinations([one for one in trained if one.size == size], 2)
    ]
    for row, p in zip(pairs, holm([row["p"] for row in pairs]), strict=True):
        row["corrected_p"] = p
        row["verdict"] = verdict(row["ratio"], p, row["unknown_share"])
    used = {
        one.name: vocabulary_utilization(held_out.counts[one.name], candidate.tokenizer.vocabulary())
        for candidate, one in candidates
    }
    rows = [size_row(size, trained, held_out, pairs, used, lost) for size in sizes]
    for row in rows:
        row["entries"] = {
            one.family: found.tokenizer.vocab_size for found, one in candidates if one.size == row["size"]
        }
    return {"pairs": pairs, "sizes": rows}


def size_row(
    size: int,
    trained: Sequence[Trained],
    held_out: HeldOut,
    pairs: list[dict[str, Any]],
    used: dict[str, float],
    lost: dict[str, float],
) -> dict[str, Any]:
    """spread: between the families that keep the text, null if fewer than two do; `lost_text`: unknown shares of the
    others; pairs: those that compare."""
    text = int(held_out.bytes.sum())
    of_size = [one for one in trained if one.size == size]
    lengths = {one.family: text / int(held_out.tokens[one.name].sum()) for one in of_size}
    lossy = {one.family: lost[one.name] for one in of_size if lost[one.name] > TOLERATED}
    kept = [length for family, length in lengths.items() if family not in lossy]
    asked = [row for row in pairs if row["size"] == size and row["verdict"] != UNKNOWN]
    return {
        "size": size,
        "bytes_per_token": lengths,
        "vocabulary_utilization": {one.family: used[one.name] for one in of_size},
        "lost_text": lossy,
        "spread": max(kept) / min(kept) - 1 if len(kept) > 1 else None,
        "pairs": len(asked),
        "significant_pairs": sum(row["verdict"] in CERTAIN for row in asked),
    }
