"""What was wrong with documents: one fault is an error or a counted skip, as `on_error` says.

Two kinds are kept apart. A *fault* is one document that cannot be read while its neighbours can; `on_error` decides.
What is wrong with a whole file (a cut compressed stream, no text column) is an `InputError` whatever `on_error` says,
because a cut file must never pass for a short one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tokpack_core.config import OnError
from tokpack_core.errors import InputError

MAX_EXAMPLES = 20
MEND = "mend it, or leave such documents out with on_error: skip"
REPLACE = "convert the file to UTF-8, or set on_error: replace or skip"
REPLACED = "undecodable bytes replaced by U+FFFD"


class Fault(Exception):
    """One document cannot be read. `reason` is one of few fixed phrases, so that faults can be counted by it."""

    def __init__(self, reason: str, detail: str = "", remedy: str = MEND) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail
        self.remedy = remedy


class Example(NamedTuple):
    file: str
    row: int
    reason: str


@dataclass
class Problems:
    """Counts over the documents read so far, and the first few documents concerned."""

    documents: int = 0
    """Documents given out, empty ones included."""
    empty_documents: int = 0
    replaced_documents: int = 0
    replaced_characters: int = 0
    """U+FFFD written in the place of undecodable bytes or lone surrogates."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Documents left out, by reason."""
    examples: list[Example] = field(default_factory=list)

    def refuse(self, fault: Fault, file: str, place: str, row: int, on_error: OnError) -> None:
        """Count the fault under `skip`; raise it as an InputError that names `file`, `place` (line, row) else."""
        if on_error == "skip":
            self.skipped[fault.reason] += 1
            self._note(Example(file, row, fault.reason))
            return
        detail = f" ({fault.detail})" if fault.detail else ""
        raise InputError(f"{file}, {place} {row}: {fault.reason}{detail}; {fault.remedy}")

    def replaced(self, file: str, row: int, characters: int) -> None:
        self.replaced_documents += 1
        self.replaced_characters += characters
        self._note(Example(file, row, REPLACED))

    def merge(self, other: Problems) -> None:
        """Add the counts of files that come after those counted here."""
        self.documents += other.documents
        self.empty_documents += other.empty_documents
        self.replaced_documents += other.replaced_documents
        self.replaced_characters += other.replaced_characters
        self.skipped.update(other.skipped)
        self.examples = (self.examples + other.examples)[:MAX_EXAMPLES]

    def to_json(self) -> dict[str, object]:
        """The counts as values that JSON knows; reasons are sorted."""
        return {
            "documents": self.documents,
            "empty_documents": self.empty_documents,
            "replaced_documents": self.replaced_documents,
            "replaced_characters": self.replaced_characters,
            "skipped": dict(sorted(self.skipped.items())),
            "examples": [example._asdict() for example in self.examples],
        }

    @classmethod
    def from_json(cls, counts: dict[str, Any]) -> Problems:
        """The inverse of `to_json`."""
        examples = [Example(**example) for example in counts["examples"]]
        return cls(**{**counts, "skipped": Counter(counts["skipped"]), "examples": examples})

    def _note(self, example: Example) -> None:
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(example)
