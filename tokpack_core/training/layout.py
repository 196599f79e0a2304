"""cu_seqlens, positions, labels and loss mask of a pack.

Position i is trained when its label, token i + 1, is text of the same document: no label is foreign, none is an image
placeholder, and the last position of a pack, whose label would stand in another pack, is not trained.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokpack_core.training.segments import FILL, TEXT, Flags, Int32, PackSegments, document_ends

Int64 = npt.NDArray[np.int64]
IGNORED = -100
"""Label that torch's and Hugging Face's cross entropy leave out."""


def cu_seqlens(segments: PackSegments) -> Int32:
    """Where documents (a filled tail is one too) begin and the last ends, int32 [documents + 1], from 0 to T."""
    edges = np.cumsum(segments.length, dtype=np.int32)[document_ends(segments)]
    return np.concatenate([np.zeros(1, np.int32), edges])


def max_seqlen(edges: Int32) -> int:
    """Tokens of the longest document."""
    return int(np.diff(edges).max(initial=0))


def document_ids(segments: PackSegments) -> Int32:
    """Number of the document of each token, int32 [T]; FILL in a filled tail."""
    return np.repeat(segments.document, segments.length)


def position_ids(edges: Int32) -> Int64:
    """0, 1, ... within each document, int64 [T]."""
    return np.arange(edges[-1], dtype=np.int64) - np.repeat(edges[:-1], np.diff(edges))


def loss_mask(segments: PackSegments) -> Flags:
    """Whether a position is trained, when the label of position i is token i + 1; [T]."""
    document = document_ids(segments)
    text = np.repeat(segments.mode == TEXT, segments.length)
    trained = np.zeros(document.size, np.bool_)
    trained[:-1] = (document[1:] == document[:-1]) & (document[1:] != FILL) & text[1:]
    return trained


def shifted_labels(tokens: npt.NDArray[np.integer]) -> Int64:
    """Token i + 1 at position i, int64 [T]; 0 at the last position, which no loss mask trains."""
    labels = np.zeros(tokens.size, np.int64)
    labels[:-1] = tokens[1:]
    return labels


def unshifted_labels(tokens: npt.NDArray[np.integer], segments: PackSegments) -> Int64:
    """Labels for a model that shifts them itself (Hugging Face), int64 [T]: the token, or IGNORED.

    The first token of each document is IGNORED.
    """
    labels = np.full(tokens.size, IGNORED, np.int64)
    trained = loss_mask(segments)[:-1]
    labels[1:][trained] = tokens[1:][trained]
    return labels
