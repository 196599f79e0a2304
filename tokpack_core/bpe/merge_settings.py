"""What a training of merges is told, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokpack_core.tokenizers.byteification.token_bytes import CHARACTER_TO_BYTE

if TYPE_CHECKING:
    # To train needs none of the models.
    from tokpack_core.config import TieBreak

TIE_BREAKS: tuple[TieBreak, ...] = ("hugging_face", "lexicographic_greatest", "lexicographic_smallest")
"""Which of the most frequent pairs is merged: the smallest pair of ids; the greatest, the smallest pair of strings."""
BYTE_LEVEL_ORDER = bytes(CHARACTER_TO_BYTE[character] for character in sorted(CHARACTER_TO_BYTE))
"""All bytes in the order of the characters that stand for them in byte-level files."""


@dataclass(frozen=True)
class MergeSettings:
    vocab_size: int
    """The bytes and the tokens that merges make; special tokens do not count."""
    min_frequency: int = 1
    """A pair that occurs fewer times is not merged; one that occurs 0 times never is."""
    tie_break: TieBreak = "hugging_face"
    max_token_length: int | None = None
    """As in Hugging Face's trainer: a token that is merged has fewer bytes than this; two single bytes always merge."""
    alphabet: bytes = BYTE_LEVEL_ORDER
    """Bytes that have an id whether they occur or not; those that occur have one too."""
    max_pretoken_bytes: int | None = None
    """Longer pretokens are left out."""


@dataclass(frozen=True)
class Merges:
    tokens: list[bytes]
    """By id: single bytes in byte-level order, then what the merges made, in their order."""
    left: npt.NDArray[np.int32]
    """[merges]"""
    right: npt.NDArray[np.int32]
    count: npt.NDArray[np.int64]
    """How often the pair occurred when it was merged."""
