"""Corpora on a real S3 server on loopback, and a dataset there that Megatron-Core reads with its own S3 reader."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import s3fs

from tests.command_line import EOD, refused, tokpack
from tests.s3_server import s3_server, use_server
from tests.small_project import SmallProject, write_small_project
from tests.test_merge import same_bytes
from tokpack_core.corpus.files import find_files
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_reader import IndexedReader
from tokpack_core.stages.asset import Built
from tokpack_core.stages.graph import plan_graph
from tokpack_core.stages.normalize import read_part, read_parts

BY_MEGATRON = """
import json, sys
from megatron.core.datasets.indexed_dataset import IndexedDataset
from megatron.core.datasets.object_storage_utils import ObjectStorageConfig
prefix, cache = sys.argv[1:]
config = ObjectStorageConfig(path_to_idx_cache=cache, bin_chunk_nbytes=1 << 16)
dataset = IndexedDataset(prefix, multimodal=False, mmap=False, object_storage_config=config)
print(json.dumps([dataset[i].tolist() for i in range(len(dataset))]))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(tmp_path_factory.mktemp("moto")) as url:
        yield url


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> s3fs.S3FileSystem:
    filesystem = use_server(server, monkeypatch)
    if filesystem.exists("corpora"):
        filesystem.rm("corpora", recursive=True)
    filesystem.mkdir("corpora")
    return filesystem


def upload(bucket: s3fs.S3FileSystem, project: SmallProject) -> None:
    for path in sorted((project.folder / "data" / "docs").glob("*.jsonl")):
        bucket.put_file(str(path), f"corpora/docs/{path.name}")
    bucket.pipe_file("corpora/docs/.hidden.jsonl", b"not read")
    bucket.pipe_file("corpora/docs/notes.md", b"not read")


def documents(project: SmallProject, built: Built) -> list[dict[str, str]]:
    parts = read_parts(project.work().store, built.folder)
    rows = [
        row for part in parts for batch in read_part(part.path, ["id", "text", "split"]) for row in batch.to_pylist()
    ]
    return sorted(rows, key=lambda row: row["id"])


def test_a_corpus_in_a_bucket_is_the_local_one(bucket: s3fs.S3FileSystem, tmp_path: Path) -> None:
    project = write_small_project(tmp_path)
    local = project.build("normalized_corpus/docs")
    upload(bucket, project)
    project.edit("data/docs/*.jsonl", "s3://corpora/docs/*.jsonl")
    remote = project.build("normalized_corpus/docs")
    assert documents(project, remote["normalized_corpus/docs"]) == documents(project, local["normalized_corpus/docs"])
    inventories = [pq.read_table(b["corpus/docs"].folder / "inventory.parquet").to_pylist() for b in (local, remote)]
    assert [(file["sha256"], file["size"]) for file in inventories[0]] == [
        (file["sha256"], file["size"]) for file in inventories[1]
    ]
    assert [file["name"] for file in inventories[1]] == [f"s3://corpora/docs/{number}.jsonl" for number in range(3)]
    again = project.build("normalized_corpus/docs")
    assert [built.units_run for built in again.values()] == [0, 0]

    bucket.pipe_file("corpora/docs/1.jsonl", b'{"id": "new", "text": "other", "lang": "en"}\n')
    changed = project.build("normalized_corpus/docs")
    found = {row["id"] for row in documents(project, changed["normalized_corpus/docs"])}
    assert "new" in found
    assert len(found) < len(documents(project, remote["normalized_corpus/docs"]))


def test_an_object_that_changes_after_the_inventory_is_refused(bucket: s3fs.S3FileSystem, tmp_path: Path) -> None:
    project = write_small_project(tmp_path)
    upload(bucket, project)
    project.edit("data/docs/*.jsonl", "s3://corpora/docs")
    project.build("corpus/docs")
    bucket.pipe_file("corpora/docs/2.jsonl", b'{"id": "new", "text": "other"}\n')
    plan = next(plan for plan in plan_graph(project.load()) if plan.key == "normalized_corpus/docs")
    with pytest.raises(InputError, match=r"s3://corpora/docs/2\.jsonl: the file changed since the inventory"):
        plan.build(project.work())


