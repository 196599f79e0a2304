"""JSON lines: one object a line.

Blocks of about 1 MiB are cut at line ends and read by a kernel (`json_lines`), or, where it does not serve, each line
by orjson; a block in which anything is odd is read again line by line, under the same rules, by the careful path. On
155 MB of text in 26 languages (4.8 kB a document) one CPU-second reads 440 MB of file with the kernel, 260 with orjson.
pyarrow.json was not chosen: it takes an absent text for a null, one faulty line fails its whole block, and a line
longer than a block cannot be read.

What is a line of JSON is what RFC 8259 says and orjson takes: UTF-8, no NaN or Infinity, no number beyond a double,
at most 1024 levels; the last of duplicate keys counts. Blank lines are passed over, they are no documents. A byte
order mark at the start of any line is dropped, as files joined by `cat` have them. Rows are line numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pyarrow as pa

from tokpack_core.config import OnError, ReadConfig
from tokpack_core.corpus.batch import (
    SCHEMA,
    BatchBuilder,
    counted,
    decode_utf8,
    max_text_bytes,
    metadata_json,
    too_large,
)
from tokpack_core.corpus.compression import BYTE_ORDER_MARK
from tokpack_core.corpus.lines import line_blocks, max_line_bytes, split_lines
from tokpack_core.corpus.problems import Fault, Problems
from tokpack_core.corpus.sentences import SENTENCES
from tokpack_core.errors import InputError

WORTH_LOADING = 2**21
"""Bytes of a file that are read sooner than a kernel is loaded, of which training on a little text uses no other."""
LARGE = 2**24
"""Characters of a text whose copies are worth counting."""
AS_LINES = "rewrite it as JSON lines, one object a line"
ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)
"""A JSON escape: a surrogate pair, a lone surrogate (group 1), or any other."""


def read_jsonl(
    blocks: Iterator[bytes],
    name: str,
    options: ReadConfig,
    problems: Problems,
    plain_json: bool = False,
    sentences: bool = False,
    first_row: int = 1,
) -> Iterator[pa.RecordBatch]:
    """Batches of documents. `plain_json`: the file calls itself .json, so its first line must prove that it is lines.

    With `sentences`, a text may be a list of strings (see `sentences`). `first_row`: the number of the first line.

    Raises InputError for a JSON array or a document spread over lines, and for faults that `on_error` does not cover.
    """
    builder = BatchBuilder(name, "line", options, problems, sentences)
    row, read = first_row, 0
    unproven = first_row == 1
    for run in line_blocks(blocks, max_line_bytes(options)):
        if unproven and run is not None:
            unproven = not _check_first_line(run, name, plain_json)
        read += len(run or b"")
        if read >= WORTH_LOADING and (batch := _batch_by_kernel(run, row, options)) is not None:
            del run
            row += len(batch)
            yield counted(batch, problems)
            del batch
            continue
        lines = [None] if run is None else split_lines(run)
        del run
        count = len(lines)
        batch = _fast_batch(lines, row, options, sentences)
        if batch is not None:
            yield counted(batch, problems)
            del batch
        else:
            for number, line in enumerate(lines, row):
                _read_line(line, number, builder)
            del lines
            yield from builder.take()
        row += count


def _check_first_line(run: bytes, name: str, plain_json: bool) -> bool:
    """Whether the run has a line that is not blank; raises InputError when the first one shows a JSON document."""
    text = run.removeprefix(BYTE_ORDER_MARK).lstrip(b" \t\r\n")
    if text.startswith(b"["):
        raise InputError(f"{name}: is a JSON array, not JSON lines; {AS_LINES}")
    if text and plain_json:
        try:
            parse_object(text.split(b"\n", 1)[0], "replace")
        except Fault as fault:
            raise InputError(f"{name}: is not JSON lines, its first line is {fault.reason}; {AS_LINES}") from None
    return bool(text)


def _batch_by_kernel(run: bytes | None, row: int, options: ReadConfig) -> pa.RecordBatch | None:
    """All lines as documents, or None when one needs a closer look."""
    if run is None or not run.endswith(b"\n"):
        return None
    if options.content_field is not None or options.metadata_fields:
        return None
    from tokpack_core.corpus.json_lines import batch_of_lines

    return batch_of_lines(run, row, options)


def _fast_batch(lines: Sequence[bytes | None], row: int, options: ReadConfig, sentences: bool) -> pa.RecordBatch | None:
    """All lines as documents, or None when one is blank, faulty, or needs a closer look."""
    if options.content_field is not None:
        return None
    count = len(lines)
    if any(line is None or len(line) > max_text_bytes(options) for line in lines):
        return None
    try:
        records = [orjson.loads(line) for line in lines if line is not None]
        texts = [record[options.text_field] for record in records]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    column = _text_column(texts, sentences)
    if column is None:
        return None
    ids = langs = metadata = pa.nulls(count, pa.string())
    if options.id_field is not None:
        values = [record.get(options.id_field) for record in records]
        if not set(map(type, values)) <= {str, int} or "" in values:
            return None
        ids = pa.array(list(map(str, values)), pa.string())
    if options.lang_field is not None:
        values = [record.get(options.lang_field) for record in records]
        if not set(map(type, values)) <= {str, type(None)}:
            return None
        langs = pa.array([value or None for value in values], pa.string())
    if options.metadata_fields:
        try:
            values = [metadata_json({name: record.get(name) for name in options.metadata_fields}) for record in records]
        except Fault:
            return None
        metadata = pa.array(values, pa.string())
    rows = pa.array(range(row, row + count), pa.int64())
    records.clear()
    schema = SCHEMA.set(1, pa.field("text", column.type))
    return pa.record_batch([ids, column, langs, rows, metadata], schema=schema)


def _text_column(texts: list[Any], sentences: bool) -> pa.Array | None:
    """Strings, or lists of them where that is allowed; None when a text is neither. The list may be emptied."""
    kinds = set(map(type, texts))
    if kinds == {str}:
        return as_strings(texts)
    if not sentences or not kinds <= {str, list}:
        return None
    try:
        column = pa.array([text if type(text) is list else [text] for text in texts], SENTENCES)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None
    return None if column.flatten().null_count else column


def as_strings(texts: list[str]) -> pa.Array:
    """The texts, of which a single long one is not held longer than it takes: as a Python string it has four forms."""
    if len(texts) == 1 and len(texts[0]) > LARGE:
        encoded = [texts.pop().encode()]
        return pa.array(encoded, pa.binary()).cast(pa.string())
    return pa.array(texts, pa.string())


def _read_line(line: bytes | None, row: int, builder: BatchBuilder) -> None:
    options = builder.options
    try:
        if line is None or len(line) > max_line_bytes(options):
            raise too_large(options)
        line = line.removeprefix(BYTE_ORDER_MARK)
        if not line.strip(b" \t\r"):
            return
        record, replaced = parse_object(line, options.on_error)
    except Fault as fault:
        builder.refuse(row, fault)
        return
    builder.add(row, record, replaced)


def parse_object(line: bytes, on_error: OnError) -> tuple[dict[str, object], int]:
    """The object in a line, and the number of characters replaced (always 0 unless `on_error` is `replace`).

    Raises Fault when the line is no JSON object.
    """
    replaced = 0
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        text, undecodable = decode_utf8(line, on_error)
        line, surrogates = replace_lone_surrogates(text.encode())
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise Fault("invalid JSON", f"{error.msg}, column {error.colno}") from None
        if surrogates and on_error != "replace":
            raise Fault("lone surrogate in a JSON escape", remedy="mend it, or set on_error: replace or skip") from None
        replaced = undecodable + surrogates
    if not isinstance(record, dict):
        raise Fault("not a JSON object", remedy=AS_LINES)
    return record, replaced


def replace_lone_surrogates(line: bytes) -> tuple[bytes, int]:
    r"""The line with \ufffd in the place of every escaped surrogate that is not half of a pair, and their number."""
    lone = 0

    def mend(escape: re.Match[bytes]) -> bytes:
        nonlocal lone
        if escape[1] is None:
            return escape[0]
        lone += 1
        return rb"\ufffd"

    return ESCAPE.sub(mend, line), lone
