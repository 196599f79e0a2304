"""Parquet and Arrow IPC: a document a row.

Only the configured columns are read. A text, id or lang column may be string or binary, of any width, view or
dictionary-encoded; an id also an integer of any width. Strings in files are not to be trusted: both kinds are checked
as UTF-8. A missing text or id column, another type, and a damaged file are errors whatever `on_error` says; a null
text is a fault of its row. Rows are 1-based over the whole file. Where sentences are asked for (see `sentences`), a
text column may be a list of such strings, also a large one or one of fixed size.

Memory: Parquet's pages are streamed within a column chunk (the reader must be given a buffer size and told not to
pre-buffer, or it holds whole chunks: 126 against 346 MB for a row group of 450 MB), Arrow files are mapped. Rows are
then cut into batches by the bytes of their texts. Parquet page checksums are verified where the file has them. An
Arrow stream must end in its end-of-stream mark: one cut between two messages reads like a shorter one.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tokpack_core.config import ReadConfig
from tokpack_core.corpus.batch import SCHEMA, BatchBuilder, counted, max_text_bytes, metadata_json, spans_by_bytes
from tokpack_core.corpus.compression import BLOCK_BYTES, check_regular
from tokpack_core.corpus.problems import Fault, Problems
from tokpack_core.corpus.ranges import RowRange
from tokpack_core.corpus.sentences import SENTENCES, has_sentences, text_sizes
from tokpack_core.errors import InputError

MAX_BATCH_ROWS = 2**14
STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"
LISTS_OF_BYTES = pa.large_list(pa.large_binary())


def read_parquet(
    path: Path,
    name: str,
    options: ReadConfig,
    problems: Problems,
    sentences: bool = False,
    part: RowRange | None = None,
) -> Iterator[pa.RecordBatch]:
    """Batches of documents. Raises InputError for what is no Parquet, is cut or damaged, or has wrong columns."""
    check_regular(path, name)
    first_row = 1 if part is None else part.first_row
    with open(path, "rb") as file:
        batches = _parquet_batches(file, name, options, sentences, part)
        yield from _documents(batches, name, options, problems, sentences, first_row)


def read_arrow(
    path: Path, name: str, options: ReadConfig, problems: Problems, sentences: bool = False
) -> Iterator[pa.RecordBatch]:
    """Batches of documents out of an IPC file or stream, told apart by their first bytes. Raises like read_parquet."""
    check_regular(path, name)
    with open(path, "rb") as file:
        if not file.read(1):
            raise InputError(f"{name}: an empty file is not Arrow; write it again")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        yield from _documents(_arrow_batches(mapped, name, options, sentences), name, options, problems, sentences)


def _parquet_batches(
    file: object, name: str, options: ReadConfig, sentences: bool, part: RowRange | None
) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file, buffer_size=BLOCK_BYTES, pre_buffer=False, page_checksum_verification=True) as parquet:
        columns = _wanted_columns(parquet.schema_arrow, name, options, sentences)
        for group in range(parquet.num_row_groups) if part is None else range(part.start, part.stop):
            rows = _rows_a_batch(parquet.metadata.row_group(group))
            yield from parquet.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False)


def _rows_a_batch(group: pq.RowGroupMetaData) -> int:
    """Rows that take about four blocks, by the mean of all columns: a damaged file's column metadata aborts Arrow."""
    return max(1, min(MAX_BATCH_ROWS, 4 * BLOCK_BYTES * group.num_rows // max(group.total_byte_size, 1)))


def _arrow_batches(mapped: mmap.mmap, name: str, options: ReadConfig, sentences: bool) -> Iterator[pa.RecordBatch]:
    source = pa.BufferReader(pa.py_buffer(mapped))
    if mapped[:6] == b"ARROW1":
        reader = pa.ipc.open_file(source)
        batches = (reader.get_batch(index) for index in range(reader.num_record_batches))
    else:
        if mapped[-len(STREAM_END) :] != STREAM_END:
            raise InputError(f"{name}: is not an Arrow file, nor a stream with its end; copy or write the file again")
        reader = pa.ipc.open_stream(source)
        batches = iter(reader)
    columns = _wanted_columns(reader.schema, name, options, sentences)
    for batch in batches:
        batch.validate(full=False)
        yield batch.select(columns)


def _wanted_columns(schema: pa.Schema, name: str, options: ReadConfig, sentences: bool) -> list[str]:
    """Names of the configured columns that there are. Raises InputError for missing or wrong ones."""
    needed = [options.text_field] + ([options.id_field] if options.id_field is not None else [])
    wanted = [*needed, *([options.lang_field] if options.lang_field is not None else []), *options.metadata_fields]
    for column in dict.fromkeys(wanted):
        count = schema.names.count(column)
        if count > 1:
            raise InputError(f"{name}: has column {column!r} twice; rename one")
        if not count and column in needed:
            found = ", ".join(map(repr, schema.names)) or "none"
            raise InputError(f"{name}: has no column {column!r}, only {found}; set text_field and id_field to match")
    for field in (options.text_field, options.id_field, options.lang_field):
        if field is None or field not in schema.names:
            continue
        kind = schema.field(field).type
        allowed = (
            _is_text(kind)
            or (field == options.id_field and pa.types.is_integer(kind))
            or (sentences and field == options.text_field and _is_list(kind) and _is_text(kind.value_type))
        )
        if not allowed:
            raise InputError(f"{name}: column {field!r} is {kind}, not string; write it as strings or name another")
    return [column for column in dict.fromkeys(wanted) if column in schema.names]


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    checks = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view", "fixed_size_binary")
    return any(getattr(pa.types, f"is_{check}")(kind) for check in (*checks, "null"))


def _is_list(kind: pa.DataType) -> bool:
    return any(getattr(pa.types, f"is_{check}")(kind) for check in ("list", "large_list", "fixed_size_list"))


def _documents(
    batches: Iterator[pa.RecordBatch],
    name: str,
    options: ReadConfig,
    problems: Problems,
    sentences: bool,
    row: int = 1,
) -> Iterator[pa.RecordBatch]:
    builder = BatchBuilder(name, "row", options, problems, sentences)
    for columns in _spans(batches, name, options):
        batch = _fast_batch(columns, row, options)
        if batch is not None:
            yield counted(batch, problems)
        else:
            rows = zip(*(column.to_pylist() for column in columns.values()), strict=True)
            for number, values in enumerate(rows, row):
                builder.add(number, dict(zip(columns, values, strict=True)))
            yield from builder.take()
        row += len(columns[options.text_field])


def _spans(batches: Iterator[pa.RecordBatch], name: str, options: ReadConfig) -> Iterator[dict[str, pa.Array]]:
    """Columns of runs of rows that make one batch each, with every string as large_binary, alone or in a large list."""
    try:
        for whole in batches:
            for first in range(0, whole.num_rows, MAX_BATCH_ROWS):
                batch = whole.slice(first, MAX_BATCH_ROWS)
                others = [column for column in batch.schema.names if column != options.text_field]
                for start, length in spans_by_bytes(_text_bytes(batch.column(options.text_field))):
                    part = batch.slice(start, length)
                    columns = {column: _as_bytes(part.column(column)) for column in others}
                    yield {options.text_field: _texts_as_bytes(part.column(options.text_field)), **columns}
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{name}: is damaged or of another format ({reason}); copy or write it again") from None


def _text_bytes(texts: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(texts.type):
        return pc.take(pc.binary_length(_as_bytes(texts.dictionary)), texts.indices)
    texts = _texts_as_bytes(texts)
    return text_sizes(texts.fill_null([]) if has_sentences(texts) else texts)


def _texts_as_bytes(texts: pa.Array) -> pa.Array:
    """Like `_as_bytes`; lists of strings as large lists of large_binary."""
    if not _is_list(texts.type):
        return _as_bytes(texts)
    texts = texts.cast(LISTS_OF_BYTES)
    texts.validate(full=True)
    return texts


def _as_bytes(column: pa.Array) -> pa.Array:
    """Strings, times and decimals as large_binary whose offsets have been checked; other columns as they are."""
    if pa.types.is_dictionary(column.type):
        column = pa.DictionaryArray.from_arrays(column.indices, _as_bytes(column.dictionary)).dictionary_decode()
    elif pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.large_string())
    if _is_text(column.type):
        column = column.cast(pa.large_binary())
    column.validate(full=True)
    return column


def _fast_batch(columns: dict[str, pa.Array], row: int, options: ReadConfig) -> pa.RecordBatch | None:
    """All rows as documents, or None when one of them is faulty."""
    texts = columns[options.text_field]
    length = len(texts)
    absent = pa.nulls(length, pa.string())
    lists = has_sentences(texts)
    if texts.null_count or (lists and texts.flatten().null_count):
        return None
    if pc.max(text_sizes(texts)).as_py() > max_text_bytes(options):
        return None
    try:
        strings = {
            name: column.cast(pa.string()) if _is_text(column.type) else column for name, column in columns.items()
        }
        if lists:
            strings[options.text_field] = texts.cast(SENTENCES)
        ids = absent if options.id_field is None else strings[options.id_field].cast(pa.string())
        langs = absent if options.lang_field is None else strings.get(options.lang_field, absent)
        metadata = _metadata(strings, length, options) if options.metadata_fields else absent
    except (pa.ArrowInvalid, Fault):
        return None
    if options.id_field is not None and (ids.null_count or pc.min(pc.binary_length(ids)).as_py() == 0):
        return None
    langs = pc.if_else(pc.equal(langs, ""), None, langs)
    rows = pa.array(range(row, row + length), pa.int64())
    texts = strings[options.text_field]
    schema = SCHEMA.set(1, pa.field("text", texts.type))
    return pa.record_batch([ids, texts, langs, rows, metadata], schema=schema)


def _metadata(strings: dict[str, pa.Array], length: int, options: ReadConfig) -> pa.Array:
    fields = options.metadata_fields
    values = [strings[name].to_pylist() if name in strings else [None] * length for name in fields]
    rows = (metadata_json(dict(zip(fields, row, strict=True))) for row in zip(*values, strict=True))
    return pa.array(list(rows), pa.string())
