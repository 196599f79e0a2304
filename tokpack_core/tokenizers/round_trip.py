"""Does text survive encoding and decoding?

In the families of LOSSY it does not, by their nature: WordPiece drops white space, and what has no entry is unk.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.config import Family
from tokpack_core.tokenizers.protocol import Tokenizer

LOSSY: tuple[Family, ...] = ("wordpiece", "character", "word")


def round_trip_failures(tokenizer: Tokenizer, texts: pa.Array) -> list[int]:
    """Indices of the (normalized) texts that differ after encoding and decoding."""
    restored = tokenizer.decode(tokenizer.encode(texts))
    same = pc.equal(texts.cast(pa.large_string()), restored.cast(pa.large_string()))
    return [int(index) for index in (~same.to_numpy(zero_copy_only=False).astype(bool)).nonzero()[0]]
