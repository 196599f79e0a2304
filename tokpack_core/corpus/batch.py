"""Documents out of records: the schema of a batch, and the careful path that judges one record at a time.

A record maps field names to what a file holds: JSON values, or the raw bytes of a table's cell. The rules are the same
for every format:

- text: a string, or bytes that are UTF-8; absent, null and every other type are faults. "" is an empty document, kept.
  For a reader of sentences, it may be a list of strings too.
- content (when `content_field` is set, in the place of the text): see `content`.
- id (when `id_field` is set): a non-empty string or an integer, kept as its decimal digits; all else is a fault.
- lang (when `lang_field` is set): a string; absent, null and "" are null.
- metadata: compact JSON of the `metadata_fields`, keys sorted at every depth, absent fields null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.config import OnError, ReadConfig
from tokpack_core.corpus.content import CONTENT, Block, has_content, read_content
from tokpack_core.corpus.problems import REPLACE, Fault, Problems
from tokpack_core.corpus.sentences import LARGE_SENTENCES, SENTENCES, has_sentences, text_sizes

BATCH_BYTES = 16 * 2**20
"""Most bytes of text in a batch, except that one document may be larger."""
MAX_STRING_BYTES = 2**31 - 1
"""Arrow's strings have 32-bit offsets."""
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("text", pa.string()),
        ("lang", pa.string()),
        ("row", pa.int64()),
        ("metadata", pa.string()),
    ]
)
CONTENT_SCHEMA = SCHEMA.append(pa.field("content", CONTENT))
"""Of batches whose documents hold images."""
JSON_TYPES = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "an array",
    dict: "an object",
    str: "a string",
}


@dataclass
class Document:
    id: str | None
    text: str | list[str]
    """A list: its sentences."""
    lang: str | None
    metadata: str | None
    replaced: int
    """Characters that stand in the place of undecodable bytes."""
    content: list[Block] | None = None


def decode_utf8(data: bytes, on_error: OnError) -> tuple[str, int]:
    """The text and the number of U+FFFD put in, one for each maximal subpart of an ill-formed sequence.

    Raises Fault unless `on_error` is `replace`.
    """
    try:
        return data.decode(), 0
    except UnicodeDecodeError as error:
        if on_error != "replace":
            raise Fault("invalid UTF-8", f"byte offset {error.start}", REPLACE) from None
    text = data.decode(errors="replace")
    return text, text.count("\ufffd") - data.count(b"\xef\xbf\xbd")


def max_text_bytes(options: ReadConfig) -> int:
    return min(options.max_document_bytes, MAX_STRING_BYTES)


def too_large(options: ReadConfig) -> Fault:
    return Fault("document larger than max_document_bytes", f"{max_text_bytes(options)}", "raise it, or split the text")


class RecordReader:
    """Judges records by the rules of the module docstring."""

    def __init__(self, options: ReadConfig, sentences: bool = False) -> None:
        self.options = options
        self.sentences = sentences
        self.replaced = 0

    def read(self, record: Mapping[str, object], replaced: int = 0) -> Document:
        """Raises Fault when the record is no document; `replaced` counts what was replaced before it was parsed."""
        self.replaced = replaced
        options = self.options
        text: str | list[str]
        text, content = self._content(record) if options.content_field else (self._text(record), None)
        doc_id = None if options.id_field is None else self._id(record.get(options.id_field))
        lang = None if options.lang_field is None else self._lang(record.get(options.lang_field))
        metadata = self._metadata(record) if options.metadata_fields else None
        return Document(doc_id, text, lang, metadata, self.replaced, content)

    def _decoded(self, value: object) -> object:
        if not isinstance(value, bytes):
            return value
        text, replaced = decode_utf8(value, self.options.on_error)
        self.replaced += replaced
        return text

    def _text(self, record: Mapping[str, object]) -> str | list[str]:
        name = self.options.text_field
        if name not in record:
            found = ", ".join(map(str, list(record)[:10])) or "none"
            raise Fault("no text field", f"{name!r} wanted, fields found: {found}")
        text = self._decoded(record[name])
        if text is None:
            raise Fault("null text")
        if self.sentences and isinstance(text, list):
            return self._sentences(text)
        if not isinstance(text, str):
            raise Fault("text is not a string", f"{name!r} is {JSON_TYPES.get(type(text), type(text).__name__)}")
        self._check_size(text)
        return text

    def _sentences(self, sentences: list[object]) -> list[str]:
        sentences = [self._decoded(sentence) for sentence in sentences]
        found = [sentence for sentence in sentences if isinstance(sentence, str)]
        if len(found) < len(sentences):
            place, other = next((i, one) for i, one in enumerate(sentences) if not isinstance(one, str))
            kind = JSON_TYPES.get(type(other), type(other).__name__)
            raise Fault("sentence is not a string", f"number {place + 1} of {self.options.text_field!r} is {kind}")
        self._check_size("".join(found))
        return found

    def _content(self, record: Mapping[str, object]) -> tuple[str, list[Block]]:
        name = self.options.content_field or ""
        text, blocks = read_content(record.get(name), name)
        self._check_size(text)
        return text, blocks

    def _check_size(self, text: str) -> None:
        if len(text) * 4 > max_text_bytes(self.options) and len(text.encode()) > max_text_bytes(self.options):
            raise too_large(self.options)

    def _id(self, value: object) -> str:
        value = self._decoded(value)
        if value is None or value == "":
            raise Fault("no id", f"{self.options.id_field!r} is absent, null or empty")
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise Fault("id is neither a string nor an integer", f"{JSON_TYPES.get(type(value), type(value).__name__)}")
        return str(value)

    def _lang(self, value: object) -> str | None:
        value = self._decoded(value)
        if value is not None and not isinstance(value, str):
            raise Fault("lang is not a string", f"{JSON_TYPES.get(type(value), type(value).__name__)}")
        return value or None

    def _metadata(self, record: Mapping[str, object]) -> str:
        return metadata_json({name: self._decoded(record.get(name)) for name in self.options.metadata_fields})


