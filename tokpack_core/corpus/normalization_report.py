"""What normalization changed: by document for one batch, and summed by language and kind for a corpus.

Reports of units are merged in any order with the same result. What would break that is a bounded list of the most
frequent replacements, since one that is rare in every unit may be frequent in all; so a report keeps the first
`MAX_REPLACED` replacements in an order that does not depend on counts (shorter labels first, then by code point).
One that falls out of a unit's list has `MAX_REPLACED` others before it there, hence also in every sum: what a sum
keeps has exact counts. The bound is far above what text brings: NFKC replaces about 5,000 characters, and decomposed
Korean gives 11,172 syllables.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

KINDS = ("byte_order_mark", "line_end", "control_character", "trailing_whitespace", "nfc", "nfkc")
MAX_REPLACED = 20_000
UNDETERMINED = "und"
"""BCP 47's tag for documents without a language."""


@dataclass(frozen=True)
class NormalizationChanges:
    """What was changed in one batch of documents."""

    characters: npt.NDArray[np.int64]
    """int64 [documents, kinds], kinds as in `KINDS`: characters affected. A CRLF counts as one; under nfc and nfkc a
    character counts with the marks that follow it."""
    replaced: dict[str, int]
    """How often the unicode form replaced what by what: {"，→,": 120, "ﬁ→fi": 3}."""


@dataclass
class NormalizationReport:
    """Sums of changes by language and kind; `add` and `merge` commute."""

    languages: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    """Language -> int64 [kinds, 2]: documents changed, characters affected."""
    replaced: dict[str, int] = field(default_factory=dict)

    def add(self, langs: pa.Array, changes: NormalizationChanges) -> None:
        """Adds a batch, whose documents have the languages `langs` (string array; null: undetermined)."""
        encoded = langs.fill_null(UNDETERMINED).dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        sums = np.zeros((len(encoded.dictionary), len(KINDS), 2), np.int64)
        np.add.at(sums, codes, np.stack([changes.characters > 0, changes.characters], axis=2))
        self._add_sums(dict(zip(encoded.dictionary.to_pylist(), sums, strict=True)), changes.replaced)

    def merge(self, other: NormalizationReport) -> None:
        """Adds all of `other`, which stays as it is."""
        self._add_sums(other.languages, other.replaced)

    def _add_sums(self, languages: dict[str, npt.NDArray[np.int64]], replaced: dict[str, int]) -> None:
        for lang, sums in languages.items():
            self.languages[lang] = self.languages.get(lang, 0) + sums
        for label, count in replaced.items():
            self.replaced[label] = self.replaced.get(label, 0) + count
        if len(self.replaced) > MAX_REPLACED:
            kept = heapq.nsmallest(MAX_REPLACED, self.replaced, key=lambda label: (len(label), label))
            self.replaced = {label: self.replaced[label] for label in kept}

    def to_json(self, top: int | None = 50) -> dict[str, Any]:
        """{lang: {kind: {documents, characters}}, "replaced": {label: count}}: the `top` most frequent, None for all.

        Every language seen is there, with the kinds that occurred. With `top=None`, `from_json` gives the report back.
        """
        report: dict[str, Any] = {}
        for lang, sums in sorted(self.languages.items()):
            rows = zip(KINDS, sums.tolist(), strict=True)
            report[lang] = {kind: {"documents": row[0], "characters": row[1]} for kind, row in rows if row[0]}
        ranked = sorted(self.replaced.items(), key=lambda item: (-item[1], len(item[0]), item[0]))
        # A language may be called "replaced" too: its kinds and the labels, which have an arrow, do not collide.
        report["replaced"] = report.get("replaced", {}) | dict(ranked[:top])
        return report

    @classmethod
    def from_json(cls, report: dict[str, Any]) -> NormalizationReport:
        """The report that `to_json(top=None)` wrote."""
        result = cls()
        for lang, entries in report.items():
            kinds = {name: entry for name, entry in entries.items() if name in KINDS}
            result.replaced |= {name: entry for name, entry in entries.items() if name not in KINDS}
            if kinds or lang != "replaced":
                rows = (kinds.get(kind, {"documents": 0, "characters": 0}) for kind in KINDS)
                result.languages[lang] = np.array([(row["documents"], row["characters"]) for row in rows], np.int64)
        return result


def replacement_label(old: str, new: str) -> str:
    """`old→new`, where a space or a character that does not print stands as U+00A0."""
    return f"{visible(old)}→{visible(new)}"


def visible(text: str) -> str:
    return "".join(c if c.isprintable() and not c.isspace() else f"U+{ord(c):04X}" for c in text)
