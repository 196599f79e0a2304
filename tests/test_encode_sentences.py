"""Documents that are lists of sentences become sequences as in Megatron's preprocess_data.

The peer is the loop of its `Encoder.encode` around megatron-core's IndexedDatasetBuilder: each sentence is encoded by
itself, those without ids are left out, and EOD is put to the last one of a document that has ids.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import chain, pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, processors

from tests.command_line import EOD, read_raw, refused, tokpack
from tests.small_project import write_small_project
from tests.test_encode_resume import killed
from tests.test_merge import same_bytes
from tokpack_core.commands.encode_run import gathered
from tokpack_core.config import ReadConfig
from tokpack_core.corpus.documents import read_documents
from tokpack_core.corpus.problems import Problems
from tokpack_core.corpus.sentences import as_sentences, sentences_of, text_sizes
from tokpack_core.errors import InputError

PEER = """
import json, sys
from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder
from transformers import PreTrainedTokenizerFast
for job in json.load(sys.stdin):
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=job["tokenizer"], eos_token=job["eod"])
    for key in job["keys"]:
        output = f"{job['output']}_{key}_document"
        builder = IndexedDatasetBuilder(f"{output}.bin", DType.optimal_dtype(len(tokenizer)))
        for path in job["files"]:
            for line in open(path, encoding="utf-8"):
                value = json.loads(line)[key]
                ids, lengths = [], []
                for sentence in value if isinstance(value, list) else [value]:
                    found = tokenizer(sentence, split_special_tokens=True, **job["options"]).input_ids
                    if found:
                        ids += found
                        lengths.append(len(found))
                if ids and job["append_eod"]:
                    ids.append(tokenizer.eos_token_id)
                    lengths[-1] += 1
                builder.add_document(ids, lengths)
        builder.finalize(f"{output}.idx")
"""
NAMES = ("a.jsonl", "b.jsonl")
KEYS = ("--json-keys", "text", "--json-keys", "title")
OPTIONS = {
    "plain": ("--tokenizer", "tok"),
    "eod": ("--tokenizer", "tok", "--append-eod"),
    "framed": ("--tokenizer", "framing", "--eod", EOD, "--append-eod", "--add-special-tokens"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files with documents of both kinds, two tokenizers, and the peer's output."""
    root = tmp_path_factory.mktemp("sentences")
    write_small_project(root)
    tokpack(root, "train", "--family", "byte_bpe", "--vocab-size", "500", "--special-token", f"eod={EOD}",
            "--special-token", "bos=<|bos|>", "--output", "tok", "data/docs")  # fmt: skip
    engine = Tokenizer.from_file(str(root / "tok" / "tokenizer.json"))
    ids = [(name, engine.token_to_id(name)) for name in ("<|bos|>", EOD)]
    engine.post_processor = processors.TemplateProcessing(single=f"<|bos|> $A {EOD}", special_tokens=ids)
    (root / "framing").mkdir()
    engine.save(str(root / "framing" / "tokenizer.json"))
    texts = [row["text"] for row in map(json.loads, (root / "data" / "docs" / "0.jsonl").open(encoding="utf-8"))]
    odd: list[str | list[str]] = [[], [""], ["", "a", ""], "", ["a b", "", "e\u0301 \u4e2d", EOD], ["\n"], "one"]
    values = [text.split(".") if number % 3 else text for number, text in enumerate(texts)] + odd
    rows = [{"title": value[:2], "text": value, "id": str(number)} for number, value in enumerate(values)]
    for name, part in zip(NAMES, (rows[:7], rows[7:]), strict=True):
        (root / name).write_text("".join(json.dumps(row) + "\n" for row in part), encoding="utf-8")
    jobs = [
        {
            "output": str(root / f"peer_{name}"),
            "tokenizer": str(root / options[1] / "tokenizer.json"),
            "files": [str(root / file) for file in NAMES],
            "keys": ["text", "title"],
            "eod": EOD,
            "append_eod": "--append-eod" in options,
            "options": {} if name == "framed" else {"add_special_tokens": False},
        }
        for name, options in OPTIONS.items()
    ]
    subprocess.run([sys.executable, "-c", PEER], input=json.dumps(jobs), text=True, check=True, capture_output=True)
    return root


@pytest.mark.parametrize(("name", "workers"), [("plain", "3"), ("eod", "1"), ("framed", "2")])
def test_the_bytes_are_the_peers(folder: Path, tmp_path: Path, name: str, workers: str) -> None:
    run = ("encode", *OPTIONS[name], *KEYS, "--workers", workers, "--json", "--output", tmp_path / "x", *NAMES)
    fields = tokpack(folder, *run).json["counts"]["fields"]
    for key in ("text", "title"):
        assert same_bytes(tmp_path / f"x_{key}_document", folder / f"peer_{name}_{key}_document")
        found = read_raw(tmp_path / f"x_{key}_document")
        assert len(found.sequences) > len(found.document_indices)
        assert fields[key]["sequences"] == len(found.sequences)
        assert fields[key]["documents"] == fields[key]["reading"]["documents"] == len(found.document_indices) - 1
        empty = sum(a == b for a, b in pairwise(found.document_indices))
        assert fields[key]["empty_documents"] == empty > 0
    assert tokpack(folder, "verify", tmp_path / "x_text_document").code == 0


