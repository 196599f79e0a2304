"""inspect, verify and lineage on a real store, and on files copied out of it or written by stand-alone commands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import EOD, read_raw, refused, tokpack
from tests.small_project import SmallProject, write_small_project
from tokpack_core.commands.store_access import graph_of
from tokpack_core.stages.asset import Built
from tokpack_core.store.files import sha256_of
from tokpack_core.store.lineage import find_object, read_graph
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import open_store


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> SmallProject:
    """Built, then built again after one document changed: two versions of docs and of what stands on it."""
    small = write_small_project(tmp_path_factory.mktemp("store"))
    small.build()
    with (small.folder / "data" / "docs" / "0.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "new", "lang": "en", "text": "A new document."}\n')
    small.build()
    return small


@pytest.fixture(scope="module")
def built(project: SmallProject) -> dict[str, Built]:
    return project.build()


def objects_in(node: dict[str, Any]) -> set[str]:
    return {node["object"]}.union(*(objects_in(branch) for branch in node["branches"]))


def files_in(node: dict[str, Any]) -> dict[str, str]:
    found = dict(node["files"])
    for branch in node["branches"]:
        found |= files_in(branch)
    return found


def test_lineage_leads_up_to_the_tokenizer_and_every_source_file(
    project: SmallProject, built: dict[str, Built]
) -> None:
    chain = tokpack(project.folder, "lineage", "megatron_dataset/base", "--json").json
    dataset = built["megatron_dataset/base"]
    assert chain["up"]["object"] == str(dataset.entry.object)
    assert [(v["asset"], v["number"]) for v in chain["up"]["versions"]] == [("megatron_dataset/base", 2)]
    above = objects_in(chain["up"])
    for key in ("packed_sequences/base", "tokenizer_model/bpe_600"):
        assert str(built[key].entry.object) in above
    now = {
        file.relative_to(project.folder).as_posix(): sha256_of(file) for file in (project.folder / "data").rglob("*.*")
    }
    read = files_in(chain["up"])
    assert read.keys() == now.keys()
    assert {name for name in now if read[name] != now[name]} <= {"data/docs/0.jsonl"}
    assert chain["down"]["branches"] == []


def test_lineage_of_an_inventory_leads_down_to_the_dataset(project: SmallProject, built: dict[str, Built]) -> None:
    chain = tokpack(project.folder, "lineage", "corpus/code", "--json").json
    below = objects_in(chain["down"])
    for key in ("normalized_corpus/code", "tokenizer_model/bpe_600", "packed_sequences/base", "megatron_dataset/base"):
        assert str(built[key].entry.object) in below
    assert str(built["normalized_corpus/docs"].entry.object) not in below


def test_the_printed_tree_folds_units_and_names_versions(project: SmallProject, built: dict[str, Built]) -> None:
    lines = tokpack(project.folder, "lineage", "megatron_dataset/base").out.splitlines()
    made_from, used_by = "\n".join(lines).split("used by")
    digest = built["megatron_dataset/base"].entry.object.digest[:12]
    assert f"megatron_dataset/base #2  {digest}" in made_from
    assert "tokenizer_model/bpe_600 #1" in made_from
    assert "family byte_bpe · vocab size 600 · unicode nfc" in made_from
    assert "strategy best_fit · sequence length 512" in made_from
    # The tokenizer is frozen: it stands on the first version of docs, the dataset on the second.
    assert "normalized_corpus/docs #1" in made_from
    assert "tokenized_shards/bpe_600/docs #2" in made_from
    assert "normalized_corpus/docs #2" in made_from
    assert "10 files" in made_from
    first = sha256_of(project.folder / "data" / "code" / "bisect.txt")[:12]
    assert f"data/code/bisect.txt  {first}" in made_from
    assert "… and 5 more" in made_from
    assert "packing_block" not in made_from
    assert used_by.strip() == "nothing yet"


def test_lineage_knows_a_copied_file_a_copied_object_a_source_file_and_a_short_digest(
    project: SmallProject, built: dict[str, Built], tmp_path: Path
) -> None:
    dataset = built["megatron_dataset/base"]
    wanted = str(dataset.entry.object)
    shutil.copy(dataset.folder / "docs" / "train_512_docs.idx", tmp_path / "renamed.dat")
    shutil.copytree(dataset.folder, tmp_path / "copy")
    source = project.folder / "data" / "code" / "heapq.txt"
    named = {
        str(tmp_path / "renamed.dat"): wanted,
        str(tmp_path / "copy"): wanted,
        str(dataset.folder / "docs" / "train_512"): wanted,
        str(source): str(built["corpus/code"].entry.object),
    }
    for name, expected in named.items():
        assert tokpack(tmp_path, "lineage", name, "--json", store=project.store).json["up"]["object"] == expected
    store = open_store(project.store)
    graph = read_graph(store)
    assert find_object(store, graph, wanted.rpartition("/")[2][:16]) == ObjectRef.parse(wanted)
    said = refused(tmp_path, "lineage", "corpus/nope", store=project.store)
    assert said.startswith("corpus/nope: no asset, digest or file")
    # By its recorded name, from a folder where no such file is.
    named_only = tokpack(tmp_path, "lineage", "data/code/heapq.txt", "--json", store=project.store).json
    assert named_only["up"]["object"] == str(built["corpus/code"].entry.object)
    for command in ("lineage", "verify"):
        said = refused(tmp_path, command, "s3://bucket/data", store=project.store)
        assert "read again and compared by `tokpack copy`" in said


def test_a_file_of_several_versions_means_the_newest(tmp_path: Path) -> None:
    small = write_small_project(tmp_path)
    source = small.folder / "data" / "docs" / "0.jsonl"
    for number in range(4):
        (small.folder / "data" / "docs" / "more.jsonl").write_text(json.dumps({"id": "x", "text": f"{number}"}))
        newest = small.build("corpus/docs")["corpus/docs"].entry.object
        store = open_store(small.store)
        assert find_object(store, graph_of(store), str(source)) == newest


def test_lineage_of_stand_alone_files_goes_from_manifest_to_manifest(project: SmallProject, tmp_path: Path) -> None:
    docs = str(project.folder / "data" / "docs")
    special = ("--special-token", f"eod={EOD}")
    tokpack(tmp_path, "train", "--family", "byte_bpe", "--vocab-size", "300", *special, "--output", "tok", docs)
    tokpack(tmp_path, "encode", "--tokenizer", "tok", "--append-eod", "--output", "enc", docs)
    tokpack(tmp_path, "pack", "--sequence-length", "64", "--eod", "0", "--output", "x", "enc")
    chain = tokpack(tmp_path, "lineage", "x_docs.bin", "--json").json
    assert (chain["output"], chain["command"]) == (str(tmp_path / "x"), "pack")
    assert chain["parameters"]["sequence_length"] == 64
    (encoded,) = chain["branches"]
    assert (encoded["output"], encoded["command"]) == (str(tmp_path / "enc"), "encode")
    (trained,) = encoded["branches"]
    assert (trained["output"], trained["command"]) == (str(tmp_path / "tok"), "train")
    for run in (encoded, trained):
        assert {file["path"]: file["sha256"] for file in run["files"]} == {
            f"{docs}/{number}.jsonl": sha256_of(Path(docs, f"{number}.jsonl")) for number in range(3)
        }
    assert tokpack(tmp_path, "verify", "x", "--json").json == {
        "sound": True,
        "checked": {"prefixes": 1, "files": 6},
        "faults": [],
        "notes": [],
    }
    content = bytearray((tmp_path / "enc.bin").read_bytes())
    content[0] ^= 1
    (tmp_path / "enc.bin").write_bytes(content)
    assert "enc.bin: content differs from its sha256" in refused_once(tmp_path, "verify", "enc")
    for path in tmp_path.glob("enc*"):
        path.unlink()
    tokpack(tmp_path, "encode", "--tokenizer", "tok", "--output", "enc", docs)
    chain = tokpack(tmp_path, "lineage", "x", "--json").json
    assert chain["branches"] == []
    assert [file["path"] for file in chain["files"]] == [str(tmp_path / name) for name in ("enc.bin", "enc.idx")]


def refused_once(folder: Path, *arguments: str | Path, store: Path | None = None) -> str:
    """The only fault that `verify` finds."""
    outcome = tokpack(folder, *arguments, store=store, may_fail=True)
    assert outcome.code == 1
    (line,) = outcome.err.splitlines()
    return line


def test_inspect_decodes_a_pack_of_the_store_document_by_document(
    project: SmallProject, built: dict[str, Built]
) -> None:
    dataset = built["megatron_dataset/base"]
    prefix = dataset.folder / "code" / "train_512"
    packs, docs = read_raw(prefix), read_raw(prefix.with_name("train_512_docs"))
    number = len(packs.sequences) - 1
    shown = tokpack(project.folder, "inspect", prefix, "--pack", str(number), "--json").json
    assert (shown["packs"], shown["sequence_length"], shown["dtype"]) == (len(packs.sequences), 512, "uint16")
    assert shown["tokens"] == 512 * len(packs.sequences)
    pieces = docs.sequences[docs.document_indices[number] : docs.document_indices[number + 1]]
    assert [segment["ids"] for segment in shown["pack"]["segments"]] == pieces
    assert shown["tokenizer"]["digest"] == built["tokenizer_model/bpe_600"].entry.object.digest
    code = [file.read_text(encoding="utf-8") for file in (project.folder / "data" / "code").glob("*.txt")]
    text = shown["pack"]["segments"][0]["text"].removesuffix(EOD)
    assert text
    assert any(text in source for source in code)
    said = refused(project.folder, "inspect", prefix, "--pack", str(number + 1))
    assert f"has no number {number + 1}" in said
    printed = tokpack(project.folder, "inspect", prefix).out
    # What fills a pack up is a piece of EOD alone, whose id is 0.
    documents = [piece for piece in docs.sequences[: docs.document_indices[1]] if set(piece) != {0}]
    assert f"pack 0, document 1 of {len(documents)}" in printed


def test_inspect_shows_ids_where_no_tokenizer_is_known(built: dict[str, Built], tmp_path: Path) -> None:
    for ending in ("bin", "idx"):
        shutil.copy(built["megatron_dataset/base"].folder / "code" / f"train_512.{ending}", tmp_path / f"x.{ending}")
    shown = tokpack(tmp_path, "inspect", "x.bin", "--pack", "0", "--json").json
    segments = [(segment["ids"], segment["text"]) for segment in shown["pack"]["segments"]]
    assert segments == [(read_raw(tmp_path / "x").sequences[0], None)]
    assert "does not exist" in refused(tmp_path, "inspect", "y")


def test_verify_finds_each_fault_of_a_store(project: SmallProject, built: dict[str, Built], tmp_path: Path) -> None:
    sound = tokpack(project.folder, "verify", project.store, "--json").json
    files = {kind: list((project.store / kind).rglob("*.json")) for kind in ("actions", "assets")}
    assert sound["checked"]["actions"] == len(files["actions"])
    assert sound["checked"]["history_entries"] == len(files["assets"])
    assert sound["checked"]["objects"] == len(list((project.store / "objects").glob("*/*")))
    store = tmp_path / "store"
    shutil.copytree(project.store, store)
    dataset = store / "objects" / str(built["megatron_dataset/base"].entry.object)
    altered, gone = dataset / "code" / "train_512.idx", store / "objects" / str(built["corpus/docs"].entry.object)
    content = bytearray(altered.read_bytes())
    content[-1] ^= 1
    altered.chmod(0o644)
    altered.write_bytes(content)
    for path in (gone.parent, gone):
        path.chmod(0o755)
    shutil.rmtree(gone)
    record = next(path for path in sorted((store / "actions" / "normalized_part").glob("*.json")))
    record.chmod(0o644)
    record.write_text("{", encoding="utf-8")
    outcome = tokpack(tmp_path, "verify", "store", "--json", may_fail=True)
    assert outcome.code == 1
    faults = outcome.json["faults"]
    assert len(faults) == len(outcome.err.splitlines()) == 3
    assert [fault for fault in faults if str(altered) in fault]
    assert [fault for fault in faults if fault.startswith(f"{record}: the record was altered")]
    (missing,) = [fault for fault in faults if f"corpus/{gone.name} is not in the store" in fault]
    assert missing.startswith("version 2 of corpus/docs")


def test_verify_takes_an_asset_a_digest_a_prefix_and_a_copy(
    project: SmallProject, built: dict[str, Built], tmp_path: Path
) -> None:
    dataset = built["megatron_dataset/base"]
    at_path = tokpack(project.folder, "verify", dataset.folder / "code" / "train_512", "--json").json
    assert at_path["checked"]["objects"] == 1
    for name in ("megatron_dataset/base", dataset.entry.object.digest):
        # The dataset's docs are of the second version, the frozen tokenizer of the first.
        assert tokpack(project.folder, "verify", name, "--json").json["checked"]["inventories"] == 3
    assert tokpack(project.folder, "path", "megatron_dataset/base").out == f"{dataset.folder}\n"
    copy = tmp_path / "copy"
    shutil.copytree(dataset.folder, copy)
    assert tokpack(tmp_path, "verify", "copy", "--json").json["sound"]
    for path in (copy, copy / "blend.json"):
        path.chmod(0o755)
    (copy / "blend.json").write_text("{}", encoding="utf-8")
    assert refused_once(tmp_path, "verify", "copy") == "error: copy/blend.json: content differs from its sha256"
    said = refused(tmp_path, "verify", "nothing")
    assert said.startswith("nothing: there is no such file, and ")
