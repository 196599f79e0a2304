"""What a packing did to its documents: cuts, padding, what policies cost, and tokens that lost their context.

The figures add up over independent blocks; shares are derived from the sums. "Fewer Truncations Improve Language
Modeling" (arXiv 2404.10830) is where cuts of documents that would fit are shown to cost quality.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

import numpy as np
import numpy.typing as npt

from tokpack_core.packing.dropped import Dropped
from tokpack_core.packing.plan import PackingPlan


@dataclass(frozen=True)
class PackingFigures:
    """Counts of one plan, or of the sum of several with the same sequence length."""

    documents: int = 0
    empty_documents: int = 0
    """Documents of 0 tokens, which are in no pack."""
    tokens: int = 0
    packs: int = 0
    padding: int = 0
    """Positions of packs that hold no token of a document."""
    cuts: int = 0
    """Pieces of documents beyond the first of each."""
    needless_cuts: int = 0
    """Cuts of documents that would fit in a pack."""
    unavoidable_cuts: int = 0
    """Sum of ceil(length / sequence length) - 1: the fewest cuts that any packing makes."""
    tokens_lost: int = 0
    """Tokens of documents less tokens in packs and those that a policy dropped."""
    out_of_context_tokens: int = 0
    """Tokens in a segment that does not begin with its document."""
    foreign_labels: int = 0
    """Pieces that are not their document's last, so end without EOD: the label of their last position is foreign."""
    lower_bound_packs: int = 0
    """Sum over blocks of ceil(tokens / sequence length), or of ceil(images / images a pack) where that is more;
    without what is dropped."""
    alignment_padding: int = 0
    """Positions of the padding that follow a piece up to the next multiple of the alignment."""
    dropped_documents: int = 0
    """Documents that `long_documents: drop` left out."""
    dropped_document_tokens: int = 0
    dropped_chunks: int = 0
    """Last pieces that `short_chunks: drop` left out."""
    dropped_chunk_tokens: int = 0
    images: int = 0
    image_tokens: int = 0
    """Tokens of all images, those that a policy dropped too."""
    dropped_images: int = 0
    """Images of more tokens than a pack, that `large_images: drop` left out."""
    dropped_image_tokens: int = 0

    @property
    def utilization(self) -> float:
        """Share of the positions of all packs that hold tokens of documents; 1 when there is no pack."""
        filled = self.tokens - self.tokens_lost - self.tokens_dropped
        return filled / (filled + self.padding) if self.packs else 1.0

    @property
    def tokens_dropped(self) -> int:
        """Tokens that policies took out, as they were told."""
        return self.dropped_document_tokens + self.dropped_chunk_tokens + self.dropped_image_tokens

    @property
    def vision_share(self) -> float:
        """Share of the tokens of documents that are images."""
        return self.image_tokens / self.tokens if self.tokens else 0.0

    def __add__(self, other: PackingFigures) -> PackingFigures:
        return PackingFigures(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def as_dict(self) -> dict[str, int | float]:
        """All counts and the utilization, ready for JSON; what is of images only where there are any."""
        counts = {name: value for name, value in asdict(self).items() if self.images or "image" not in name}
        shares = {"utilization": self.utilization} | ({"vision_share": self.vision_share} if self.images else {})
        return counts | shares

    @classmethod
    def from_dict(cls, figures: dict[str, int | float]) -> PackingFigures:
        """The inverse of `as_dict`; a count that is not there, because it is newer, is 0."""
        return cls(**{f.name: int(figures.get(f.name, 0)) for f in fields(cls)})


@dataclass(frozen=True)
class ImageFigures:
    """What the figures need to know of images: none by default."""

    images: int = 0
    tokens: int = 0
    packed: int = 0
    """Images that are in packs."""
    per_pack: int | None = None
    """Most images in a pack."""
    fewest: npt.NDArray[np.int64] | None = None
    """Pieces that each document must have, [documents]."""


def packing_figures(
    plan: PackingPlan,
    lengths: npt.NDArray[np.integer],
    sequence_length: int,
    align: int = 1,
    dropped: Dropped | None = None,
    images: ImageFigures | None = None,
) -> PackingFigures:
    """Measure `plan` against the documents it packs: lengths [documents], in tokens; `dropped` is not in the plan."""
    dropped = dropped or Dropped()
    images = images or ImageFigures()
    tokens = int(lengths.sum(dtype=np.int64))
    packed = int(plan.length.sum(dtype=np.int64))
    first = plan.chunk == 0
    fewest = np.asarray(-(-lengths.astype(np.int64) // sequence_length)) if images.fewest is None else images.fewest
    fits = fewest[plan.document] <= 1
    by_tokens = -(-(tokens - dropped.tokens) // sequence_length)
    by_images = -(-images.packed // images.per_pack) if images.per_pack else 0
    return PackingFigures(
        documents=lengths.size,
        empty_documents=int(np.count_nonzero(lengths == 0)),
        tokens=tokens,
        packs=plan.packs,
        padding=plan.packs * sequence_length - packed,
        cuts=int(np.count_nonzero(~first)),
        needless_cuts=int(np.count_nonzero(~first & fits)),
        unavoidable_cuts=int(np.maximum(fewest - 1, 0).sum()),
        tokens_lost=tokens - packed - dropped.tokens,
        out_of_context_tokens=int(plan.length[plan.start > 0].sum(dtype=np.int64)),
        foreign_labels=int(np.count_nonzero(plan.chunk < plan.chunks - 1)),
        lower_bound_packs=max(by_tokens, by_images),
        alignment_padding=int((-plan.length % align).sum(dtype=np.int64)) if align > 1 else 0,
        dropped_documents=dropped.documents,
        dropped_document_tokens=dropped.document_tokens,
        dropped_chunks=dropped.chunks,
        dropped_chunk_tokens=dropped.chunk_tokens,
        images=images.images,
        image_tokens=images.tokens,
        dropped_images=dropped.images,
        dropped_image_tokens=dropped.image_tokens,
    )
