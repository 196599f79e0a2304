"""Hostile compressed streams, Parquet and Arrow files, and inputs that are large against the limit."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from tests.hostile_entry import HostileInput, accepted, broken, documents, faulty, undecodable
from tests.hostile_texts import CHINESE, ENGLISH

FIFTY = tuple(f"{number} {ENGLISH}{CHINESE}" for number in range(50))


def gzip_streams() -> Iterator[HostileInput]:
    data = documents(*FIFTY).encode()
    whole = gzip.compress(data, mtime=0)
    members = gzip.compress(data[:999], mtime=0) + gzip.compress(data[999:], mtime=0)
    yield accepted("gz/good.jsonl.gz", "sound", whole, FIFTY)
    yield accepted("gz/multi_member.jsonl.gz", "two members, cut inside a line", members, FIFTY)
    yield broken("gz/truncated.jsonl.gz", "cut", whole[: len(whole) * 2 // 3], "gzip stream is cut short")
    yield broken("gz/corrupt_crc.jsonl.gz", "CRC", whole[:-8] + b"\0\0\0\0" + whole[-4:], "not a sound gzip stream")
    yield broken("gz/trailing_garbage.jsonl.gz", "garbage after it", whole + b"garbage", "not a sound gzip stream")
    yield broken("gz/not_gz.jsonl.gz", "text named .gz", data, "not a sound gzip stream")
    yield broken(
        "gz/gz_named_plain.jsonl", "gzip named .jsonl", whole, "not text but a gzip stream; give it one more .gz"
    )
    yield broken("gz/double.jsonl.gz", "gzip in gzip", gzip.compress(whole, mtime=0), "not text but a gzip stream")


def zstd_streams() -> Iterator[HostileInput]:
    data = documents(*FIFTY).encode()
    compress = zstandard.ZstdCompressor(level=3, write_checksum=True).compress
    whole = compress(data)
    piped = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    damaged = bytearray(whole)
    damaged[40] ^= 0x20
    yield accepted("zst/good.jsonl.zst", "sound", whole, FIFTY)
    yield accepted("zst/two_frames.jsonl.zst", "two frames", compress(data[:999]) + compress(data[999:]), FIFTY)
    yield accepted("zst/no_content_size.jsonl.zst", "from a pipe", piped.compress(data) + piped.flush(), FIFTY)
    yield broken("zst/truncated.jsonl.zst", "cut", whole[: len(whole) * 2 // 3], "zstd stream is cut short")
    yield broken("zst/corrupt_checksum.jsonl.zst", "a flipped bit", bytes(damaged), "not a sound zstd stream")
    yield broken("zst/not_zst.jsonl.zst", "text named .zst", data, "not a sound zstd stream")
    raw = b'{"text":"Abc"}\n'  # a frame of one raw block, where a flipped bit made A of a
    frame = b"\x28\xb5\x2f\xfd\x20" + bytes([len(raw)]) + (1 | len(raw) << 3).to_bytes(3, "little") + raw
    yield accepted("zst/corrupt_silent.jsonl.zst", "no checksum: only the source's digest can tell", frame, ["Abc"])


def parquet(columns: Mapping[str, object], **settings: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **settings)
    return sink.getvalue()


def columns_of_tables() -> Iterator[HostileInput]:
    x, texts = "parquet/", pa.array(["ok", None, ""], pa.string())
    null_text = parquet({"text": texts})
    yield faulty(x + "null_text.parquet", "null, empty", null_text, "row 2: null text", ["ok", ""])
    yield faulty(x + "all_null.parquet", "null column", parquet({"text": pa.nulls(1)}), "row 1: null text", [])
    yield broken(
        x + "no_text.parquet",
        "no text",
        parquet({"id": ["a"], "content": ["x"]}),
        "no column 'text', only 'id', 'content'",
    )
    yield broken(x + "int_text.parquet", "int text", parquet({"text": [1]}), "column 'text' is int64, not string")
    yield broken(x + "list_text.parquet", "list text", parquet({"text": [["x", "y"]]}), "column 'text' is list<")
    yield broken(x + "nested.parquet", "struct", parquet({"doc": [{"text": "nested"}]}), "no column 'text', only 'doc'")
    binary = parquet({"text": pa.array([b"ok", b"\xff\xfe"], pa.binary())})
    yield undecodable(
        x + "binary_text.parquet", "binary", binary, "row 2: invalid UTF-8", ["ok"], ["ok", "\ufffd\ufffd"]
    )
    dictionary = pa.array(["x", "x"], pa.large_string()).dictionary_encode()
    yield accepted(x + "dictionary.parquet", "dictionary of large_string", parquet({"text": dictionary}), ["x", "x"])
    yield accepted(x + "empty.parquet", "no rows", parquet({"text": pa.array([], pa.string())}), [])
    many = ["t" * number for number in range(30)]
    yield accepted(x + "many_row_groups.parquet", "groups of 3", parquet({"text": many}, row_group_size=3), many)
    yield broken(x + "truncated.parquet", "cut", null_text[:-20], "is damaged or of another format")
    yield broken(x + "not_parquet.parquet", "fake", b"PAR1 not really", "is damaged or of another format")
    no_id = parquet({"id": pa.array(["a", None]), "text": ["x", "y"]})
    yield faulty(x + "null_id.parquet", "null id", no_id, "row 2: no id", ["x"], id_field="id")
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, pa.schema([("text", pa.string())])) as writer:
        writer.write_batch(pa.record_batch({"text": ["ok"]}))
    stream = sink.getvalue()
    yield accepted("arrow/stream.arrow", "a stream", stream, ["ok"])
    yield broken("arrow/cut_between_messages.arrow", "no end of stream", stream[:-8], "nor a stream with its end")
    yield broken("arrow/not_arrow.feather", "fake", b"FEA1 not really", "is not an Arrow file")


def sizes() -> Iterator[HostileInput]:
    """Small stand-ins for inputs of many megabytes; the limit is set far below them."""
    million = "the 训练 слово كلمة " * 50_000
    limit = {"max_document_bytes": 10_000}
    large = "document larger than max_document_bytes"
    yield accepted("big/oneline.txt", "one line of 1.5 MB", million, [million])
    yield accepted("big/oneline_lines.txt", "one line of 1.5 MB", million, [million], txt_document="line")
    yield accepted("big/onedoc.jsonl", "one large document", documents("a", million, "z"), ["a", million, "z"])
    yield accepted("big/manydocs.jsonl", "50,000 documents", documents(*["x"] * 50_000), ["x"] * 50_000)
    bomb = gzip.compress(documents("a", "0" * 20_000_000, "z").encode(), mtime=0)
    yield faulty("big/bomb.jsonl.gz", "20 MB in 20 kB", bomb, f"line 2: {large}", ["a", "z"], **limit)
    spaces = zstandard.ZstdCompressor().compress(b" " * 20_000_000)
    yield faulty("big/bomb.txt.zst", "20 MB in 2 kB", spaces, f"line 1: {large}", [], **limit)
    quoted = b'text\na\n"' + b"0\n" * 1_000_000
    yield broken(
        "big/quote.csv", "a record of 2 MB", quoted, "line 3: a record is larger than max_document_bytes", **limit
    )
    cells = b"text\na\n" + b"0" * 2_000_000 + b"\nz\n"
    yield faulty("big/cell.tsv", "a cell of 2 MB", cells, f"line 3: {large}", ["a", "z"], **limit)
    table = parquet({"text": ["a", "0" * 20_000, "z"]})
    yield faulty("big/cell.parquet", "a cell of 20 kB", table, f"row 2: {large}", ["a", "z"], **limit)
