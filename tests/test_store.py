"""The store: what has a name is complete, read-only, and stays as it is."""

import hashlib
import mmap
import os
import stat
import threading
from functools import partial
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ordinary_user import as_ordinary_user
from tokpack_core.errors import StoreError
from tokpack_core.stages.unit import Unit, run_unit
from tokpack_core.store import actions, history, objects, publication
from tokpack_core.store.actions import Action
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def publish(store: Store, files: dict[str, bytes], stage: str = "stage") -> ObjectRef:
    with publication.staging(store) as folder:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return publication.publish(store, stage, folder, {"files": len(files)})


def open_to_all(folder: Path) -> Path:
    """A new folder that every user can reach: pytest's own are closed."""
    folder.mkdir()
    for parent in folder.parents:
        if parent.stat().st_uid == os.getuid():
            parent.chmod(parent.stat().st_mode | 0o055)
    return folder


def test_digest_is_sha256_of_sorted_lines(store: Store) -> None:
    ref = publish(store, {"b.txt": b"two", "a/x": b"one"})
    one, two = hashlib.sha256(b"one").hexdigest(), hashlib.sha256(b"two").hexdigest()
    lines = sorted([f"{one}  a/x\n", f"{two}  b.txt\n"])
    assert ref.digest == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert (store.objects / "stage" / ref.digest / "a" / "x").read_bytes() == b"one"


def test_manifest_states_files_sizes_digests_and_counts(store: Store) -> None:
    ref = publish(store, {"a": b"xyz"})
    document = orjson.loads((objects.folder_of(store, ref) / "manifest.json").read_bytes())
    assert document == {
        "stage": "stage",
        "digest": ref.digest,
        "files": [{"path": "a", "size": 3, "sha256": hashlib.sha256(b"xyz").hexdigest()}],
        "counts": {"files": 1},
    }


def test_a_hard_link_is_listed_as_the_same_and_counted_once(store: Store) -> None:
    with publication.staging(store) as folder:
        (folder / "x.bin").write_bytes(b"tokens")
        os.link(folder / "x.bin", folder / "x_docs.bin")
        ref = publication.publish(store, "stage", folder, {})
    manifest = objects.read_manifest(store, ref)
    assert manifest.file("x_docs.bin").same_as == "x.bin"
    assert manifest.size == 6


def test_everything_published_is_read_only(store: Store) -> None:
    folder = objects.folder_of(store, publish(store, {"a/b": b"1", "c": b"2"}))
    for path in [folder, *folder.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o222 == 0, path


def test_an_ordinary_user_publishes_and_cannot_alter(tmp_path: Path) -> None:
    home = open_to_all(tmp_path / "home")
    home.chmod(0o777)

    def publish_and_try_to_alter() -> None:
        store = open_store(home / "store", create=True)
        ref = publish(store, {"a/b": b"1", "c": b"2"})
        assert publish(store, {"a/b": b"1", "c": b"2"}) == ref
        folder = objects.folder_of(store, ref)
        for alter in (
            lambda: (folder / "c").open("ab"),
            lambda: (folder / "c").unlink(),
            lambda: (folder / "new").write_bytes(b""),
            lambda: (folder / "a" / "b").rename(folder / "a" / "d"),
        ):
            with pytest.raises(PermissionError):
                alter()
        history.append(store, "asset/x", "key", ref, None)
        assert history.require_latest(store, "asset/x").object == ref
        assert objects.verify_object(store, ref) == []

    as_ordinary_user(publish_and_try_to_alter)


def test_a_store_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    folder = open_to_all(tmp_path / "locked")
    folder.chmod(0o555)
    hidden = open_to_all(tmp_path / "hidden")
    hidden.chmod(0o000)

    def refused() -> None:
        with pytest.raises(StoreError, match="cannot create"):
            open_store(folder / "store", create=True)
        with pytest.raises(StoreError, match="cannot open"):
            open_store(hidden / "store")

    as_ordinary_user(refused)


def test_the_same_content_twice_is_one_object_and_no_leftovers(store: Store) -> None:
    assert publish(store, {"a": b"1"}) == publish(store, {"a": b"1"})
    assert len(list(objects.list_objects(store))) == 1
    assert list(store.tmp.iterdir()) == []


def test_two_writers_of_the_same_content_both_succeed(store: Store) -> None:
    refs: list[ObjectRef] = []
    ready = threading.Barrier(8)

    def work() -> None:
        ready.wait()
        refs.append(publish(store, {f"{i}": b"x" * i for i in range(20)}))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refs) == 8
    assert len(set(refs)) == 1
    assert objects.verify_object(store, refs[0]) == []
    assert list(store.tmp.iterdir()) == []


def test_a_failed_build_leaves_nothing(store: Store) -> None:
    def build(folder: Path) -> dict[str, int]:
        (folder / "half").write_bytes(b"...")
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        run_unit(store, Unit(Action("stage", 1), build))
    assert list(store.tmp.iterdir()) == []
    assert list(objects.list_objects(store)) == []
    assert list(actions.list_actions(store)) == []


def test_an_action_runs_once(store: Store) -> None:
    calls = []

    def build(folder: Path) -> dict[str, int]:
        calls.append(1)
        (folder / "f").write_bytes(b"result")
        return {}

    unit = Unit(Action("stage", 1, {"p": 1}, {"i": "x"}), build)
    assert run_unit(store, unit) == run_unit(store, unit)
    assert len(calls) == 1
    run_unit(store, Unit(Action("stage", 2, {"p": 1}, {"i": "x"}), build))
    assert len(calls) == 2
    assert len(list(objects.list_objects(store))) == 1