def test_an_audit_fetches_the_recorded_objects_and_encodes_them_again(
    bucket: s3fs.S3FileSystem, tmp_path: Path
) -> None:
    project = write_small_project(tmp_path)
    upload(bucket, project)
    project.edit("data/docs/*.jsonl", "s3://corpora/docs/*.jsonl")
    project.build()

    def audit() -> dict[str, Any]:
        found = tokpack(tmp_path, "audit", "megatron_dataset/base", "--all", "--json", store=project.store).json
        assert isinstance(found, dict)
        assert (found["differing"], found["checked"]) == (0, found["documents"])
        return found

    sound = audit()
    assert (sound["from_source"], sound["not_from_source"]) == (sound["documents"], {})
    lines = bucket.cat_file("corpora/docs/0.jsonl").splitlines(keepends=True)
    gone = len(bucket.cat_file("corpora/docs/1.jsonl").splitlines())
    bucket.pipe_file("corpora/docs/0.jsonl", b"".join(lines[1:]))
    bucket.rm_file("corpora/docs/1.jsonl")
    changed = audit()
    assert changed["not_from_source"] == {
        "s3://corpora/docs/0.jsonl": "changed since it was read",
        "s3://corpora/docs/1.jsonl": "no longer there",
    }
    assert changed["from_source"] == sound["documents"] - len(lines) - gone

    # What the object gives counts, not the text in the store: records that name its new content make it the source.
    bucket.pipe_file("corpora/docs/0.jsonl", b"".join([altered(lines[0]), *lines[1:]]))
    store = project.work().store
    was, now = (hashlib.sha256(b"".join(given)).hexdigest() for given in (lines, [altered(lines[0]), *lines[1:]]))
    for record in (store.actions / "normalized_part").iterdir():
        record.chmod(0o644)
        record.write_bytes(record.read_bytes().replace(was.encode(), now.encode()))
    found = tokpack(tmp_path, "audit", "megatron_dataset/base", "--all", store=project.store, may_fail=True)
    assert found.code == 1
    assert f"1 of {sound['documents']} documents differ" in found.err


def altered(line: bytes) -> bytes:
    assert b" the " in line
    return line.replace(b" the ", b" teh ", 1)


def test_what_is_listed(bucket: s3fs.S3FileSystem, tmp_path: Path) -> None:
    for name in ("a/x.jsonl", "a/b/y.txt.gz", "a/b/z.jpg", "a/.h/w.txt", "c.parquet"):
        bucket.pipe_file(f"corpora/{name}", b"1234")

    def names(*patterns: str) -> list[str]:
        return [file.name.removeprefix("s3://corpora/") for file in find_files(patterns, tmp_path)]

    assert names("s3://corpora/a/x.jsonl") == ["a/x.jsonl"]
    assert names("s3://corpora/a", "s3://corpora/a/x.jsonl") == ["a/.h/w.txt", "a/b/y.txt.gz", "a/x.jsonl"]
    assert names("s3://corpora/*.parquet", "s3://corpora/a/**/y.*") == ["a/b/y.txt.gz", "c.parquet"]
    assert {file.size for file in find_files(["s3://corpora/a"], tmp_path)} == {4}
    with pytest.raises(InputError, match=r"s3://corpora/none\*: gives no object to read"):
        names("s3://corpora/none*")
    with pytest.raises(InputError, match=r"z\.jpg: its extension is none of"):
        names("s3://corpora/a/b/z.jpg")
    with pytest.raises(InputError, match=r"s3://absent/x\.jsonl: gives no object|s3://absent/x\.jsonl: cannot be read"):
        names("s3://absent/x.jsonl")
    with pytest.raises(InputError, match=r"nosuch://a/b\.jsonl: cannot be read|nosuch://a/b\.jsonl: needs a package"):
        names("nosuch://a/b.jsonl")


def test_stand_alone_commands_read_urls(bucket: s3fs.S3FileSystem, tmp_path: Path) -> None:
    project = write_small_project(tmp_path)
    upload(bucket, project)
    train = ("train", "--family", "byte_bpe", "--vocab-size", "500", "--special-token", f"eod={EOD}")
    tokpack(tmp_path, *train, "--output", "tok", "s3://corpora/docs")
    encode = ("encode", "--tokenizer", "tok", "--append-eod")
    manifest = tokpack(tmp_path, *encode, "--json", "--output", "remote", "s3://corpora/docs/*.jsonl").json
    tokpack(tmp_path, *encode, "--output", "local", "data/docs")
    assert same_bytes(tmp_path / "remote", tmp_path / "local")
    assert [entry["path"] for entry in manifest["inputs"]] == [f"s3://corpora/docs/{n}.jsonl" for n in range(3)]
    local = json.loads((tmp_path / "local.manifest.json").read_bytes())
    assert [entry["sha256"] for entry in manifest["inputs"]] == [entry["sha256"] for entry in local["inputs"]]
    said = refused(tmp_path, *encode, "--output", "x", "s3://corpora/none.jsonl")
    assert said.startswith("s3://corpora/none.jsonl: gives no object to read")


def test_megatron_core_reads_a_dataset_out_of_the_bucket(bucket: s3fs.S3FileSystem, tmp_path: Path) -> None:
    project = write_small_project(tmp_path)
    built = project.build()["megatron_dataset/base"]
    tokpack(tmp_path, "copy", "megatron_dataset/base", "s3://corpora/data", store=project.store)
    prefix = "s3://corpora/data/dataset/docs/train_512"
    command = [sys.executable, "-c", BY_MEGATRON, prefix, str(tmp_path / "cache")]
    run = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr
    reader = IndexedReader(built.folder / "docs" / "train_512")
    lengths = reader.index.sequence_lengths
    expected = reader.tokens.reshape(len(lengths), 512).tolist()
    assert json.loads(run.stdout.splitlines()[-1]) == expected
