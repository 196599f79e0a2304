"""For NFC and NFKC: what each code point can do in normalization, as one byte a code point.

Class of a code point (Unicode Standard Annex #15, sections "Detecting Normalization Forms" and "Stable Code Points"):

    0  starts a segment and stays as it is
    1  starts a segment and changes by itself
    2  belongs to the segment before it and may change it: composes with what precedes, or changes by itself
    3… belongs to the segment before it and stays as it is while classes in a row do not fall: 2 + combining class

A segment runs from one code point of class 0 or 1 to the next one: normalization never acts across segments. One
without class 1 or 2 and with combining classes in order is normalized already.

Versions of Unicode. The forms are those of pyarrow's utf8proc, and the table is read off its behaviour over all code
points, so table and normalizer never disagree, whatever version of Unicode pyarrow brings. Only combining classes
come from Python's `unicodedata`, for the code points that it knows: those never change from version to version. A
code point that is newer than Python gets class 2, which is merely slower. Between two versions of pyarrow the result
can differ only for code points that the older one does not know (Unicode's stability policy); so the version of
pyarrow belongs to what shapes a unit's bytes, and the version of Python does not. Found with pyarrow 26.0 and
Unicode 14.0 in Python: 0 code points with another NFC, 167 with another NFKC, all 167 unknown to Python.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.corpus.text_buffers import read_only, text_array, text_buffers

CODE_POINTS = 0x110000
SURROGATES = range(0xD800, 0xE000)
KEEPS, CHANGES, JOINS = 0, 1, 2
OVERLAY = "\u0334"
"""A mark of combining class 1, the lowest."""
IOTA_BELOW = "\u0345"
"""The mark of combining class 240, the highest."""

BoolArray = npt.NDArray[np.bool_]


@functools.cache
def class_table(form: Literal["nfc", "nfkc"]) -> npt.NDArray[np.uint8]:
    """The class of every code point under `form`: uint8 [0x110000], read-only. About 0.2 s, once a process."""
    scalars = np.delete(np.arange(CODE_POINTS, dtype=np.int64), SURROGATES)
    characters = character_array(scalars)
    table = np.zeros(CODE_POINTS, np.uint8)

    changes = np.zeros(CODE_POINTS, np.bool_)
    changes[scalars] = differs(normalized(characters, form), characters)

    composed = ~differs(normalized(characters, "nfc"), characters)
    canonical = normalized(characters, "nfd")
    composes = np.zeros(CODE_POINTS, np.bool_)
    composes[code_point_at(canonical.filter(pa.array(composed & (length(canonical) > 1))), -1)] = True

    marks = np.zeros(CODE_POINTS, np.bool_)
    marks[scalars] = are_reordered(characters)

    first = code_point_at(normalized(characters, "nfd" if form == "nfc" else "nfkd"), 0)
    joins = np.zeros(CODE_POINTS, np.bool_)
    joins[scalars] = (composes | marks)[first]

    table[changes] = CHANGES
    table[joins] = JOINS
    for mark in np.flatnonzero(marks & ~changes & ~composes):
        combining_class = unicodedata.combining(chr(mark))
        table[mark] = JOINS + combining_class  # 0, hence JOINS, for one that Python does not know
    return read_only(table)


def character_array(scalars: npt.NDArray[np.int64]) -> pa.Array:
    """One string a code point."""
    data = np.frombuffer(scalars.astype("<u4").tobytes().decode("utf-32-le").encode(), np.uint8)
    widths = 1 + (scalars >= 0x80).astype(np.int64) + (scalars >= 0x800) + (scalars >= 0x10000)
    return text_array(data, np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)]), pa.string())


def normalized(texts: pa.Array, form: str) -> pa.Array:
    return pc.utf8_normalize(texts, form.upper())


def differs(left: pa.Array, right: pa.Array) -> BoolArray:
    return pc.not_equal(left, right).to_numpy(zero_copy_only=False)


def length(texts: pa.Array) -> npt.NDArray[np.int32]:
    return pc.utf8_length(texts).to_numpy()


def code_point_at(texts: pa.Array, index: Literal[0, -1]) -> npt.NDArray[np.int64]:
    """The first or last code point of each text, none of which is empty: int64 [texts]."""
    data, _ = text_buffers(pc.utf8_slice_codeunits(texts, start=index, stop=1 if index == 0 else None))
    return np.frombuffer(data.tobytes().decode().encode("utf-32-le"), "<u4").astype(np.int64)


def are_reordered(characters: pa.Array) -> BoolArray:
    """Whether each character has a combining class other than 0: put between the highest and the lowest, it moves."""
    decomposed = normalized(characters, "nfd")
    between = pc.binary_join_element_wise(IOTA_BELOW, decomposed, OVERLAY, "")
    single = length(decomposed) == 1
    return single & differs(normalized(between, "nfd"), between)