def test_actions_that_share_an_object_have_their_own_counts(store: Store) -> None:
    def build(tried: int, folder: Path) -> dict[str, int]:
        (folder / "f").write_bytes(b"nothing")
        return {"tried": tried}

    units = [Unit(Action("stage", 1, {"p": tried}), partial(build, tried)) for tried in (3, 5)]
    refs = [run_unit(store, unit) for unit in units]
    assert refs[0] == refs[1]
    assert [actions.counts_of(store, refs[0], unit.action.key)["tried"] for unit in units] == [3, 5]
    actions.path_of(store, "stage", units[1].action.key).unlink()
    assert actions.counts_of(store, refs[0], units[1].action.key) == {"tried": 3}


def test_an_action_whose_object_is_gone_runs_again(store: Store) -> None:
    def build(folder: Path) -> dict[str, int]:
        (folder / "f").write_bytes(b"result")
        return {}

    unit = Unit(Action("stage", 1), build)
    ref = run_unit(store, unit)
    objects.remove_object(store, ref)
    assert actions.lookup(store, unit.action) is None
    assert run_unit(store, unit) == ref
    assert objects.exists(store, ref)


@pytest.mark.parametrize("field", ["stage", "code_version", "parameters", "inputs", "libraries"])
def test_every_field_of_an_action_is_part_of_its_key(field: str) -> None:
    fields = {"stage": "s", "code_version": 1, "parameters": {"a": 1}, "inputs": {"b": 2}, "libraries": {"c": "3"}}
    other = {"stage": "t", "code_version": 2, "parameters": {"a": 2}, "inputs": {"b": 3}, "libraries": {"c": "4"}}
    assert Action(**fields).key != Action(**{**fields, field: other[field]}).key  # type: ignore[arg-type]


def test_the_key_does_not_depend_on_the_order_of_parameters() -> None:
    assert Action("s", 1, {"a": 1, "b": 2}).key == Action("s", 1, {"b": 2, "a": 1}).key


def test_history_counts_up_and_never_rewrites(store: Store) -> None:
    first, second = publish(store, {"a": b"1"}), publish(store, {"a": b"2"})
    assert history.append(store, "corpus/zh", "k1", first, "run-1").number == 1
    assert history.append(store, "corpus/zh", "k1", first, "run-2").number == 1
    assert history.append(store, "corpus/zh", "k2", second, None).number == 2
    assert history.append(store, "corpus/zh", "k1", first, None).number == 3
    assert [entry.object for entry in history.entries(store, "corpus/zh")] == [first, second, first]
    assert history.entries(store, "corpus/zh")[0].run == "run-1"
    assert history.list_assets(store) == ["corpus/zh"]


def test_history_loses_no_entry_to_a_race(store: Store) -> None:
    refs = [publish(store, {"a": str(i).encode()}) for i in range(16)]
    ready = threading.Barrier(16)

    def work(i: int) -> None:
        ready.wait()
        history.append(store, "asset/x", f"key-{i}", refs[i], None)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = history.entries(store, "asset/x")
    assert [entry.number for entry in entries] == list(range(1, 17))
    assert {entry.object for entry in entries} == set(refs)


def test_an_altered_file_is_found(store: Store) -> None:
    ref = publish(store, {"a": b"good", "b": b"fine"})
    path = objects.folder_of(store, ref) / "a"
    path.chmod(0o644)
    path.write_bytes(b"evil")
    assert [fault.split(":")[0] for fault in objects.verify_object(store, ref)] == [str(path)]


def test_a_cut_or_missing_file_is_never_used(store: Store) -> None:
    ref = publish(store, {"a": b"good"})
    folder = objects.folder_of(store, ref)
    (folder / "a").chmod(0o644)
    (folder / "a").write_bytes(b"go")
    with pytest.raises(StoreError, match="2 bytes long, not 4"):
        objects.read_manifest(store, ref)
    folder.chmod(0o755)
    (folder / "a").unlink()
    with pytest.raises(StoreError, match="missing, not 4 bytes"):
        objects.read_manifest(store, ref)


def test_an_added_file_is_found(store: Store) -> None:
    ref = publish(store, {"a": b"good"})
    folder = objects.folder_of(store, ref)
    folder.chmod(0o755)
    (folder / "b").write_bytes(b"")
    assert objects.verify_object(store, ref) == [f"{folder / 'b'}: not part of the object"]


def test_a_mapped_file_outlives_its_object(store: Store) -> None:
    ref = publish(store, {"a": b"tokens of a running job"})
    with (objects.folder_of(store, ref) / "a").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    publish(store, {"a": b"tokens of the next one!"})
    objects.remove_object(store, ref)
    assert mapped[:] == b"tokens of a running job"


def test_a_folder_with_other_files_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(StoreError, match="other files"):
        open_store(tmp_path, create=True)
    with pytest.raises(StoreError, match="no store here"):
        open_store(tmp_path / "none")


def test_a_store_of_another_layout_is_refused(store: Store) -> None:
    (store.root / "store.json").chmod(0o644)
    (store.root / "store.json").write_bytes(b'{"layout": 99}')
    with pytest.raises(StoreError, match="layout 99"):
        open_store(store.root)


names = st.text("abcé中 ", min_size=1, max_size=6).map(str.strip).filter(bool)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(names, st.binary(max_size=50), max_size=6), st.randoms())
def test_the_digest_depends_on_names_and_content_alone(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], random: object
) -> None:
    store = open_store(tmp_path_factory.mktemp("store"), create=True)
    shuffled = list(files.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    ref = publish(store, files)
    assert publish(store, dict(shuffled)) == ref
    assert objects.verify_object(store, ref) == []
    folder = objects.folder_of(store, ref)
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "manifest.json"} == files
    assert publish(store, {**files, "extra": b""}) != ref
