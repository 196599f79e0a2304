"""Unicode forms of segments, in time linear in their length.

A library's normalizer puts the marks after a base character in order by insertion: quadratic, a minute for 400,000
marks in a row ("zalgo" text). Here a long segment is decomposed and its marks are sorted by combining class, stably,
before pyarrow sees it: the canonical ordering algorithm of the Unicode Standard (section 3.11), whose result is
canonically equivalent to the segment and so has the same form. A mark unknown to Python's `unicodedata` counts as a
base character here, which leaves some sorting to pyarrow and stays correct.
"""

from __future__ import annotations

import unicodedata
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LONG = 256
"""Code points from which on a segment is sorted first."""
DECOMPOSED: dict[str, Literal["NFD", "NFKD"]] = {"nfc": "NFD", "nfkc": "NFKD"}


def unicode_form(segments: pa.Array, form: Literal["nfc", "nfkc"]) -> pa.Array:
    """The form of each segment (string array), in the same type."""
    long = pc.greater_equal(pc.utf8_length(segments), LONG)
    if pc.any(long).as_py():
        ordered = [in_canonical_order(text, DECOMPOSED[form]) for text in segments.filter(long).to_pylist()]
        segments = pc.replace_with_mask(segments, long, pa.array(ordered, segments.type))
    return pc.utf8_normalize(segments, form.upper())


def in_canonical_order(text: str, form: Literal["NFD", "NFKD"]) -> str:
    """`text` decomposed, with every run of marks in order of combining class."""
    decomposed = text.translate({ord(c): unicodedata.normalize(form, c) for c in set(text)})
    code_points = np.frombuffer(decomposed.encode("utf-32-le"), "<u4")
    distinct, positions = np.unique(code_points, return_inverse=True)
    classes = np.array([unicodedata.combining(chr(c)) for c in distinct], np.uint8)[positions]
    runs = np.cumsum(classes == 0)
    return code_points[np.lexsort((classes, runs))].tobytes().decode("utf-32-le")