def test_killed_and_resumed_the_bytes_are_the_same(folder: Path, tmp_path: Path) -> None:
    encoding = ("encode", *OPTIONS["eod"], *KEYS, "--workers", "2")
    arguments = (*encoding, "--resume", "--output", tmp_path / "x", *NAMES)
    for appends in (3, 20):
        killed(folder, appends, *arguments)
    done = tokpack(folder, *arguments, "--json").json
    tokpack(folder, *encoding, "--output", tmp_path / "y", *NAMES)
    for key in ("text", "title"):
        assert same_bytes(tmp_path / f"x_{key}_document", folder / f"peer_eod_{key}_document")
    assert done["counts"] == json.loads((tmp_path / "y.manifest.json").read_bytes())["counts"]


def test_merged_files_are_those_of_one_run(folder: Path, tmp_path: Path) -> None:
    for number, name in enumerate(NAMES, 1):
        tokpack(folder, "encode", *OPTIONS["eod"], "--output", tmp_path / f"s_{number}", name)
    tokpack(tmp_path, "merge", "ours", "s_1", "s_2")
    assert same_bytes(tmp_path / "ours", folder / "peer_eod_text_document")


def test_what_is_packed_are_documents(folder: Path, tmp_path: Path) -> None:
    tokpack(folder, "encode", *OPTIONS["eod"], "--output", tmp_path / "x", *NAMES)
    found = read_raw(tmp_path / "x")
    edges = found.document_indices
    documents = [list(chain(*found.sequences[a:b])) for a, b in pairwise(edges) if a < b]
    eod = documents[0][-1]
    length = str(max(map(len, documents)))
    tokpack(tmp_path, "pack", "--sequence-length", length, "--eod", str(eod), "--output", "packed", "x")
    packed = sorted(read_raw(tmp_path / "packed_docs").sequences)
    assert [one for one in packed if one in documents] == sorted(documents)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (["a", 7], "sentence is not a string (number 2 of 'text' is a number)"),
        ([None], "sentence is not a string (number 1 of 'text' is null)"),
        (["a", ["b"]], "sentence is not a string (number 2 of 'text' is an array)"),
        ({"a": ["b"]}, "text is not a string ('text' is an object)"),
        (["a" * 700, "b" * 700], "document larger than max_document_bytes (1000)"),
    ],
)
def test_what_is_no_sentence_is_named(folder: Path, tmp_path: Path, value: object, said: str) -> None:
    rows = [{"text": ["a", "b"]}, {"text": "c"}, {"text": value}, {"text": ["d", "e"]}]
    (tmp_path / "bad.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run = ("encode", *OPTIONS["eod"], "--max-document-bytes", "1KB", "--output", tmp_path / "x", tmp_path / "bad.jsonl")
    assert f"bad.jsonl, line 3: {said}; " in refused(folder, *run)
    tokpack(folder, *run, "--on-error", "skip")
    assert read_raw(tmp_path / "x").document_indices == [0, 2, 3, 5]


LISTS = [
    pa.list_(pa.string()),
    pa.large_list(pa.large_string()),
    pa.list_(pa.binary()),
    pa.list_(pa.dictionary(pa.int32(), pa.string())),
]


def write_table(path: Path, texts: pa.Array) -> None:
    table = pa.table({"number": pa.array(range(len(texts))), "text": texts})
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=5)
    else:
        feather.write_feather(table, path, chunksize=5)


@pytest.mark.parametrize("kind", LISTS, ids=str)
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_columns_of_lists_are_read_as_json_lines_are(
    folder: Path, tmp_path: Path, kind: pa.DataType, ending: str
) -> None:
    lines = [line for name in NAMES for line in (folder / name).open(encoding="utf-8")]
    values = [[text] if isinstance(text := json.loads(line)["text"], str) else text for line in lines]
    write_table(tmp_path / f"x.{ending}", pa.array([["cut off"], *values], pa.list_(pa.string())).cast(kind)[1:])
    batches = list(read_documents(tmp_path / f"x.{ending}", "x", ReadConfig(), problems := Problems(), sentences=True))
    assert [text for batch in batches for text in batch["text"].to_pylist()] == values
    assert [row for batch in batches for row in batch["row"].to_pylist()] == list(range(1, len(values) + 1))
    assert problems.empty_documents == sum(not any(one) for one in values)


