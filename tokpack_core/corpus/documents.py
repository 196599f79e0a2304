"""Documents out of source files: the reader for each format, chosen by the file's extension.

| extension | reader | a row is |
|---|---|---|
| .jsonl .ndjson .json | `jsonl`: JSON lines; a .json that is not lines is an error | a line |
| .csv .tsv | `tabular` | a line |
| .txt | `plain_text`: `txt_document` says whether a document is the file or a line | a line, or 1 |
| .parquet | `columnar` | a row |
| .arrow .feather .ipc | `columnar`: Arrow IPC file or stream | a row |

The text formats may end in .gz or .zst besides. Every reader streams, and gives batches of about 1 MiB (never more
than BATCH_BYTES of text, or one document), so that memory grows with the largest document and not with the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tokpack_core.config import ReadConfig
from tokpack_core.corpus.columnar import read_arrow, read_parquet
from tokpack_core.corpus.compression import read_blocks, text_blocks
from tokpack_core.corpus.files import ACCEPTED, file_type
from tokpack_core.corpus.jsonl import read_jsonl
from tokpack_core.corpus.plain_text import read_text_file, read_text_lines
from tokpack_core.corpus.problems import Problems
from tokpack_core.corpus.ranges import RowRange
from tokpack_core.corpus.tabular import read_csv, read_tsv
from tokpack_core.errors import InputError


def read_documents(
    file: Path,
    name: str,
    options: ReadConfig,
    problems: Problems,
    sentences: bool = False,
    part: RowRange | None = None,
) -> Iterator[pa.RecordBatch]:
    """Batches of documents in the order of the file, with the schema of `batch.SCHEMA`; none is empty.

    With `sentences`, a text in JSON lines, parquet or Arrow may be a list of strings, and `text` then holds lists (see
    `sentences`). `part`: the range of the file to read, if it has ranges.

    `name` is what errors and `problems` call the file. `problems` counts as batches are given out. Raises InputError
    for the first fault that `options.on_error` does not cover, and for a file that is cut, damaged, of another format,
    or without the configured columns; documents given out before that must not be used.
    """
    found = file_type(file.name)
    if found is None:
        raise InputError(f"{name}: its extension is none of {ACCEPTED}; rename or convert the file")
    kind, codec = found
    if options.content_field is not None and kind not in ("jsonl", "json"):
        raise InputError(f"{name}: blocks of text and images are read from JSON lines only; convert the file to .jsonl")
    if kind == "parquet":
        return read_parquet(file, name, options, problems, sentences, part)
    if kind == "arrow":
        return read_arrow(file, name, options, problems, sentences)
    if part is not None and part.start:
        blocks = read_blocks(file, name, codec, part.start, part.stop)
        return read_jsonl(blocks, name, options, problems, False, sentences, part.first_row)
    blocks = text_blocks(read_blocks(file, name, codec, 0, part.stop if part else None), name)
    if kind == "csv":
        return read_csv(blocks, name, options, problems)
    if kind == "tsv":
        return read_tsv(blocks, name, options, problems)
    if kind == "txt":
        read_text = read_text_file if options.txt_document == "file" else read_text_lines
        return read_text(blocks, name, options, problems)
    return read_jsonl(blocks, name, options, problems, kind == "json", sentences)
