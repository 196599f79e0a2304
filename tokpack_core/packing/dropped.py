"""What packing policies took out of a set: no other token is ever missing from a plan."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Dropped:
    """What the policies took out; all zero unless a policy says `drop`."""

    documents: int = 0
    """Documents longer than a pack."""
    document_tokens: int = 0
    chunks: int = 0
    """Last pieces shorter than min_chunk."""
    chunk_tokens: int = 0
    images: int = 0
    """Images of more tokens than a pack."""
    image_tokens: int = 0

    def __add__(self, other: Dropped) -> Dropped:
        return Dropped(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    @property
    def tokens(self) -> int:
        return self.document_tokens + self.chunk_tokens + self.image_tokens
