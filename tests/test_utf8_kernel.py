"""The kernel takes for UTF-8 what Python decodes, wherever it stands."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.corpus.utf8_kernel import is_utf8

# Every first byte of a character and the borders of what may follow it: bytes that look alike to the kernel stand once.
BYTES = [0, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF]
BYTES += [0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]


def decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def found(data: bytes) -> bool:
    return bool(is_utf8(np.frombuffer(data, np.uint8)))


@pytest.mark.parametrize("length", [1, 2, 3])
def test_short_ones(length: int) -> None:
    grid = np.array(np.meshgrid(*[BYTES] * length), np.uint8).reshape(length, -1).T
    for row in grid:
        assert found(row.tobytes()) == decodes(row.tobytes()), row


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_one_fault_at_any_place(data: st.DataObject) -> None:
    text = "".join(data.draw(st.lists(st.sampled_from(["a", "é", "中", "\U0001f600", "b" * 40]), max_size=60))).encode()
    assert found(text)
    place = data.draw(st.integers(0, len(text)))
    other = bytes(data.draw(st.lists(st.sampled_from(BYTES), max_size=4)))
    damaged = text[:place] + other + text[place + data.draw(st.integers(0, 2)) :]
    assert found(damaged) == decodes(damaged)
    assert found(damaged[:place]) == decodes(damaged[:place])


@pytest.mark.parametrize("size", [0, 1, 61, 63, 64, 65, 127, 128, 129])
def test_what_breaks_off_at_the_end(size: int) -> None:
    for character in "é中\U0001f600":
        spelled = character.encode()
        for kept in range(1, len(spelled) + 1):
            assert found(b"a" * size + spelled[:kept]) == (kept == len(spelled))
