"""The figures of an audit, and what a sample without a difference says about all documents.

A sample of n documents of which k differ bounds the share of differing documents by the upper end of the one-sided
Clopper-Pearson interval (Clopper and Pearson, Biometrika 26, 1934); for k = 0 it is 1 - 0.05^(1/n), about 3/n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

CONFIDENCE = 0.95


@dataclass
class Audit:
    """What was compared and what differed.

    Attributes:
        documents: documents in the dataset; `checked` of them were encoded again, `from_source` of these from the
            source files, the others from the normalized text that the store keeps.
        differing: those whose tokens differ in the shard or in the dataset.
        dropped: checked documents of which a packing policy left tokens out, as it was told.
        examples: what differs, in words.
        causes: what is known of why it differs.
        not_from_source: source files that were not read, and why; the same for all else of a corpus.
    """

    documents: int = 0
    checked: int = 0
    from_source: int = 0
    tokens: int = 0
    differing: int = 0
    dropped: int = 0
    examples: list[str] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)
    not_from_source: dict[str, str] = field(default_factory=dict)

    @property
    def upper_bound(self) -> float:
        """With 95 % confidence, at most this share of all documents differs."""
        if self.checked >= self.documents:
            return self.differing / max(self.documents, 1)
        return upper_bound(self.differing, self.checked)

    def conclusion(self) -> str:
        said = f"{self.differing:,} of {self.checked:,} documents differ"
        if self.checked >= self.documents:
            return f"{said}; all documents were compared"
        return f"{said}: with 95 % confidence fewer than {self.upper_bound:.2%} of all {self.documents:,} do"


def upper_bound(differing: int, checked: int) -> float:
    """Upper end of the one-sided 95 % Clopper-Pearson interval for `differing` of `checked`."""
    if differing >= checked:
        return 1.0
    low, high = differing / checked, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chance_of_at_most(differing, checked, middle) > 1 - CONFIDENCE else (low, middle)
    return high


def chance_of_at_most(differing: int, checked: int, share: float) -> float:
    """P(X <= differing) of a binomial with `checked` trials of chance 0 < `share` < 1."""
    log, log1 = math.log(share), math.log1p(-share)
    choices = (log_choose(checked, k) for k in range(differing + 1))
    return math.fsum(math.exp(ways + k * log + (checked - k) * log1) for k, ways in enumerate(choices))


def log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
