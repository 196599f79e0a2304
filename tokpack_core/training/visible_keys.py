"""Which keys each query sees, as two intervals a token.

A query sees the keys [context_begin, context_end) and [block_begin, block_end). For text the context runs from the
document's first token to the query itself; an image block sees all of itself, and before it what its ImageAttention
says.
"""

from __future__ import annotations

import numpy as np

from tokpack_core.training.layout import Int64, cu_seqlens
from tokpack_core.training.segments import IMAGE, Flags, ImageAttention, Int32, PackSegments, document_ends


def visibility(segments: PackSegments) -> Int32:
    """Rows context_begin, context_end, block_begin, block_end: int32 [4, T]."""
    ends = np.cumsum(segments.length, dtype=np.int32)
    begins = ends - segments.length
    last = document_ends(segments)
    number: Int64 = np.cumsum(last) - last
    document_begin = cu_seqlens(segments)[:-1][number]
    image = segments.mode == IMAGE
    attention = segments.image_attention
    context_end = np.where(attention == ImageAttention.ISOLATE_MODALITIES, document_begin, begins)
    isolated = attention == ImageAttention.ISOLATE_IMAGES
    context_end = np.where(isolated, first_image_begins(number, image, begins)[number], context_end)
    by_segment = np.stack([document_begin, context_end, begins, ends]).astype(np.int32)
    seen = np.repeat(by_segment, segments.length, axis=1)
    text = np.flatnonzero(np.repeat(~image, segments.length)).astype(np.int32)
    seen[1, text] = seen[3, text] = text + 1
    seen[2, text] = text
    return seen


def first_image_begins(number: Int64, image: Flags, begins: Int32) -> Int32:
    """First token of the first image of each document, int32 [documents]; 0 where there is none."""
    documents, first = np.unique(number[image], return_index=True)
    out = np.zeros(int(number.max(initial=-1)) + 1, np.int32)
    out[documents] = begins[image][first]
    return out
