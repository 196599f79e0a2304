"""Which engine encodes for a tokenizer, and why not a faster one.

Engines are proven equal before they are used, so the choice shapes no id. One that was tried and gave other ids is a
warning, which is stored with whatever was encoded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True)
class EncoderChoice:
    """`engine` is the name of the library that encodes, `warnings` a sentence for each that gave other ids, and for
    what the tokenizer's files say and it does not follow."""

    engine: str
    warnings: tuple[str, ...] = ()

    def also(self, warnings: tuple[str, ...]) -> EncoderChoice:
        return replace(self, warnings=(*warnings, *self.warnings)) if warnings else self

    def as_json(self) -> dict[str, Any]:
        return {"encoder": self.engine, "encoder_warnings": list(self.warnings)}


@runtime_checkable
class ChoosesEncoder(Protocol):
    @property
    def encoder(self) -> EncoderChoice: ...


def encoder_choice(tokenizer: object) -> EncoderChoice:
    """What encodes for a tokenizer now; small texts are left to the reference, for faster engines take time to load."""
    return tokenizer.encoder if isinstance(tokenizer, ChoosesEncoder) else EncoderChoice("reference")
