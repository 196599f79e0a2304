"""Numba kernel: which texts hold a character of a set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit


@njit(cache=True, nogil=True)
def documents_with(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], characters: npt.NDArray[np.uint8]
) -> npt.NDArray[np.bool_]:
    """bool [documents]; `data` is UTF-8, `characters` a bit for each code point above ASCII, the lowest bit first."""
    found = np.zeros(offsets.size - 1, np.bool_)
    for document in range(offsets.size - 1):
        i, end = offsets[document], offsets[document + 1]
        while i < end:
            byte = data[i]
            if byte < 0x80:
                i += 1
                continue
            if byte < 0xE0:
                point = (byte & 0x1F) << 6 | (data[i + 1] & 0x3F)
                i += 2
            elif byte < 0xF0:
                point = (byte & 0x0F) << 12 | (data[i + 1] & 0x3F) << 6 | (data[i + 2] & 0x3F)
                i += 3
            else:
                point = (
                    (byte & 0x07) << 18 | (data[i + 1] & 0x3F) << 12 | (data[i + 2] & 0x3F) << 6 | (data[i + 3] & 0x3F)
                )
                i += 4
            if characters[point >> 3] >> (point & 7) & 1:
                found[document] = True
                break
    return found
