"""The kernel that reads JSON lines gives what the line-by-line path gives, or leaves the lines alone."""

import json
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.config import ReadConfig
from tokpack_core.corpus import jsonl
from tokpack_core.corpus.batch import BatchBuilder
from tokpack_core.corpus.json_lines import batch_of_lines
from tokpack_core.corpus.jsonl import read_jsonl
from tokpack_core.corpus.lines import split_lines
from tokpack_core.corpus.problems import Problems

OPTIONS = ReadConfig(id_field="id", lang_field="lang", on_error="skip")
PLAIN = '{"id": 1, "text": "a"}'

strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(-(10**17), 10**17) | st.sampled_from([0.5, -1e22, 3e-7, 1.25])
values = st.recursive(
    st.none() | st.booleans() | numbers | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
    max_leaves=6,
)
records = st.fixed_dictionaries(
    {"text": strings, "id": strings.filter(bool) | st.integers(0, 10**17)},
    optional={"lang": st.none() | strings, "meta": values, "texts": values, "": values},
).flatmap(lambda record: st.permutations(list(record.items())).map(dict))


def line_by_line(run: bytes, options: ReadConfig) -> tuple[pa.RecordBatch | None, Problems]:
    problems = Problems()
    lines = split_lines(run)
    builder = BatchBuilder("file", "line", options, problems)
    for row, line in enumerate(lines, 7):
        jsonl._read_line(line, row, builder)
    batches = builder.take()
    return (batches[0] if batches else None), problems


@settings(max_examples=150, deadline=None)
@given(st.lists(records, min_size=1, max_size=5), st.booleans(), st.sampled_from(["", " ", "\t\r "]))
def test_every_plain_line_is_read(documents: list[dict[str, Any]], ascii_only: bool, space: str) -> None:
    separators = (f"{space},{space}", f"{space}:{space}")
    lines = [json.dumps(record, ensure_ascii=ascii_only, separators=separators) for record in documents]
    run = "".join(f"{space}{line}{space}\n" for line in lines).encode()
    batch = batch_of_lines(run, 7, OPTIONS)
    assert batch is not None
    assert batch["text"].to_pylist() == [record["text"] for record in documents]
    assert batch["id"].to_pylist() == [str(record["id"]) for record in documents]
    assert batch["lang"].to_pylist() == [record.get("lang") or None for record in documents]
    assert batch["row"].to_pylist() == list(range(7, 7 + len(documents)))
    assert batch.equals(line_by_line(run, OPTIONS)[0])


@settings(max_examples=300, deadline=None)
@given(records, st.booleans(), st.data())
def test_a_line_that_was_damaged_is_read_alike_or_not_at_all(
    document: dict[str, Any], ascii_only: bool, data: st.DataObject
) -> None:
    line = json.dumps(document, ensure_ascii=ascii_only).encode()
    place = data.draw(st.integers(0, len(line)))
    removed = data.draw(st.integers(0, 2))
    put_in = data.draw(
        st.sampled_from(
            [
                b'"',
                b"\\",
                b"\\u",
                b"d800",
                b"{",
                b"}",
                b"]",
                b",",
                b"0",
                b"-",
                b"e9",
                b"\xed\xa0\x80",
                b"\t",
                b"\0",
                b" ",
            ]
        )
        | st.binary(max_size=2)
    )
    damaged = line[:place] + put_in.replace(b"\n", b"") + line[place + removed :]
    for run in (damaged + b"\n", b"%s\n%s\n%s\n" % (line, damaged, line)):
        batch = batch_of_lines(run, 7, OPTIONS)
        expected, problems = line_by_line(run, OPTIONS)
        assert batch is None or (batch.equals(expected) and not problems.skipped)


