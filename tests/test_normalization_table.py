"""The table of classes against what pyarrow's normalizer does, which it must foresee."""

import functools
import unicodedata
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tokpack_core.bpe.unicode_categories import UNASSIGNED, category_ranges
from tokpack_core.corpus.normalization_table import CHANGES, CODE_POINTS, JOINS, class_table
from tokpack_core.corpus.text_buffers import text_array, text_buffers

SURROGATES = range(0xD800, 0xE000)
OVERLAY = "\u0334"
"""A mark of combining class 1, the lowest."""
IOTA_BELOW = "\u0345"
"""The mark of combining class 240, the highest."""

BoolArray = npt.NDArray[np.bool_]


@functools.cache
def derived_classes(form: Literal["nfc", "nfkc"]) -> npt.NDArray[np.uint8]:
    """The class of every code point under `form`: uint8 [0x110000]."""
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
    return table


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


def assigned() -> BoolArray:
    ranges = category_ranges("16.0")
    return np.repeat(ranges.categories != UNASSIGNED, np.diff(ranges.starts, append=CODE_POINTS))


@pytest.mark.parametrize("form", ["nfc", "nfkc"])
def test_the_classes_are_what_the_normalizer_shows(form: Literal["nfc", "nfkc"]) -> None:
    table, derived = class_table(form), derived_classes(form)
    differing = np.flatnonzero(assigned() & (table != derived))
    # Marks that are newer than the Python which the file was made with: their class is not told, which is slower only.
    assert {unicodedata.category(chr(c)) for c in differing} <= {"Mn"}
    assert (table[differing] == JOINS).all()
    assert (derived[differing] > JOINS).all()


@pytest.mark.parametrize("form", ["nfc", "nfkc"])
def test_what_unicode_16_does_not_assign_may_do_anything(form: Literal["nfc", "nfkc"]) -> None:
    unknown = ~assigned()
    unknown[SURROGATES] = False
    assert (class_table(form)[unknown] == JOINS).all()
