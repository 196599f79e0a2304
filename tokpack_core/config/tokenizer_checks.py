"""Limits of the checks of a tokenizer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tokpack_core.config.values import Model

TokenizerGate = Literal["rare_token_share", "vocabulary_utilization", "unreachable_tokens", "round_trip", "fairness"]


class TokenizerChecks(Model):
    rare_below: int = Field(default=5, ge=1, le=1001)
    """An entry seen fewer times in the training sample is rare."""
    max_rare_token_share: float = Field(default=0.10, ge=0, le=1)
    """Most rare entries, never seen ones included, as a share of all without special tokens."""
    min_vocabulary_utilization: float = Field(default=0.90, ge=0, le=1)
    """Fewest entries seen at least once, as a share of all without special tokens."""
    warn: tuple[TokenizerGate, ...] = ()
    """Checks that warn where they would stop what is downstream."""
    pits: Literal["warn", "block"] = "warn"
    """Whether a common fault (digits in long runs, lost indentation, missing Hanzi, …) stops what is downstream."""
    normalization_agreement: Literal["warn", "block"] = "warn"
    """Whether raw text that gets other ids than its normalized form stops what is downstream."""
    max_unreachable_share: float = Field(default=0.05, ge=0, le=1)
    """Most entries that no text gives, as a share of all without special tokens."""
    max_premium: float | None = Field(default=None, ge=1)
    """Most tokens of any language over English on the same sentences; needs `parallel`."""
