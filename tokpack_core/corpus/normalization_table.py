"""For NFC and NFKC: what each code point can do in normalization, as one byte a code point.

Class of a code point (Unicode Standard Annex #15, sections "Detecting Normalization Forms" and "Stable Code Points"):

    0  starts a segment and stays as it is
    1  starts a segment and changes by itself
    2  belongs to the segment before it and may change it: composes with what precedes, or changes by itself
    3… belongs to the segment before it and stays as it is while classes in a row do not fall: 2 + combining class

A segment runs from one code point of class 0 or 1 to the next one: normalization never acts across segments. One
without class 1 or 2 and with combining classes in order is normalized already.

`normalization_classes.txt` holds a line a range of code points: `first..last`, its class under NFC and under NFKC; what
stands in no line has class 0 in both.

Versions of Unicode. The forms are those of pyarrow's utf8proc, whatever version of Unicode it brings; the table only
says where they need not be asked for. It is that of Unicode 16.0, and what that does not assign has class 2, which is
merely slower. So it holds for every version: what was assigned once keeps its forms and its combining class for good
(Unicode's stability policy), and what utf8proc does not know yet it leaves alone. Between two versions of pyarrow the
result can differ only for code points that the older one does not know; so the version of pyarrow belongs to what
shapes a unit's bytes, and the version of Python does not.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from tokpack_core.corpus.text_buffers import read_only

CODE_POINTS = 0x110000
KEEPS, CHANGES, JOINS = 0, 1, 2


@functools.cache
def class_table(form: Literal["nfc", "nfkc"]) -> npt.NDArray[np.uint8]:
    """The class of every code point under `form`: uint8 [0x110000], read-only."""
    table = np.full(CODE_POINTS, KEEPS, np.uint8)
    text = Path(__file__).with_name("normalization_classes.txt").read_text(encoding="ascii")
    for line in text.splitlines():
        if not line.startswith("#"):
            places, *classes = line.split()
            first, last = places.split("..")
            table[int(first, 16) : int(last, 16) + 1] = int(classes[form == "nfkc"])
    return read_only(table)
