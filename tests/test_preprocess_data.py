"""`tokpack encode` writes the bytes that Megatron's preprocess_data writes: its loop, around its own builder.

The peer reads JSON lines, encodes each key with a transformers tokenizer, adds EOD to what is not empty, and gives the
document to megatron-core's IndexedDatasetBuilder with the dtype that it finds best.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from tokenizers import AddedToken, Tokenizer, processors

from tests.command_line import EOD, read_raw, refused, tokpack
from tests.small_project import write_small_project
from tests.test_merge import same_bytes
from tokpack_core.commands.run_manifest import manifest_of

PEER = """
import json, sys
from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder
from transformers import PreTrainedTokenizerFast
for job in json.load(sys.stdin):
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=job["tokenizer"], eos_token=job["eod"])
    builders = {
        key: IndexedDatasetBuilder(f"{job['output']}_{key}_document.bin", DType.optimal_dtype(len(tokenizer)))
        for key in job["keys"]
    }
    for path in job["files"]:
        for line in open(path, encoding="utf-8"):
            document = json.loads(line)
            for key, builder in builders.items():
                ids = tokenizer(document[key], **job["options"]).input_ids
                lengths = [len(ids)] if ids else []
                if ids and job["append_eod"]:
                    ids.append(tokenizer.eos_token_id)
                    lengths[-1] += 1
                builder.add_document(ids, lengths)
    for key, builder in builders.items():
        builder.finalize(f"{job['output']}_{key}_document.idx")
"""
NAMES = ("a.jsonl", "b.jsonl")
PAGE = (Path(__file__).parent.parent / "docs" / "preprocess_data.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files with two keys, a tokenizer without and one with BOS and EOS around each text, and the peer's output."""
    root = tmp_path_factory.mktemp("preprocess")
    write_small_project(root)
    tokpack(root, "train", "--family", "byte_bpe", "--vocab-size", "600", "--special-token", f"eod={EOD}",
            "--special-token", "bos=<|bos|>", "--output", "tok", "data/docs")  # fmt: skip
    engine = Tokenizer.from_file(str(root / "tok" / "tokenizer.json"))
    bos, eos = engine.token_to_id("<|bos|>"), engine.token_to_id(EOD)
    engine.post_processor = processors.TemplateProcessing(
        single=f"<|bos|> $A {EOD}", special_tokens=[("<|bos|>", bos), (EOD, eos)]
    )
    engine.add_tokens([AddedToken("<tool>", special=True, lstrip=True)])
    (root / "framing").mkdir()
    engine.save(str(root / "framing" / "tokenizer.json"))
    texts = [row["text"] for row in map(json.loads, (root / "data" / "docs" / "0.jsonl").open(encoding="utf-8"))]
    texts += ["", f"a{EOD}b <tool> {EOD}", "e\u0301 \u4e2d\u6587", " \n", EOD]
    rows = [{"text": text, "title": text[:7] if number % 3 else ""} for number, text in enumerate(texts)]
    for name, part in zip(NAMES, (rows[:9], rows[9:]), strict=True):
        (root / name).write_text("".join(json.dumps(row) + "\n" for row in part), encoding="utf-8")
    ordinary = {"add_special_tokens": False, "split_special_tokens": True}
    job = {"files": [str(root / name) for name in NAMES], "eod": EOD, "keys": ["text", "title"]}
    jobs = [
        job | {"output": "plain", "tokenizer": "tok", "append_eod": False, "options": ordinary},
        job | {"output": "eod", "tokenizer": "tok", "append_eod": True, "options": ordinary},
        job
        | {"output": "parsed", "tokenizer": "framing", "append_eod": True, "options": {"add_special_tokens": False}},
        job | {"output": "framed", "tokenizer": "framing", "append_eod": True, "options": {}},
    ]
    jobs = [
        one
        | {"output": str(root / f"peer_{one['output']}"), "tokenizer": str(root / one["tokenizer"] / "tokenizer.json")}
        for one in jobs
    ]
    subprocess.run([sys.executable, "-c", PEER], input=json.dumps(jobs), text=True, check=True, capture_output=True)
    return root