def metadata_json(values: Mapping[str, object]) -> str:
    """Compact JSON with sorted keys. Raises Fault when a value has no JSON form (bytes inside a struct)."""
    try:
        return orjson.dumps(values, option=orjson.OPT_SORT_KEYS, default=_as_json).decode()
    except orjson.JSONEncodeError as error:
        raise Fault("metadata cannot be written as JSON", str(error)) from None


def _as_json(value: object) -> str:
    if isinstance(value, bytes):
        raise TypeError("it holds raw bytes")
    return str(value)


@dataclass
class BatchBuilder:
    """Collects the documents of one file on the careful path, and reports every fault to `problems`."""

    file: str
    place: str
    """What a row number counts: `line` or `row`."""
    options: ReadConfig
    problems: Problems
    sentences: bool = False
    """Whether a text may be a list of strings."""
    documents: list[tuple[Document, int]] = field(default_factory=list)
    text_bytes: int = 0

    def __post_init__(self) -> None:
        self.reader = RecordReader(self.options, self.sentences)

    def add(self, row: int, record: Mapping[str, object], replaced: int = 0) -> None:
        """Append the document that `record` holds, or report why it holds none."""
        try:
            document = self.reader.read(record, replaced)
        except Fault as fault:
            self.refuse(row, fault)
            return
        if document.replaced:
            self.problems.replaced(self.file, row, document.replaced)
        self.documents.append((document, row))
        self.text_bytes += len(document.text)

    def refuse(self, row: int, fault: Fault) -> None:
        self.problems.refuse(fault, self.file, self.place, row, self.options.on_error)

    def take(self) -> list[pa.RecordBatch]:
        """The documents collected since the last call, in batches of at most BATCH_BYTES or one document."""
        documents, self.documents, self.text_bytes = self.documents, [], 0
        if not documents:
            return []
        texts = large_texts([document.text for document, _ in documents])
        rows = pa.array([row for _, row in documents], pa.int64())
        ids = pa.array([document.id for document, _ in documents], pa.string())
        langs = pa.array([document.lang for document, _ in documents], pa.string())
        metadata = pa.array([document.metadata for document, _ in documents], pa.string())
        columns = [ids, texts, langs, rows, metadata]
        schema = SCHEMA
        if self.options.content_field:
            columns.append(pa.array([document.content for document, _ in documents], CONTENT))
            schema = CONTENT_SCHEMA
        batches = []
        kind = SENTENCES if has_sentences(texts) else pa.string()
        schema = schema.set(1, pa.field("text", kind))
        for start, length in spans_by_bytes(text_sizes(texts)):
            part = [column.slice(start, length) for column in columns]
            part[1] = part[1].cast(kind)
            batches.append(counted(pa.record_batch(part, schema=schema), self.problems))
        return batches


def large_texts(texts: Sequence[str | list[str]]) -> pa.Array:
    """Strings or, where one is a list, lists of them, with 64-bit offsets."""
    if not any(isinstance(text, list) for text in texts):
        return pa.array(texts, pa.large_string())
    return pa.array([text if isinstance(text, list) else [text] for text in texts], LARGE_SENTENCES)


def counted(batch: pa.RecordBatch, problems: Problems) -> pa.RecordBatch:
    """The batch, after its documents have been counted."""
    problems.documents += batch.num_rows
    problems.empty_documents += pc.sum(pc.invert(filled(batch))).as_py() or 0
    return batch


def filled(batch: pa.RecordBatch) -> pa.Array:
    """Whether a document has text or an image, boolean [documents]."""
    if has_content(batch):
        return pc.greater(pc.list_value_length(batch["content"]), 0)
    return pc.greater(text_sizes(batch["text"]), 0)


def spans_by_bytes(lengths: pa.Array, limit: int | None = None) -> Sequence[tuple[int, int]]:
    """Cut rows into runs (start, number of rows) whose lengths sum to at most `limit` bytes, or that are one row."""
    limit = BATCH_BYTES if limit is None else limit
    sizes = pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False).astype("int64")
    ends = sizes.cumsum()
    spans, start, before = [], 0, 0
    while start < len(sizes):
        stop = max(int(ends.searchsorted(before + limit, side="right")), start + 1)
        spans.append((start, stop - start))
        start, before = stop, int(ends[stop - 1])
    return spans