def test_the_bytes_of_a_column_of_lists_are_the_peers(folder: Path, tmp_path: Path) -> None:
    """Strings, a null and a null sentence besides are left out as in JSON lines."""
    lines = [json.loads(line) for name in NAMES for line in (folder / name).open(encoding="utf-8")]
    rows: list[list[str | None] | None] = [
        [row["text"]] if isinstance(row["text"], str) else row["text"] for row in lines
    ]
    rows[3:3] = [None, ["a", None]]
    write_table(tmp_path / "x.parquet", pa.array(rows, pa.list_(pa.string())))
    (tmp_path / "x.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in rows), encoding="utf-8")
    for ending in ("parquet", "jsonl"):
        run = ("encode", *OPTIONS["eod"], "--output", tmp_path / ending, tmp_path / f"x.{ending}")
        assert ", 4: null text; " in refused(folder, *run).replace("row ", "").replace("line ", "")
        tokpack(folder, *run, "--on-error", "skip")
        assert same_bytes(tmp_path / ending, folder / "peer_eod_text_document")
    told = [json.loads((tmp_path / f"{ending}.manifest.json").read_bytes()) for ending in ("parquet", "jsonl")]
    assert told[0]["counts"]["reading"]["skipped"] == told[1]["counts"]["reading"]["skipped"]


PAIRS = pa.array([["a", "b"], None, ["c", None], ["d", "e"]], pa.list_(pa.string(), 2))


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (PAIRS[2:], "row 1: sentence is not a string (number 2 of 'text' is null)"),
        (PAIRS, "row 2: null text; "),
        (pa.array([["a"], ["b", b"\xff"]], pa.list_(pa.binary())), "row 2: invalid UTF-8 (byte offset 0)"),
        (pa.array([["a" * 700, "b" * 700]]), "row 1: document larger than max_document_bytes (1000)"),
        (pa.array([[["a"]]]), "column 'text' is list<"),
    ],
)
def test_what_is_no_sentence_of_a_column_is_named(tmp_path: Path, texts: pa.Array, said: str) -> None:
    for ending in ("parquet", "arrow"):
        path = tmp_path / f"x.{ending}"
        write_table(path, texts)
        options = ReadConfig(max_document_bytes=1000)
        with pytest.raises(InputError, match=re.escape(said)):
            list(read_documents(path, "x", options, Problems(), sentences=True))
        with pytest.raises(InputError, match=r"column 'text' is .*list.*, not string"):
            list(read_documents(path, "x", options, Problems()))


def test_pairs_and_undecodable_bytes_that_are_replaced(tmp_path: Path) -> None:
    write_table(tmp_path / "x.parquet", PAIRS)
    write_table(tmp_path / "y.parquet", pa.array([["a"], ["b", b"\xff"]], pa.list_(pa.binary())))
    found = []
    for name, on_error in (("x", "skip"), ("y", "replace")):
        options = ReadConfig.model_validate({"on_error": on_error})
        for batch in read_documents(tmp_path / f"{name}.parquet", name, options, Problems(), sentences=True):
            found += batch["text"].to_pylist()
    assert found == [["a", "b"], ["d", "e"], ["a"], ["b", "\ufffd"]]


def test_other_commands_take_strings_only(folder: Path, tmp_path: Path) -> None:
    training = ("train", "--family", "byte_bpe", "--vocab-size", "500", "--output", tmp_path / "t", "b.jsonl")
    assert "text is not a string ('text' is an array)" in refused(folder, *training)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values = st.lists(texts | st.lists(texts, max_size=4), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(values, st.integers(0, 5))
def test_lists_are_read_as_they_are_written(
    tmp_path_factory: pytest.TempPathFactory, documents: list[str | list[str]], first: int
) -> None:
    path = tmp_path_factory.mktemp("read") / "a.jsonl"
    path.write_text("".join(json.dumps({"text": value}) + "\n" for value in documents), encoding="utf-8")
    problems = Problems()
    (batch,) = gathered(read_documents(path, "a.jsonl", ReadConfig(), problems, sentences=True), 1000)
    batch = batch.slice(first)
    lists = [[value] if isinstance(value, str) else value for value in documents]
    assert as_sentences(batch["text"]).to_pylist() == lists[first:]
    sentences, edges = sentences_of(batch["text"])
    assert [sentences.to_pylist()[a:b] for a, b in pairwise(edges)] == lists[first:]
    assert text_sizes(batch["text"]).to_pylist() == [len("".join(one).encode()) for one in lists[first:]]
    assert problems.empty_documents == sum(not any(one) for one in lists)
    plain = all(isinstance(value, str) for value in documents)
    assert batch.schema.field("text").type == (pa.string() if plain else pa.list_(pa.string()))
    if not plain:
        with pytest.raises(InputError, match="text is not a string"):
            list(read_documents(path, "a.jsonl", ReadConfig(), Problems()))


def test_batches_of_both_kinds_are_gathered() -> None:
    strings, lists = pa.array(["x", "a", "b"])[1:], pa.array([["c", "d"], []], pa.list_(pa.string()))
    batches = (pa.record_batch([texts], names=["text"]) for texts in (strings, lists, strings))
    (found,) = gathered(batches, 1000)
    assert found["text"].to_pylist() == [["a"], ["b"], ["c", "d"], [], ["a"], ["b"]]
