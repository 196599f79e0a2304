"""CSV and TSV: the first line names the columns, each record is a document.

CSV is RFC 4180 read strictly: comma, double quotes doubled inside quotes, line ends allowed inside quotes. A wrong
number of fields is a fault of that record; a quote that is out of place or never closed is an error of the file,
because where the next record starts is then unknown. TSV has no quoting and no escapes (IANA's
text/tab-separated-values): a tab ends a field, LF or CRLF a record, and a quote is text. So text with tabs or line ends
cannot stand in TSV. Cells are strings: a missing cell is "" and never null, an integer id is its digits.

Blank lines are passed over (in TSV of one column they are empty cells). Rows are numbers of the line where a record
starts. On documents of 4.8 kB a CPU-second reads 120 MB of CSV and 340 MB of TSV on a busy machine.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from tokpack_core.config import ReadConfig
from tokpack_core.corpus.batch import BATCH_BYTES, BatchBuilder, too_large
from tokpack_core.corpus.lines import line_blocks, max_line_bytes, split_lines, split_text_lines
from tokpack_core.corpus.problems import Fault, Problems
from tokpack_core.errors import InputError

Record = tuple[int, list[bytes] | None]
"""Number of its first line, and its cells; None when it is too large to hold."""
MAX_BATCH_RECORDS = 2**14


def read_csv(blocks: Iterator[bytes], name: str, options: ReadConfig, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of documents. Raises InputError for wrong columns, wrong quoting, and an oversize quoted record."""
    return _read_records(_csv_records(blocks, name, max_line_bytes(options)), name, options, problems)


def read_tsv(blocks: Iterator[bytes], name: str, options: ReadConfig, problems: Problems) -> Iterator[pa.RecordBatch]:
    """Batches of documents. Raises InputError for wrong columns."""
    return _read_records(_tsv_records(blocks, max_line_bytes(options)), name, options, problems)


def _read_records(
    records: Iterator[Record], name: str, options: ReadConfig, problems: Problems
) -> Iterator[pa.RecordBatch]:
    builder = BatchBuilder(name, "line", options, problems)
    _, names = next(records, (1, None))
    columns = _wanted_columns(names, name, options)
    width = len(names or ())
    for row, cells in records:
        if cells is None:
            builder.refuse(row, too_large(options))
        elif len(cells) == width:
            builder.add(row, {column: cells[index] for column, index in columns.items()})
        else:
            builder.refuse(row, Fault("wrong number of fields", f"{len(cells)}, the header has {width}"))
        if builder.text_bytes >= BATCH_BYTES // 4 or len(builder.documents) >= MAX_BATCH_RECORDS:
            yield from builder.take()
    yield from builder.take()


def _wanted_columns(names: list[bytes] | None, name: str, options: ReadConfig) -> dict[str, int]:
    """Where each configured field stands. Raises InputError when text or id is missing or a name stands twice."""
    if not names:
        raise InputError(f"{name}: has no header line; write the names of the columns in the first line")
    try:
        header = [cell.decode() for cell in names]
    except UnicodeDecodeError:
        raise InputError(f"{name}: its header line is not UTF-8; convert the file to UTF-8") from None
    needed = [options.text_field] + ([options.id_field] if options.id_field is not None else [])
    for column in needed:
        if column not in header:
            found = ", ".join(map(repr, header))
            raise InputError(f"{name}: has no column {column!r}, only {found}; set text_field and id_field to match")
    wanted = [*needed, *([options.lang_field] if options.lang_field is not None else []), *options.metadata_fields]
    for column in wanted:
        if header.count(column) > 1:
            raise InputError(f"{name}: column {column!r} stands twice in the header; rename one")
    return {column: header.index(column) for column in wanted if column in header}


def _tsv_records(blocks: Iterator[bytes], limit: int) -> Iterator[Record]:
    width = 0
    row = 1
    for run in line_blocks(blocks, limit):
        for line in [None] if run is None else split_text_lines(run):
            cells = None if line is None or len(line) > limit else line.split(b"\t")
            if cells != [b""] or width == 1:
                width = width or len(cells or ())
                yield row, cells
            row += 1


@dataclass
class _RecordLines:
    """Lines for csv.reader, one character a byte; refuses to feed it a record larger than `limit` bytes."""

    runs: Iterator[bytes | None]
    name: str
    limit: int
    record_bytes: int = 0
    record_row: int = 1

    def __iter__(self) -> Iterator[str]:
        for run in self.runs:
            for line in [None] if run is None else split_lines(run):
                self.record_bytes += self.limit + 1 if line is None else len(line) + 1
                if line is None or self.record_bytes > self.limit:
                    raise InputError(
                        f"{self.name}, line {self.record_row}: a record is larger than max_document_bytes; "
                        "close its quote, split its text or raise max_document_bytes"
                    )
                yield line.decode("latin-1") + "\n"


def _csv_records(blocks: Iterator[bytes], name: str, limit: int) -> Iterator[Record]:
    # The module's own limit is one for the whole process and would refuse documents of more than 128 kB;
    # _RecordLines bounds each record instead.
    csv.field_size_limit(2**31 - 1)
    lines = _RecordLines(line_blocks(blocks, limit), name, limit)
    reader = csv.reader(iter(lines), strict=True)
    while True:
        lines.record_bytes, lines.record_row = 0, reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise InputError(
                f"{name}, line {lines.record_row}: wrong quoting or line end ({error}); "
                "close the quote, or double quotes inside quotes"
            ) from None
        if cells is None:
            return
        if cells:
            yield lines.record_row, [cell.encode("latin-1") for cell in cells]
