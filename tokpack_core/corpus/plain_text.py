"""Plain text: a document a file, or a document a line.

As a file, the text is every byte of it but a byte order mark at its start, line ends included; an empty file holds no
document. As lines, only the line's own LF or CRLF is dropped, so an empty line is an empty document; the file's last
line needs no end. Rows are line numbers, or 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from tokpack_core.config import ReadConfig
from tokpack_core.corpus.batch import SCHEMA, BatchBuilder, counted, max_text_bytes, too_large
from tokpack_core.corpus.lines import line_blocks, max_line_bytes, split_text_lines
from tokpack_core.corpus.problems import Problems


def read_text_file(
    blocks: Iterator[bytes], name: str, options: ReadConfig, problems: Problems
) -> Iterator[pa.RecordBatch]:
    """One batch of one document, or none. Never holds more than max_document_bytes and a block."""
    builder = BatchBuilder(name, "line", options, problems)
    pieces: list[bytes] = []
    size = 0
    for block in blocks:
        pieces.append(block)
        size += len(block)
        if size > max_text_bytes(options):
            pieces.clear()
    if size > max_text_bytes(options):
        builder.refuse(1, too_large(options))
    elif size:
        builder.add(1, {options.text_field: b"".join(pieces)})
    yield from builder.take()


def read_text_lines(
    blocks: Iterator[bytes], name: str, options: ReadConfig, problems: Problems
) -> Iterator[pa.RecordBatch]:
    """Batches of documents, one a line."""
    builder = BatchBuilder(name, "line", options, problems)
    row = 1
    for run in line_blocks(blocks, max_line_bytes(options)):
        lines = [None] if run is None else split_text_lines(run)
        batch = _fast_batch(lines, row, options)
        if batch is not None:
            yield counted(batch, problems)
        else:
            for number, line in enumerate(lines, row):
                if line is None:
                    builder.refuse(number, too_large(options))
                else:
                    builder.add(number, {options.text_field: line})
            yield from builder.take()
        row += len(lines)


def _fast_batch(lines: Sequence[bytes | None], row: int, options: ReadConfig) -> pa.RecordBatch | None:
    """All lines as documents, or None when one of them is faulty, or the configuration wants more than the text."""
    if options.id_field is not None or options.metadata_fields:
        return None
    if any(line is None or len(line) > max_text_bytes(options) for line in lines):
        return None
    try:
        texts = pa.array(lines, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return None
    absent = pa.nulls(len(lines), pa.string())
    rows = pa.array(range(row, row + len(lines)), pa.int64())
    return pa.record_batch([absent, texts, absent, rows, absent], schema=SCHEMA)
