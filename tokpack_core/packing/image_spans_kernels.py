"""Cutting documents with images, and splitting pieces into runs of one mode: see `image_spans`.

Each kernel counts when its output arrays are empty and fills them when they are not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


@njit(cache=True)
def cut(
    lengths: Int64,
    offsets: Int64,
    image_start: Int64,
    image_length: Int64,
    capacity: int,
    budget: int,
    pieces: Int64,
    start: Int64,
    length: Int64,
    images: Int64,
) -> None:
    """pieces [documents] gets the pieces of each; start, length and images [pieces] what they are, unless empty."""
    fill = start.size > 0
    piece = 0
    for d in range(lengths.size):
        first = piece
        begin = at = held = 0
        place = offsets[d]
        while at < lengths[d]:
            is_image = place < offsets[d + 1] and image_start[place] == at
            text_end = image_start[place] if place < offsets[d + 1] else lengths[d]
            wanted = image_length[place] if is_image else text_end - at
            too_large = is_image and wanted > capacity
            room = capacity - (at - begin)
            full = room == 0 or (is_image and (wanted > room or held == budget))
            if (full or too_large) and at > begin:
                if fill:
                    start[piece], length[piece], images[piece] = begin, at - begin, held
                piece += 1
                begin, held = at, 0
                continue
            if too_large:
                at += wanted
                begin = at
                place += 1
            elif is_image:
                at += wanted
                held += 1
                place += 1
            else:
                at += min(wanted, room)
        if at > begin:
            if fill:
                start[piece], length[piece], images[piece] = begin, at - begin, held
            piece += 1
        pieces[d] = piece - first


@njit(cache=True)
def split(
    document: Int64,
    start: Int64,
    length: Int64,
    offsets: Int64,
    image_start: Int64,
    image_length: Int64,
    counts: Int64,
    run_length: Int32,
    run_mode: Int8,
) -> None:
    """counts [segments] gets the runs of each; run_length and run_mode [runs] what they are, unless empty."""
    fill = run_length.size > 0
    run = 0
    for s in range(document.size):
        first = run
        at, end = start[s], start[s] + length[s]
        low, high = offsets[document[s]], offsets[document[s] + 1]
        while low < high:
            middle = (low + high) // 2
            if image_start[middle] < at:
                low = middle + 1
            else:
                high = middle
        place = low
        while at < end:
            ahead = place < offsets[document[s] + 1] and image_start[place] < end
            if ahead and image_start[place] == at:
                step, mode = image_length[place], 1
                place += 1
            else:
                step, mode = (image_start[place] if ahead else end) - at, 0
            if fill:
                run_length[run] = step
                run_mode[run] = mode
            run += 1
            at += step
        counts[s] = run - first
