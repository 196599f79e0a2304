"""Does a tokenizer's own normalizer do to raw text what the pipeline's normalization did?

The shards hold ids of normalized text; at inference the tokenizer gets raw text and normalizes it itself.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.protocol import Tokenizer


def agrees_with_normalized(tokenizer: Tokenizer, raw: pa.Array, normalized: pa.Array) -> list[int]:
    """Indices of the texts whose ids differ between the raw and the normalized form.

    Raises ValueError if the two arrays differ in length.
    """
    if len(raw) != len(normalized):
        raise ValueError(f"{len(raw)} raw texts and {len(normalized)} normalized ones are not the same documents")
    return differing_documents(tokenizer.encode(raw), tokenizer.encode(normalized))


def differing_documents(one: Encoded, other: Encoded) -> list[int]:
    """Indices of the documents whose ids are not the same in both."""
    same = one.lengths == other.lengths
    ids = one.ids[np.repeat(same, one.lengths)]
    other_ids = other.ids[np.repeat(same, other.lengths)]
    document = np.repeat(np.flatnonzero(same), one.lengths[same])
    same[document[ids != other_ids]] = False
    return [int(index) for index in np.flatnonzero(~same)]
