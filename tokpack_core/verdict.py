"""What a check says: a figure, its limit, and in words what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """`passed` is whether `value` keeps within `limit`; the explanation names offenders and, if failed, the remedy.

    A verdict that is not `blocking` is a warning.
    """

    name: str
    passed: bool
    value: float
    limit: float
    explanation: str
    blocking: bool = True
