"""Follows an automaton over UTF-8 bytes and writes where pretokens end.

Functions that are inlined take no part in reference counting (`_nrt=False`), which would cost more than they do.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.automaton import DEAD, ENDS, MATCHES

SPARE = 2
"""Places at the end of `ends` that one step may need."""


@njit(cache=True, forceinline=True, _nrt=False)
def code_point(data, at, stop):  # type: ignore[no-untyped-def]
    """Code point and length in bytes of the character at `at`; a byte that begins none is one by itself."""
    code = int(data[at])
    if code >= 0x80:
        if code < 0xE0:
            if at + 1 < stop:
                return (code & 0x1F) << 6 | data[at + 1] & 0x3F, 2
        elif code < 0xF0:
            if at + 2 < stop:
                return (code & 0x0F) << 12 | (data[at + 1] & 0x3F) << 6 | data[at + 2] & 0x3F, 3
        elif at + 3 < stop:
            high = (code & 0x07) << 18 | (data[at + 1] & 0x3F) << 12
            return min(high | (data[at + 2] & 0x3F) << 6 | data[at + 3] & 0x3F, 0x10FFFF), 4
    return code, 1


@njit(cache=True, nogil=True)
def pretoken_ends(data, begin, stop, classes, transitions, stages, start, ends, unmatched):  # type: ignore[no-untyped-def]
    """Ends of the pretokens of data[begin:stop], in order, as many as `ends` (int64) has room for.

    Text that nothing matches makes pretokens of its own; their bytes are added to unmatched[0]. Returns how many were
    written; if the last one is not `stop`, a call that begins there goes on.
    """
    count = 0
    at = begin
    matched = -1
    state = start
    gap = -1
    room = ends.size - SPARE
    gap_stage = np.uint8(0)
    end_class = stages.size - 1
    while count < room:
        length = 1
        c = end_class
        if at < stop:
            code, length = code_point(data, at, stop)
            c = int(classes[code])
        entry = int(transitions[state + c])
        state = entry >> 2
        if state != DEAD:
            # No branch on the end of a pretoken, which no processor could predict.
            ends[count] = at
            ended = (entry & ENDS) >> 1
            count += ended
            matched = -1 if ended else (at if entry & MATCHES else matched)
            at += length
            continue
        if entry & MATCHES:
            matched = at
        if matched >= 0:
            ends[count] = matched
            count += 1
            at = matched
            if at == stop:
                break
        else:
            first = begin if count == 0 else ends[count - 1]
            if first == stop:
                break
            code, length = code_point(data, first, stop)
            stage = stages[classes[code]]
            at = first + length
            if gap == first and gap_stage == stage and count > 0:
                count -= 1
            gap_stage = stage
            unmatched[0] += at - first
            ends[count] = at
            count += 1
            gap = at
        matched = -1
        state = start
    if count >= room and ends[count - 1] != stop:
        count -= 1  # the last one may go on if nothing matched it
        if gap == ends[count]:
            unmatched[0] -= ends[count] - (ends[count - 1] if count else begin)
    return count


@njit(cache=True, nogil=True)
def documents_ends(  # type: ignore[no-untyped-def]
    data, offsets, document, begin, classes, transitions, stages, start, ends, borders, unmatched
):
    """Ends of the pretokens of consecutive documents, from byte `begin` of `document` on, while `ends` has room.

    borders[d] becomes the number of ends written when document d was complete. Returns (ends written, document and byte
    with which to go on); all is done when that document is offsets.size - 1.
    """
    count = 0
    while document < offsets.size - 1:
        stop = offsets[document + 1]
        if begin < stop:
            if ends.size - count <= 2 * SPARE:
                break
            count += pretoken_ends(data, begin, stop, classes, transitions, stages, start, ends[count:], unmatched)
            begin = ends[count - 1]
            if begin < stop:
                break
        borders[document] = count
        document += 1
    return count, document, begin


@njit(cache=True, nogil=True)
def cut_in_threes(data, begin, ends, borders, classes, threes, cut):  # type: ignore[no-untyped-def]
    """Ends of pretokens, those of runs that are counted in threes cut so; `borders` becomes what fits them."""
    written = 0
    document = 0
    first = begin
    for k in range(ends.size):
        while document < borders.size and borders[document] <= k:
            borders[document] = written
            document += 1
        stop = ends[k]
        if threes[classes[code_point(data, first, stop)[0]]]:
            characters = 0
            for at in range(first, stop):
                characters += data[at] & 0xC0 != 0x80
            for at in range(first + 1, stop):
                if data[at] & 0xC0 != 0x80:
                    characters -= 1
                    if characters % 3 == 0:
                        cut[written] = at
                        written += 1
        cut[written] = stop
        written += 1
        first = stop
    borders[document:] = written
    return written