KEYS = ("--json-keys", "text", "--json-keys", "title")
OPTIONS = {
    "plain": ("--tokenizer", "tok"),
    "eod": ("--tokenizer", "tok", "--append-eod"),
    "parsed": ("--tokenizer", "framing", "--eod", EOD, "--append-eod", "--parse-special-tokens"),
    "framed": (
        "--tokenizer",
        "framing",
        "--eod",
        EOD,
        "--append-eod",
        "--parse-special-tokens",
        "--add-special-tokens",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_several_keys_give_the_peers_bytes(folder: Path, tmp_path: Path, name: str) -> None:
    tokpack(folder, "encode", *OPTIONS[name], *KEYS, "--workers", "3", "--output", tmp_path / "ours", *NAMES)
    for key in ("text", "title"):
        assert same_bytes(tmp_path / f"ours_{key}_document", folder / f"peer_{name}_{key}_document")
        found = manifest_of(tmp_path / f"ours_{key}_document")
        assert found is not None
        assert found.path == tmp_path / "ours.manifest.json"


def test_the_command_of_the_page_gives_the_peers_bytes(folder: Path, tmp_path: Path) -> None:
    (command,) = re.findall(r"^tokpack (encode .*)$", PAGE, re.M)
    words = shlex.split(command)
    assert words[-1] == "web.jsonl"
    (tmp_path / "web.jsonl").write_text("".join((folder / name).read_text(encoding="utf-8") for name in NAMES))
    (tmp_path / "my_model").symlink_to(folder / "framing")
    tokpack(tmp_path, *words)
    for key in ("text", "title"):
        assert same_bytes(tmp_path / f"web_{key}_document", folder / f"peer_framed_{key}_document")


def test_the_options_of_the_page_are_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those named in the right column, and below the table."""
    monkeypatch.setenv("COLUMNS", "250")  # long names are cut in a narrow terminal
    ours = "\n".join(line.split(" | ", 1)[-1] for line in PAGE.splitlines() if not line.startswith("    "))
    said = tokpack(folder, "encode", "--help").out
    theirs = {"--split-sentences", "--tokenizer-sentencepiece-legacy"}
    named = set(re.findall(r"--[a-z][a-z-]+", ours)) - theirs
    assert len(named) >= 9
    assert [option for option in sorted(named) if option not in said] == []


def test_the_cases_differ(folder: Path) -> None:
    sequences = {name: read_raw(folder / f"peer_{name}_text_document").sequences for name in OPTIONS}
    assert all(sequences[one] != sequences[other] for one in OPTIONS for other in OPTIONS if one != other)


@pytest.mark.parametrize("ending", ["jsonl.gz", "jsonl.zst", "parquet"])
def test_other_formats_give_the_same_bytes(folder: Path, tmp_path: Path, ending: str) -> None:
    for name in NAMES:
        content = (folder / name).read_bytes()
        path = tmp_path / name.replace("jsonl", ending)
        if ending == "parquet":
            pq.write_table(pa.Table.from_pylist(list(map(json.loads, content.splitlines()))), path)
        else:
            path.write_bytes(gzip.compress(content) if ending.endswith("gz") else zstandard.compress(content))
    tokpack(folder, "encode", *OPTIONS["eod"], "--output", tmp_path / "x", tmp_path)
    assert same_bytes(tmp_path / "x", folder / "peer_eod_text_document")


def test_keys_that_would_be_out_of_step_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a", "title": "b"}\n{"text": "c"}\n', encoding="utf-8")
    encoding = ("encode", "--tokenizer", "tok", *KEYS, "--output", tmp_path / "x", tmp_path / "a.jsonl")
    assert "a.jsonl, line 2: no text field ('title' wanted" in refused(folder, *encoding)
    assert refused(folder, *encoding, "--text-field", "title") == (
        "--json-keys names the fields to encode: leave out --text-field"
    )
    said = refused(folder, *encoding, "--on-error", "skip")
    assert "1 documents have 'title' and 2 have 'text', so they would be out of step" in said
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_tokenizer_without_a_post_processor_adds_nothing(folder: Path, tmp_path: Path) -> None:
    tokpack(folder, "encode", *OPTIONS["eod"], "--add-special-tokens", "--output", tmp_path / "x", *NAMES)
    assert same_bytes(tmp_path / "x", folder / "peer_eod_text_document")
