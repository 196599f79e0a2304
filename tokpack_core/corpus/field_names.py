"""The names of the fields that a file has, for a sentence on one that no document has."""

from __future__ import annotations

import csv
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from tokpack_core.corpus.compression import Codec, read_blocks, text_blocks
from tokpack_core.corpus.files import SourceFile, file_type
from tokpack_core.errors import InputError

MOST_NAMED = 20


def no_language(lang_field: str, file: SourceFile) -> str:
    """That no document has a language in that field; `file` is the first one that was read."""
    return f"no document has a language in {lang_field!r}, which `lang_field` names{fields_of(file)}"


def no_metadata(names: list[str], file: SourceFile) -> str:
    """The same of fields of metadata."""
    absent = ", ".join(map(repr, names))
    return f"no document has a value in {absent}, which `metadata_fields` names{fields_of(file)}"


def fields_of(file: SourceFile) -> str:
    try:
        with file.opened() as path:
            names = field_names(path)
    except (InputError, OSError, ValueError, pa.ArrowException):
        names = []
    return f"; the fields of {file.shown} are {', '.join(map(repr, names[:MOST_NAMED]))}" if names else ""


def field_names(path: Path) -> list[str]:
    """Those of the first document, or of the columns; none of a `.txt`. Raises for what cannot be read."""
    kind, codec = file_type(path.name) or ("txt", None)
    if kind == "txt":
        return []
    if kind == "parquet":
        return list(pq.read_schema(path).names)
    if kind == "arrow":
        with pa.memory_map(str(path)) as source:
            is_file = source.read(6) == b"ARROW1"
            source.seek(0)
            return list((pa.ipc.open_file if is_file else pa.ipc.open_stream)(source).schema.names)
    line = first_line(path, codec)
    if kind in ("csv", "tsv"):
        return next(csv.reader([line.decode()], delimiter="," if kind == "csv" else "\t"), [])
    return list(orjson.loads(line))


def first_line(path: Path, codec: Codec | None) -> bytes:
    """The first that is not blank."""
    head = b""
    for block in text_blocks(read_blocks(path, path.name, codec), path.name):
        head = (head + block).lstrip()
        if b"\n" in head:
            break
    return head.split(b"\n", 1)[0].rstrip(b"\r")
