"""The segments of one pack, from which masks, positions and labels follow; nothing is inferred from token ids.

A segment is a run of tokens of one document that are all text or all one image. Text is causal, an image block is
bidirectional within itself, and neither sees another document. What an image block sees of what precedes it in its own
document is stored with it; text always sees everything that precedes it in its document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

TEXT = 0
IMAGE = 1
FILL = -1
"""Document number of a filled tail: no document, and nothing to train on."""


class ImageAttention(IntEnum):
    """What an image block sees besides itself.

    ISOLATE_IMAGES keeps images independent of one another at any depth of the network: text behind an image has seen
    it, so a later image may see only the text in front of the document's first image.
    """

    CAUSAL = 0
    """All that precedes it in its document."""
    ISOLATE_IMAGES = 1
    """The text in front of the first image of its document."""
    ISOLATE_MODALITIES = 2
    """Nothing."""


@dataclass(frozen=True)
class PackSegments:
    """One pack; all arrays are [segments], in the order of its tokens."""

    length: Int32
    """Tokens."""
    mode: Int8
    """TEXT (causal) or IMAGE (one bidirectional block)."""
    document: Int32
    """Number of the document within the pack, or FILL; segments of one document are neighbours."""
    image_attention: Int8
    """An ImageAttention; counts where mode is IMAGE."""

    @property
    def tokens(self) -> int:
        return int(self.length.sum(dtype=np.int64))

    @property
    def causal(self) -> bool:
        """Whether cu_seqlens alone tell the whole mask."""
        return not self.mode.any()


def text_segments(length: Int32, filled_tail: bool) -> PackSegments:
    """Each segment a document of its own, except the last one when it fills the tail."""
    document = np.arange(length.size, dtype=np.int32)
    if filled_tail:
        document[-1] = FILL
    zeros = np.zeros(length.size, np.int8)
    return PackSegments(length, zeros, document, zeros)


def joined(packs: Sequence[PackSegments]) -> PackSegments:
    """Packs back to back as one, documents numbered on."""
    numbered, first = [], 0
    for pack in packs:
        numbered.append(np.where(pack.document == FILL, FILL, pack.document + first).astype(np.int32))
        first += int(pack.document.max(initial=FILL)) + 1
    return PackSegments(
        np.concatenate([pack.length for pack in packs]),
        np.concatenate([pack.mode for pack in packs]),
        np.concatenate(numbered),
        np.concatenate([pack.image_attention for pack in packs]),
    )


def document_ends(segments: PackSegments) -> Flags:
    """Whether a segment is the last of its document, [segments]."""
    return np.append(segments.document[1:] != segments.document[:-1], True)
