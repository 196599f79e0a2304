"""`tokpack copy` to a folder and to a real S3 server on loopback, and what copies tell without the store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import s3fs

from tests.command_line import Outcome, refused, tokpack
from tests.s3_server import credentials, s3_server
from tests.small_project import SmallProject, write_small_project
from tokpack_core.stages.asset import Built
from tokpack_core.store.files import sha256_of

DATASET = "megatron_dataset/base"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> SmallProject:
    small = write_small_project(tmp_path_factory.mktemp("copied"))
    small.build()
    return small


@pytest.fixture(scope="module")
def built(project: SmallProject) -> dict[str, Built]:
    return project.build()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(tmp_path_factory.mktemp("moto")) as url:
        yield url


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> s3fs.S3FileSystem:
    for name, value in (credentials() | {"AWS_ENDPOINT_URL": server}).items():
        monkeypatch.setenv(name, value)
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    filesystem = s3fs.S3FileSystem(endpoint_url=server, skip_instance_cache=True, use_listings_cache=False)
    if not filesystem.exists("bucket"):
        filesystem.mkdir("bucket")
    return filesystem


def copied(project: SmallProject, destination: str | Path, name: str = DATASET) -> dict[str, int]:
    facts = tokpack(project.folder, "copy", name, destination, "--json", store=project.store).json
    return {"written": facts["files_written"], "kept": facts["files_kept"]}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_copy_in_a_folder_verifies_and_knows_its_lineage_without_the_store(
    project: SmallProject, built: dict[str, Built], tmp_path: Path
) -> None:
    first = copied(project, tmp_path / "first")
    assert first["kept"] == 0
    assert contents(tmp_path / "first" / "dataset") == contents(built[DATASET].folder)
    assert contents(tmp_path / "first" / "tokenizer") == contents(built["tokenizer_model/bpe_600"].folder)
    train = tmp_path / "first" / "dataset" / "docs" / "train_512"
    assert os.path.samefile(f"{train}.bin", f"{train}_docs.bin")
    assert copied(project, tmp_path / "first") == {"written": 0, "kept": first["written"]}

    (tmp_path / "first").rename(tmp_path / "moved")
    wanted = tokpack(project.folder, "lineage", DATASET, "--json", store=project.store).json
    for name in ("moved", "moved/dataset", "moved/dataset/docs/train_512", "moved/dataset/blend.json"):
        assert tokpack(tmp_path, "verify", name, "--json").json["sound"]
        told = tokpack(tmp_path, "lineage", name, "--json").json
        assert told["up"] == wanted["up"]
        assert told["down"]["branches"] == []
    tokenizer = tokpack(tmp_path, "lineage", "moved/tokenizer/tokenizer.json", "--json").json
    assert tokenizer["up"]["object"] == str(built["tokenizer_model/bpe_600"].entry.object)
    events = tokpack(project.folder, "lineage", DATASET, "--openlineage", store=project.store).out
    assert tokpack(tmp_path, "lineage", "moved", "--openlineage").out == events


@pytest.mark.parametrize("altered", ["dataset/docs/train_512.bin", "tokenizer/tokenizer.json", "dataset/manifest.json"])
def test_verify_finds_an_altered_file_of_a_copy(project: SmallProject, tmp_path: Path, altered: str) -> None:
    copied(project, tmp_path / "copy")
    path = tmp_path / "copy" / altered
    content = path.read_bytes()
    replace(
        path,
        content.replace(b'"sha256": "', b'"sha256": "0', 1) if altered.endswith("manifest.json") else flipped(content),
    )
    outcome = tokpack(tmp_path, "verify", "copy", may_fail=True)
    assert outcome.code == 1
    said = refused(project.folder, "copy", DATASET, tmp_path / "copy", store=project.store)
    assert said.startswith(f"{tmp_path / 'copy'}/")
    assert "is not of this dataset" in said
    assert path.read_bytes() != content


def flipped(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


def replace(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"sequence_length": 512,', b'"sequence_length": 513,'),
        (b'"strategy": "best_fit"', b'"strategy": "naive"'),
        (b'"path": "report.json"', b'"path": "other.json"'),
    ],
)
def test_verify_finds_an_altered_lineage(project: SmallProject, tmp_path: Path, old: bytes, new: bytes) -> None:
    copied(project, tmp_path / "copy")
    path = tmp_path / "copy" / "lineage.json"
    content = path.read_bytes()
    actions = content.index(b'"actions"') if b"path" not in old else 0
    assert old in content[actions:]
    replace(path, content[:actions] + content[actions:].replace(old, new, 1))
    outcome = tokpack(tmp_path, "verify", "copy", may_fail=True)
    assert outcome.code == 1
    assert "lineage.json: the " in outcome.err


def test_a_copy_goes_on_where_it_was_cut_short(project: SmallProject, tmp_path: Path) -> None:
    whole = copied(project, tmp_path / "whole")["written"]
    shutil.copytree(tmp_path / "whole", tmp_path / "part")
    for name in ("lineage.json", "tokenizer/tokenizer.json", "dataset/code/train_512.bin"):
        (tmp_path / "part" / name).unlink()
    (tmp_path / "part" / "dataset" / "code" / "train_512.bin.partial").write_bytes(b"half")
    assert copied(project, tmp_path / "part") == {"written": 3, "kept": whole - 3}
    assert contents(tmp_path / "part") == contents(tmp_path / "whole")


def test_another_dataset_and_strange_files_are_refused(
    project: SmallProject, built: dict[str, Built], tmp_path: Path
) -> None:
    (tmp_path / "mine" / "dataset").mkdir(parents=True)
    (tmp_path / "mine" / "dataset" / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "mine" / "README").write_text("stays", encoding="utf-8")
    said = refused(project.folder, "copy", DATASET, tmp_path / "mine", store=project.store)
    assert f"{tmp_path}/mine/dataset/notes.txt is there" in said
    assert sorted(contents(tmp_path / "mine")) == ["README", "dataset/notes.txt"]
    assert "is there" in refused(project.folder, "copy", DATASET, tmp_path / "mine" / "README", store=project.store)
    assert "only datasets are copied" in refused(
        project.folder, "copy", "tokenizer_model/bpe_600", tmp_path / "x", store=project.store
    )
    assert "is inside the store" in refused(project.folder, "copy", DATASET, "store/copy", store=project.store)
    copied(project, tmp_path / "whole")
    assert "is inside the copy" in refused(
        project.folder, "copy", DATASET, tmp_path / "whole" / "dataset", store=project.store
    )
    assert "cannot be opened" in refused(project.folder, "copy", DATASET, "nowhere://x", store=project.store)


def test_a_copy_in_an_object_store_is_read_back_equal(
    project: SmallProject, built: dict[str, Built], bucket: s3fs.S3FileSystem, tmp_path: Path
) -> None:
    url = "s3://bucket/sets/base"
    first = copied(project, url)
    there = bucket.find("bucket/sets/base")
    assert first == {"written": len(there), "kept": 0}
    read = {name.removeprefix("bucket/sets/base/"): bucket.cat_file(name) for name in there}
    dataset = {f"dataset/{name}": content for name, content in contents(built[DATASET].folder).items()}
    tokenizer = {
        f"tokenizer/{name}": content for name, content in contents(built["tokenizer_model/bpe_600"].folder).items()
    }
    assert {name: content for name, content in read.items() if name != "lineage.json"} == dataset | tokenizer
    assert copied(project, url) == {"written": 0, "kept": len(there)}

    bucket.rm_file("bucket/sets/base/lineage.json")
    assert copied(project, url) == {"written": 1, "kept": len(there) - 1}
    bucket.get("bucket/sets/base", str(tmp_path / "down"), recursive=True)
    assert tokpack(tmp_path, "verify", "down", "--json").json["sound"]
    assert '"second_names": "copies"' in (tmp_path / "down" / "lineage.json").read_text(encoding="utf-8")

    bucket.pipe_file("bucket/sets/base/dataset/blend.json", b"{}")
    said = refused(project.folder, "copy", DATASET, url, store=project.store)
    assert "s3://bucket/sets/base/dataset/blend.json is there and is not of this dataset" in said
    assert bucket.cat_file("bucket/sets/base/dataset/blend.json") == b"{}"
    assert "cannot copy" in refused(project.folder, "copy", DATASET, "s3://no-such-bucket/x", store=project.store)


def test_a_moved_store_still_verifies_and_copies(project: SmallProject, tmp_path: Path) -> None:
    store = tmp_path / "elsewhere" / "moved"
    shutil.copytree(project.store, tmp_path / "store")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store").rename(store)
    assert verified(tmp_path, store).json["sound"]
    before = tokpack(project.folder, "lineage", DATASET, "--json", store=project.store).json
    assert tokpack(tmp_path, "lineage", DATASET, "--json", store=store).json == before
    tokpack(tmp_path, "copy", DATASET, "copy", store=store)
    original = project.folder / "store" / "objects" / before["up"]["object"]
    assert sha256_of(tmp_path / "copy" / "dataset" / "blend.json") == sha256_of(original / "blend.json")


def verified(folder: Path, store: Path) -> Outcome:
    return tokpack(folder, "verify", store, "--json")
