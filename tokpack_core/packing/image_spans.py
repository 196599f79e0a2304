"""Documents with images: pieces that never cut one, and the runs of text and image that a pack's pieces are made of.

Pieces are cut from the front: each takes as much as fits under both limits, text to the last token and images whole.
No other cutting of a document into neighbouring pieces needs fewer of them. An image longer than a pack is in no
piece, and what stands before and after it are pieces of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokpack_core.packing import image_spans_kernels as kernels
from tokpack_core.packing.pieces import Pieces, number_pieces
from tokpack_core.packing.plan import PackingPlan

Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
NO_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class ImageSpans:
    """Where images stand in documents."""

    offsets: Int64
    """[documents + 1]: the images of document d are [offsets[d], offsets[d + 1])."""
    start: Int64
    """[images]: first token within the document, rising within each."""
    length: Int64
    """[images]: tokens, at least 1."""

    def document(self) -> Int64:
        """Document of each image, [images]."""
        return np.repeat(np.arange(self.offsets.size - 1), np.diff(self.offsets))


@dataclass(frozen=True)
class InterleavedPieces:
    """Pieces in document order, and what they hold."""

    pieces: Pieces
    images: Int64
    """[pieces]: images in each."""
    fewest: Int64
    """[documents]: pieces of each, which no other cutting undercuts."""


@dataclass(frozen=True)
class ModeRuns:
    """Segments of a plan as runs of one mode: 0 text, 1 an image."""

    offsets: Int64
    """[segments + 1]: the runs of segment s are [offsets[s], offsets[s + 1])."""
    length: Int32
    """[runs], in tokens, at least 1."""
    mode: Int8
    """[runs]"""

    @classmethod
    def of_text(cls, length: Int32) -> ModeRuns:
        """Each segment one run of text."""
        return cls(np.arange(length.size + 1, dtype=np.int64), length, np.zeros(length.size, np.int8))

    def segments(self) -> Int64:
        """Segment of each run, [runs]."""
        return np.repeat(np.arange(self.offsets.size - 1), np.diff(self.offsets))

    def within(self) -> Int64:
        """First token of each run within its segment, [runs]."""
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.length, dtype=np.int64)])
        return ends[:-1] - ends[self.offsets[:-1]][self.segments()]


def cut_interleaved(
    lengths: npt.NDArray[np.integer], images: ImageSpans, capacity: int, budget: int | None
) -> InterleavedPieces:
    """Documents as pieces of at most `capacity` tokens and `budget` images.

    lengths [documents]; a document of length 0 gives no piece, whatever its images.
    """
    lengths = np.ascontiguousarray(lengths, np.int64)
    limits = capacity, NO_LIMIT if budget is None else budget
    spans = images.offsets, images.start, images.length
    fewest = np.zeros(lengths.size, np.int64)
    nothing = np.zeros(0, np.int64)
    kernels.cut(lengths, *spans, *limits, fewest, nothing, nothing, nothing)
    document, chunk, chunks = number_pieces(fewest)
    start, length, counts = (np.zeros(document.size, np.int64) for _ in range(3))
    kernels.cut(lengths, *spans, *limits, fewest, start, length, counts)
    narrow = (a.astype(np.int32) for a in (length, chunk, chunks))
    return InterleavedPieces(Pieces(document.astype(np.int32), start, *narrow), counts, fewest)


def mode_runs(plan: PackingPlan, images: ImageSpans) -> ModeRuns:
    """The runs of every segment of a plan."""
    return split(plan.document.astype(np.int64), plan.start, plan.length.astype(np.int64), images)


def document_runs(lengths: Int64, images: ImageSpans) -> ModeRuns:
    """The runs of whole documents, lengths [documents]."""
    return split(np.arange(lengths.size), np.zeros(lengths.size, np.int64), lengths, images)


def split(document: Int64, start: Int64, length_in_tokens: Int64, images: ImageSpans) -> ModeRuns:
    segments = document, start, length_in_tokens
    spans = images.offsets, images.start, images.length
    counts = np.zeros(document.size, np.int64)
    kernels.split(*segments, *spans, counts, np.zeros(0, np.int32), np.zeros(0, np.int8))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    length, mode = np.zeros(int(offsets[-1]), np.int32), np.zeros(int(offsets[-1]), np.int8)
    kernels.split(*segments, *spans, counts, length, mode)
    return ModeRuns(offsets, length, mode)
