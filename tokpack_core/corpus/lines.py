"""Whole lines out of blocks of bytes, in bounded memory.

Only LF ends a line, and only LF or CRLF is dropped by those who drop line ends: CR, VT, FF, NEL, U+2028 and U+2029
are text. A line longer than allowed is passed over as it streams by, never held.
"""

from __future__ import annotations

from collections.abc import Iterator

from tokpack_core.config import ReadConfig
from tokpack_core.corpus.batch import max_text_bytes
from tokpack_core.corpus.compression import BLOCK_BYTES

LINE_ALLOWANCE = 2**20


def max_line_bytes(options: ReadConfig) -> int:
    """Most bytes of a line: JSON escapes take up to three bytes for one of text, other fields have LINE_ALLOWANCE."""
    return 3 * max_text_bytes(options) + LINE_ALLOWANCE


def line_blocks(blocks: Iterator[bytes], limit: int) -> Iterator[bytes | None]:
    """Runs of whole lines, ends included, in order; None in the place of one line of more than `limit` bytes.

    A run is about a block, or a single longer line. A line within one block may exceed `limit` and still be given.
    """
    pending: list[bytes] = []
    pending_bytes = 0
    for block in blocks:
        start = 0
        if pending_bytes > BLOCK_BYTES:
            start = block.find(b"\n") + 1
            if start:
                too_long = pending_bytes + start - 1 > limit
                pending_bytes = 0
                yield None if too_long else taken(pending, memoryview(block)[:start])
                pending.clear()
        end = block.rfind(b"\n") + 1
        if end > start:
            pending_bytes = 0
            yield taken(pending, memoryview(block)[start:end])
        rest = block[max(start, end) :]
        pending_bytes += len(rest)
        pending.append(rest)
        if pending_bytes > max(limit, BLOCK_BYTES):
            pending.clear()
    if pending_bytes > max(limit, BLOCK_BYTES):
        yield None
    elif pending_bytes:
        yield taken(pending, memoryview(b""))


def taken(pending: list[bytes], last: memoryview) -> bytes:
    """All of `pending` and `last` in one, and nothing left in the list: a long line is held once, not twice."""
    run = b"".join([*pending, last])
    pending.clear()
    return run


def split_lines(run: bytes) -> list[bytes]:
    """The lines of a run without their LF; a run that ends in LF has no empty line after it."""
    lines = run.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def split_text_lines(run: bytes) -> list[bytes]:
    """The lines of a run without their LF or CRLF; a CR at the very end of a file ends no line, it is kept."""
    lines = split_lines(run)
    last = [] if run.endswith(b"\n") else [lines.pop()]
    return [line.removesuffix(b"\r") for line in lines] + last
