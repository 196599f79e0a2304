"""Objects altered with size, time and modes put back: never used silently, found by verify with what came of them."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.command_line import refused, tokpack
from tests.small_project import SmallProject, write_small_project
from tests.store_checks import alter_unseen, content_of, faults_of
from tokpack_core.errors import StoreError
from tokpack_core.stages.unit import Unit, run_unit
from tokpack_core.store import actions, objects, verified
from tokpack_core.store.actions import Action
from tokpack_core.store.objects import ObjectFile
from tokpack_core.store.store import Store, open_store


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> SmallProject:
    project = write_small_project(tmp_path_factory.mktemp("tampering"))
    project.build()
    return project


@pytest.fixture
def project(master: SmallProject, tmp_path: Path) -> SmallProject:
    """A moved store: a copy that keeps modes and times."""
    shutil.copytree(master.folder, tmp_path / "moved")
    return SmallProject(tmp_path / "moved")


def first(store: Store, pattern: str) -> Path:
    return min(store.objects.glob(pattern), key=lambda path: (-path.stat().st_size, path))


NEW_SEED = ("max_rare_token_share: 0.5", "max_rare_token_share: 0.5}\n    seed: 5\n    _: {")
CHANGES = {
    "normalized_part/*/part-00000.parquet": ("vocab_size: 600", "vocab_size: 500"),
    "tokenizer_model/*/tokenizer.json": ("code: 1.0}", "code: 1.0, more: 1.0}"),
    "tokenized_part/*/documents.parquet": ("sequence_length: 512", "sequence_length: 256"),
    "tokenized_part/*/part.bin": ("docs: 2.0", "docs: 3.0"),
    "packing_block/*/plan.parquet": ("docs: 2.0", "docs: 3.0"),
    "corpus/*/inventory.parquet": ("unicode: nfc", "unicode: nfc"),
}


@pytest.mark.parametrize("pattern", CHANGES)
def test_no_stage_reads_an_altered_file(project: SmallProject, pattern: str) -> None:
    project.build()  # a store in a new place is compared when it is read, and known from then on
    store = open_store(project.store)
    path = first(store, pattern)
    alter_unseen(path)
    old, new = CHANGES[pattern]
    more = "  more: {paths: [data/code/heapq.txt], splits: {train: 1.0}}\ntokenizers:"
    project.edit("tokenizers:", more)
    if old != new:
        project.edit(old, new)
    before = content_of(store)
    stage, digest = path.relative_to(store.objects).parts[:2]
    with pytest.raises(StoreError) as caught:
        project.build()
    said = str(caught.value)
    assert said.startswith(f"{path}: content differs from its sha256; remove the object {stage}/{digest[:12]} ")
    assert said.endswith(f"chmod -R u+w {path.parent} && rm -r {path.parent} && tokpack build")
    made = content_of(store).keys() - before.keys()
    assert not any(name.startswith(("megatron_dataset", "packed_sequences")) for name in made)
    os.system(said.rpartition(": ")[2].removesuffix(" && tokpack build"))
    project.build()
    assert faults_of(store) == []


def test_a_file_altered_while_it_is_read_gives_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", create=True)
    ref = run_unit(store, Unit(Action("first", 1), lambda folder: write(folder, b"text")))
    path = objects.folder_of(store, ref) / "file"

    def build(folder: Path) -> dict[str, int]:
        content = path.read_bytes()
        alter_unseen(path)
        return write(folder, content)

    unit = Unit(Action("second", 1), build, reads=(ObjectFile(ref, "file"),))
    with pytest.raises(StoreError, match=r"file: content differs from its sha256; remove the object first/"):
        run_unit(store, unit)
    assert actions.lookup(store, unit.action) is None
    assert list(store.tmp.iterdir()) == []
    assert not list(store.objects.glob("second/*"))


def write(folder: Path, content: bytes) -> dict[str, int]:
    (folder / "file").write_bytes(content)
    return {}


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="takes Linux's count of the bytes that a process reads")
def test_what_was_compared_is_not_read_again_until_it_is_touched(tmp_path: Path) -> None:
    size = 8 * 2**20
    store = open_store(tmp_path / "store", create=True)
    unit = Unit(Action("first", 1), lambda folder: write(folder, bytes(size)))
    ref = run_unit(store, unit)
    path = objects.folder_of(store, ref) / "file"
    reads = [ObjectFile(ref)]

    def read_by(work: object) -> int:
        before = bytes_read()
        work()  # type: ignore[operator]
        return bytes_read() - before

    assert read_by(lambda: objects.require_files(store, reads)) < size / 10
    assert read_by(lambda: run_unit(store, unit)) < size / 10
    os.link(path, tmp_path / "another name")  # a backup's hard link changes ctime and no content
    assert size <= read_by(lambda: run_unit(store, unit)) < 1.1 * size
    assert read_by(lambda: run_unit(store, unit)) < size / 10
    for lost in (b"", b"{", b'{"folder": 1, "files": []}'):
        verified.path_of(store, ref.stage, ref.digest).write_bytes(lost)
        assert read_by(lambda: run_unit(store, unit)) < size / 10
        path.touch()
        assert objects.require_object(store, ref) == path.parent


def test_a_moved_store_is_proven_when_it_is_read(project: SmallProject) -> None:
    store = open_store(project.store)
    assert all(built.units_run == 0 for key, built in project.build().items() if not key.startswith("corpus/"))
    path = first(store, "normalized_part/*/part-00000.parquet")
    verified.forget(verified.path_of(store, *path.relative_to(store.objects).parts[:2]))
    alter_unseen(path)
    project.edit("vocab_size: 600", "vocab_size: 500")
    with pytest.raises(StoreError, match=r"part-00000\.parquet: content differs from its sha256"):
        project.build()


def test_verify_tells_what_was_made_from_a_damaged_object(project: SmallProject) -> None:
    path = first(open_store(project.store), "normalized_part/*/part-00000.parquet")
    ref = "/".join(path.relative_to(project.store / "objects").parts[:2])
    alter_unseen(path)
    run = tokpack(project.folder, "verify", "store", may_fail=True)
    assert run.code == 1
    (note,) = [line for line in run.err.splitlines() if line.startswith("note: ")]
    assert note.startswith(f"note: made from normalized_part/{Path(ref).name[:12]}, which is damaged: ")
    for name in (
        "normalized_corpus/docs #1",
        "tokenizer_model/bpe_600 #1",
        "megatron_dataset/base #1",
        "units of work",
    ):
        assert name in note
    found = tokpack(project.folder, "verify", "megatron_dataset/base", "--json", may_fail=True)
    assert found.code == 1
    (made,) = json.loads(found.out)["made_from_damaged"].items()
    assert made[0] == ref
    assert {name.partition("/")[0] for name in made[1]} >= {"tokenized_part", "packed_sequences", "megatron_dataset"}
    assert not {name for name in made[1] if name.startswith("corpus/")}


def test_verify_of_a_dataset_finds_a_broken_chain(project: SmallProject) -> None:
    store = open_store(project.store)
    sound = tokpack(project.folder, "verify", "megatron_dataset/base", "--json").json
    assert sound["checked"]["inventories"] == 2
    for record in (store.actions / "tokenized_part").iterdir():
        record.unlink()
    said = tokpack(project.folder, "verify", "megatron_dataset/base", may_fail=True)
    assert said.code == 1
    assert "no record says how it was made; build again" in said.err
    objects.remove_folder(store.objects / "corpus")
    said = tokpack(project.folder, "verify", "normalized_corpus/code", may_fail=True)
    assert "no inventory of this store lists exactly the source files" in said.err
    assert "audit" not in refused(project.folder, "verify", "normalized_corpus/code")
