"""What packing policies took out of a set: no other token is ever missing from a plan."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dropped:
    """What the policies took out; all zero unless a policy says `drop`."""

    documents: int = 0
    """Documents longer than a pack."""
    document_tokens: int = 0
    chunks: int = 0
    """Last pieces shorter than min_chunk."""
    chunk_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.document_tokens + self.chunk_tokens
