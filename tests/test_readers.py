"""Readers give back what was written, in every format and block size; what is cut is an error."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile_texts import FAMILIES
from tokpack_core.config import ReadConfig
from tokpack_core.corpus import compression, lines
from tokpack_core.corpus.batch import SCHEMA, spans_by_bytes
from tokpack_core.corpus.documents import read_documents
from tokpack_core.corpus.jsonl import read_jsonl
from tokpack_core.corpus.problems import Problems
from tokpack_core.errors import InputError

TEXTS = [text for family in FAMILIES.values() for text in family.values()]
WITH_IDS = {"id_field": "id"}


def read(path: Path, **options: object) -> pa.Table:
    batches = list(read_documents(path, path.name, ReadConfig.model_validate(options), Problems()))
    return pa.Table.from_batches(batches, SCHEMA)


@contextmanager
def blocks_of(block_bytes: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(compression, "BLOCK_BYTES", block_bytes)
        monkeypatch.setattr(lines, "BLOCK_BYTES", block_bytes)
        yield


def table(texts: Sequence[str]) -> pa.Table:
    return pa.table({"id": pa.array(map(str, range(len(texts))), pa.string()), "text": pa.array(texts, pa.string())})


def as_jsonl(texts: Sequence[str]) -> bytes:
    return "".join(
        json.dumps({"id": i, "text": t}, ensure_ascii=i % 2 == 0) + "\n" for i, t in enumerate(texts)
    ).encode()


def as_csv(texts: Sequence[str]) -> bytes:
    sink = io.StringIO(newline="")
    writer = csv.writer(sink)
    writer.writerow(["id", "text"])
    writer.writerows(enumerate(texts))
    return sink.getvalue().encode()


def as_tsv(texts: Sequence[str]) -> bytes:
    return "".join(["text\tid\n", *(f"{text}\t{number}\n" for number, text in enumerate(texts))]).encode()


def as_parquet(texts: Sequence[str]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table(texts), sink, row_group_size=3)
    return sink.getvalue()


def as_arrow(texts: Sequence[str], new: Callable[..., pa.RecordBatchWriter] = pa.ipc.new_file) -> bytes:
    sink = io.BytesIO()
    with new(sink, table([]).schema) as writer:
        writer.write_table(table(texts), max_chunksize=2)
    return sink.getvalue()


def as_stream(texts: Sequence[str]) -> bytes:
    return as_arrow(texts, pa.ipc.new_stream)


WRITERS: dict[str, Callable[[Sequence[str]], bytes]] = {
    ".jsonl": as_jsonl,
    ".jsonl.gz": lambda texts: gzip.compress(as_jsonl(texts)),
    ".ndjson.zst": lambda texts: zstandard.compress(as_jsonl(texts)),
    ".csv": as_csv,
    ".csv.gz": lambda texts: gzip.compress(as_csv(texts)),
    ".tsv": as_tsv,
    ".parquet": as_parquet,
    ".arrow": as_arrow,
    ".ipc": as_stream,
}
NOT_IN_TSV = str.maketrans("\t\n", "  ")


@pytest.mark.parametrize("extension", WRITERS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text() | st.sampled_from(TEXTS), max_size=8), block_bytes=st.sampled_from([1, 5, 100, 2**20]))
def test_reads_back_what_was_written(tmp_path: Path, extension: str, texts: list[str], block_bytes: int) -> None:
    if extension == ".tsv":
        texts = [text.translate(NOT_IN_TSV) for text in texts]
    texts = [text[:300] for text in texts]
    path = tmp_path / f"documents{extension}"
    path.write_bytes(WRITERS[extension](texts))
    with blocks_of(block_bytes):
        found = read(path, **WITH_IDS)
    assert found["text"].to_pylist() == texts
    assert found["id"].to_pylist() == [str(number) for number in range(len(texts))]
    if extension not in (".csv", ".csv.gz"):
        first = 2 if extension == ".tsv" else 1
        assert found["row"].to_pylist() == list(range(first, len(texts) + first))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))), data=st.data())
def test_txt_reads_back(tmp_path: Path, texts: list[str], data: st.DataObject) -> None:
    path = tmp_path / "lines.txt"
    texts = [text.rstrip("\r").lstrip("\ufeff") for text in texts]
    path.write_bytes("".join(text + data.draw(st.sampled_from(["\n", "\r\n"])) for text in texts).encode())
    with blocks_of(5):
        assert read(path, txt_document="line")["text"].to_pylist() == texts
        whole = path.read_bytes().decode()
        assert read(path)["text"].to_pylist() == ([whole] if whole else [])


ODD_LINES = [
    b'{"text":"ok","id":7}',
    b'{"text":"\\ud83d","id":"x"}',
    b"",
    b"{",
    b'{"text":"b\xff"}',
    b'{"text":3}',
    b"[]",
]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(ODD_LINES)), st.sampled_from(["skip", "replace"]), st.integers(1, 60))
def test_jsonl_verdicts_do_not_depend_on_neighbours(odd: list[bytes], on_error: str, cut: int) -> None:
    """A line has the same result alone as among others, whatever block it falls in."""

    def result(found: Sequence[bytes], block_bytes: int) -> tuple[list[object], Problems]:
        data = b"".join(line + b"\n" for line in found)
        blocks = [data[start : start + block_bytes] for start in range(0, len(data), block_bytes)]
        problems = Problems()
        batches = read_jsonl(iter(blocks), "f", ReadConfig(on_error=on_error), problems)  # type: ignore[arg-type]
        try:
            return [text for batch in batches for text in batch.column("text").to_pylist()], problems
        except InputError as error:
            return [str(error).partition(":")[2]], problems

    odd = [b'{"text":"first"}', *odd]
    together, problems = result(odd, cut)
    alone = [result([b'{"text":"first"}', line], 2**20) for line in odd[1:]]
    texts = [text for found, _ in alone for text in found[1:] or found if text != "first"]
    first_error = next((position for position, (found, _) in enumerate(alone) if found[0] != "first"), None)
    if first_error is None:
        assert together == ["first", *texts]
        assert sum(problems.skipped.values()) == sum(sum(p.skipped.values()) for _, p in alone)
        assert problems.replaced_characters == sum(p.replaced_characters for _, p in alone)
    else:
        assert together == alone[first_error][0]


@pytest.mark.parametrize("extension", [".jsonl.gz", ".jsonl.zst", ".parquet", ".arrow", ".ipc"])
def test_cut_file_is_an_error_at_every_length(tmp_path: Path, extension: str) -> None:
    write = {**WRITERS, ".jsonl.zst": WRITERS[".ndjson.zst"]}[extension]
    whole = write(["one", "two", "three", "four", "five"])
    path = tmp_path / f"cut{extension}"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"cut\."):
            read(path, on_error="skip")


def test_columns_of_a_batch(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '\n{"text":"x","id":7,"lang":"de","b":{"z":1,"a":[2.5,null]},"a":"é"}\n{"text":"","id":"i","lang":""}\n'
    )
    found = read(path, id_field="id", lang_field="lang", metadata_fields=["b", "a"])
    assert found.schema == SCHEMA
    assert found.to_pylist() == [
        {"id": "7", "text": "x", "lang": "de", "row": 2, "metadata": '{"a":"é","b":{"a":[2.5,null],"z":1}}'},
        {"id": "i", "text": "", "lang": None, "row": 3, "metadata": '{"a":null,"b":null}'},
    ]


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        (pa.string(), pa.int8()),
        (pa.large_string(), pa.uint64()),
        (pa.string_view(), pa.string()),
        (pa.binary(), pa.binary()),
        (pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.large_string())),
    ],
    ids=str,
)
def test_column_types(tmp_path: Path, text: pa.DataType, id_: pa.DataType) -> None:
    columns = {
        "id": pa.array(["1", "2"]).cast(pa.int64() if pa.types.is_integer(id_) else id_).cast(id_),
        "text": pa.array(["ä", ""]).cast(text),
        "n": [1, None],
        "t": pa.array([0, 1], pa.timestamp("s")),
    }
    with pa.ipc.new_file(tmp_path / "a.arrow", pa.table(columns).schema) as writer:
        writer.write_table(pa.table(columns))
    found = read(tmp_path / "a.arrow", id_field="id", lang_field="lang", metadata_fields=["t", "n"])
    assert found.select(["id", "text", "lang", "row"]).to_pylist() == [
        {"id": "1", "text": "ä", "lang": None, "row": 1},
        {"id": "2", "text": "", "lang": None, "row": 2},
    ]
    assert found["metadata"].to_pylist() == [
        '{"n":1,"t":"1970-01-01 00:00:00"}',
        '{"n":null,"t":"1970-01-01 00:00:01"}',
    ]


def test_invalid_strings_in_parquet_are_faults(tmp_path: Path) -> None:
    lying = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"a\xff"]).buffers())
    pq.write_table(pa.table({"text": lying}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet, row 2: invalid UTF-8 \(byte offset 1\)"):
        read(tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", on_error="skip")["text"].to_pylist() == ["ok"]
    assert read(tmp_path / "a.parquet", on_error="replace")["text"].to_pylist() == ["ok", "a\ufffd"]


@given(st.lists(st.integers(0, 9) | st.none(), max_size=30), st.integers(1, 12))
def test_spans_cover_all_rows_within_the_limit(sizes: list[int | None], limit: int) -> None:
    spans = spans_by_bytes(pa.array(sizes, pa.int32()), limit)
    assert [row for start, length in spans for row in range(start, start + length)] == list(range(len(sizes)))
    for start, length in spans:
        assert length == 1 or sum(size or 0 for size in sizes[start : start + length]) <= limit


def test_problems_are_counted_merged_and_written(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text":""}\n{"text":null}\n{"text":"x"}\nnot json\n')
    (tmp_path / "b.jsonl").write_bytes(b'{"text":"\xff\xe2\x82"}\n')
    total = Problems()
    for name, on_error in (("a.jsonl", "skip"), ("b.jsonl", "replace")):
        problems = Problems()
        options = ReadConfig.model_validate({"on_error": on_error})
        assert list(read_documents(tmp_path / name, name, options, problems))
        total.merge(problems)
    assert json.loads(json.dumps(total.to_json())) == {
        "documents": 3,
        "empty_documents": 1,
        "replaced_documents": 1,
        "replaced_characters": 2,
        "skipped": {"invalid JSON": 1, "null text": 1},
        "examples": [
            {"file": "a.jsonl", "row": 2, "reason": "null text"},
            {"file": "a.jsonl", "row": 4, "reason": "invalid JSON"},
            {"file": "b.jsonl", "row": 1, "reason": "undecodable bytes replaced by U+FFFD"},
        ],
    }