@pytest.mark.parametrize(
    "line",
    [
        '{"id": 1, "text": "a",}',
        '{"id": 1 "text": "a"}',
        '{"id": 1, "text": "a"} {}',
        '{"id": 1, "text": "a"',
        '{"id": 1, "text": "a',
        '{"id": 1, "text": "a\\"}',
        '{"id": 1, "text": "\t"}',
        '{"id": 1, "text": "\\x41"}',
        '{"id": 1, "text": "\\u12g4"}',
        '{"id": 1, "text": "\\ud800"}',
        '{"id": 1, "text": "\\ud800\\u0041"}',
        '{"id": 1, "text": "\\udc00\\ud800"}',
        '{"id": 1, "text": null}',
        '{"id": 1, "text": ["a"]}',
        '{"id": 1}',
        '{"text": "a"}',
        '{"id": "", "text": "a"}',
        '{"id": null, "text": "a"}',
        '{"id": 1.0, "text": "a"}',
        '{"id": -0, "text": "a"}',
        '{"id": 01, "text": "a"}',
        '{"id": true, "text": "a"}',
        '{"id": 1, "text": "a", "lang": 1}',
        '{"id": 1, "text": "a", "x": 01}',
        '{"id": 1, "text": "a", "x": 1.}',
        '{"id": 1, "text": "a", "x": .5}',
        '{"id": 1, "text": "a", "x": +1}',
        '{"id": 1, "text": "a", "x": 1e}',
        '{"id": 1, "text": "a", "x": 1e999}',
        '{"id": 1, "text": "a", "x": NaN}',
        '{"id": 1, "text": "a", "x": nul}',
        '{"id": 1, "text": "a", "x": [1,]}',
        '{"id": 1, "text": "a", "x": [,1]}',
        '{"id": 1, "text": "a", "x": [1}}',
        '{"id": 1, "text": "a", "x": {"y": 1,}}',
        '{"id": 1, "text": "a", "x": {"y"}}',
        '{"id": 1, "text": "a", "x": {1: 2}}',
        '{"id": 1, "text": "a", "x": {"y": 1]}',
        '{"id": 1, "text": "a", "x": ' + "[" * 65 + "]" * 65 + "}",
        '["id", 1, "text", "a"]',
        '"text"',
        "",
        " ",
        "\ufeff" + PLAIN,
    ],
)
def test_what_needs_a_closer_look(line: str) -> None:
    assert batch_of_lines(f"{PLAIN}\n{line}\n{PLAIN}\n".encode(), 1, OPTIONS) is None


def test_the_last_of_duplicate_keys_counts() -> None:
    batch = batch_of_lines(
        b'{"text": "long text", "id": 1, "text": "b", "id": "x", "lang": "en", "lang": null}\n', 1, OPTIONS
    )
    assert batch is not None
    assert batch.to_pylist() == [{"id": "x", "text": "b", "lang": None, "row": 1, "metadata": None}]


def test_a_line_that_is_too_long() -> None:
    options = ReadConfig(max_document_bytes=30)
    run = b'{"text": "%s"}\n'
    assert batch_of_lines(run % (b"a" * 18), 1, options) is not None
    assert batch_of_lines(run % (b"a" * 19), 1, options) is None


@pytest.mark.parametrize("options", [ReadConfig(), ReadConfig(id_field="id"), OPTIONS])
def test_large_files_are_read_by_the_kernel_and_weigh_the_same(options: ReadConfig, monkeypatch: Any) -> None:
    """Row groups are cut by the weight of batches, so it must not depend on how they were read."""
    documents = [{"id": n, "text": "word 中文\n" * (n % 50), "lang": ["en", "zh"][n % 2]} for n in range(3000)]
    blocks = [b"".join(orjson.dumps(document) + b"\n" for document in documents)[:-1]]
    found = []
    for worth in (1, 2**40):
        monkeypatch.setattr(jsonl, "WORTH_LOADING", worth)
        batches = list(read_jsonl(iter(blocks), "file", options, Problems()))
        found.append([(batch.to_pylist(), batch.nbytes, batch.get_total_buffer_size()) for batch in batches])
    assert found[0] == found[1]
