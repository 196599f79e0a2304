"""Ranges of rows of a large file that are read apart, and together give what the whole file gives.

| file | a range is |
|---|---|
| JSON lines, not compressed | bytes that begin and end at line ends |
| parquet | row groups |

Every other file is read whole: a compressed stream and an Arrow stream have one beginning, a quoted cell of CSV may
hold line ends. Where ranges are cut depends on the file and the size that is aimed at, and on nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tokpack_core.corpus.files import file_type


@dataclass(frozen=True)
class RowRange:
    """A range of a file.

    Attributes:
        start, stop: bytes of JSON lines, or row groups of parquet.
        first_row: the number of its first line or row in the file, from 1.
        bytes: of the file.
    """

    start: int
    stop: int
    first_row: int
    bytes: int


def has_ranges(filename: str) -> bool:
    """Whether a file of this name can be read by ranges."""
    kind, codec = file_type(filename) or (None, None)
    return kind == "parquet" or (kind in ("jsonl", "json") and codec is None)


class LineRanges:
    """Cuts a file, given block by block, at the first line end after each `goal` bytes."""

    def __init__(self, goal: int) -> None:
        self._goal = goal
        self._start = self._seen = 0
        self._first_row = self._row = 1
        self._found: list[RowRange] = []

    def add(self, block: bytes) -> None:
        counted = 0
        while (end := block.find(b"\n", max(self._start + self._goal - self._seen - 1, counted)) + 1) > 0:
            self._row += block.count(b"\n", counted, end)
            counted = end
            self._cut(self._seen + end)
        self._row += block.count(b"\n", counted)
        self._seen += len(block)

    def finish(self) -> list[RowRange]:
        """All ranges, in order; none of an empty file."""
        if self._seen > self._start:
            self._cut(self._seen)
        return self._found

    def _cut(self, stop: int) -> None:
        self._found.append(RowRange(self._start, stop, self._first_row, stop - self._start))
        self._start, self._first_row = stop, self._row


def row_group_ranges(path: Path, goal: int) -> list[RowRange]:
    """Runs of row groups of about `goal` bytes as they are once decompressed; none of a file that cannot be read so."""
    try:
        with pq.ParquetFile(path) as parquet:
            groups = [parquet.metadata.row_group(number) for number in range(parquet.num_row_groups)]
            sizes = [max(group.total_byte_size, 1) for group in groups]
            rows = [group.num_rows for group in groups]
    except (OSError, pa.ArrowException):
        return []
    ends, row_ends = [0, *accumulate(sizes)], [0, *accumulate(rows)]
    found: list[RowRange] = []
    start = 0
    for stop in range(1, len(ends)):
        size = ends[stop] - ends[start]
        if size >= goal or stop == len(sizes):
            of_file = path.stat().st_size * size // ends[-1]
            found.append(RowRange(start, stop, row_ends[start] + 1, of_file))
            start = stop
    return found
