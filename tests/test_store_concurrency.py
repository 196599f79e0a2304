"""Two builds at once on one store, with hard links and without: both succeed and nothing is lost."""

import errno
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.small_project import write_small_project
from tests.store_checks import content_of, faults_of, versions_of
from tokpack_core.errors import StoreError
from tokpack_core.store import history, objects, publication
from tokpack_core.store.files import create_exclusively
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store, open_store

ROOT = Path(__file__).parent.parent
REFUSED = OSError(errno.EOPNOTSUPP, "no links here")


def at_once(count: int, work: Callable[[int], None]) -> None:
    """Calls `work(number)` in `count` forked processes that start together."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(count)

    def run(number: int) -> None:
        barrier.wait()
        work(number)

    processes = [context.Process(target=run, args=(number,)) for number in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * count


@pytest.fixture(params=["links", "no links"])
def store(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store on a file system with or without hard links."""
    if request.param == "no links":

        def refuse(source: Path, target: Path) -> None:
            raise REFUSED

        monkeypatch.setattr(os, "link", refuse)
    return open_store(tmp_path / "store", create=True)


def publish(store: Store, content: bytes) -> ObjectRef:
    with publication.staging(store) as folder:
        (folder / "file").write_bytes(content)
        return publication.publish(store, "stage", folder, {})


def test_no_history_entry_is_lost_between_processes(store: Store) -> None:
    refs = [publish(store, str(number).encode()) for number in range(6)]

    def work(number: int) -> None:
        for time in range(5):
            history.append(store, "asset/x", f"key-{number}-{time}", refs[number], None)

    at_once(6, work)
    entries = history.entries(store, "asset/x")
    assert [entry.number for entry in entries] == list(range(1, 31))
    assert sorted(entry.action for entry in entries) == sorted(f"key-{n}-{t}" for n in range(6) for t in range(5))
    assert list(store.tmp.iterdir()) == []


def test_the_same_content_is_published_once(store: Store) -> None:
    def work(number: int) -> None:
        for content in range(5):
            publish(store, str(content).encode())

    at_once(6, work)
    assert len(list(objects.list_objects(store))) == 5
    assert faults_of(store) == []
    assert list(store.tmp.iterdir()) == []


def test_a_store_is_created_by_many_at_once(tmp_path: Path, store: Store) -> None:
    root = tmp_path / "new"

    def work(number: int) -> None:
        assert open_store(root, create=True).root == root

    at_once(6, work)
    assert open_store(root).root == root
    assert list((root / "tmp").iterdir()) == []


def test_a_number_that_was_reserved_and_never_used_is_no_version(store: Store) -> None:
    first, second = publish(store, b"1"), publish(store, b"2")
    history.append(store, "asset/x", "k1", first, None)
    (store.assets / "asset" / "x" / "2.json").touch()
    assert history.require_latest(store, "asset/x").object == first
    assert history.append(store, "asset/x", "k2", second, None).number == 3
    assert [entry.number for entry in history.entries(store, "asset/x")] == [1, 3]


def test_what_another_build_records_meanwhile_is_not_recorded_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one comes between looking for the newest version and writing the next."""
    ref, look = publish(store, b"1"), history.latest

    def overtaken(store: Store, asset: str) -> history.HistoryEntry | None:
        found = look(store, asset)
        monkeypatch.setattr(history, "latest", look)
        history.append(store, asset, "k1", ref, None)
        return found

    monkeypatch.setattr(history, "latest", overtaken)
    assert history.append(store, "asset/x", "k1", ref, None).number == 1
    assert [entry.number for entry in history.entries(store, "asset/x")] == [1]


def test_an_altered_entry_is_one_sentence(store: Store) -> None:
    history.append(store, "asset/x", "k1", publish(store, b"1"), None)
    path = store.assets / "asset" / "x" / "1.json"
    path.chmod(0o644)
    path.write_bytes(b'{"action": 1}')
    with pytest.raises(StoreError, match=r"1\.json: the entry was altered"):
        history.latest(store, "asset/x")


def test_an_existing_file_is_never_replaced(store: Store) -> None:
    path = store.root / "one"
    assert create_exclusively(path, b"first", store.tmp)
    assert not create_exclusively(path, b"second", store.tmp)
    assert path.read_bytes() == b"first"


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("mkfs.vfat"), reason="takes root and mkfs.vfat")
def test_a_file_system_without_links(tmp_path: Path) -> None:
    image, mount = tmp_path / "image", tmp_path / "mount"
    subprocess.run(["truncate", "-s", "64M", image], check=True)
    subprocess.run(["mkfs.vfat", image], check=True, capture_output=True)
    mount.mkdir()
    if subprocess.run(["mount", "-o", "loop", image, mount], capture_output=True).returncode:
        pytest.skip("this machine mounts no vfat")
    try:
        store = open_store(mount / "store", create=True)
        ref = publish(store, b"1")
        assert history.append(store, "asset/x", "k", ref, None).number == 1
        assert history.append(store, "asset/x", "l", ref, None).number == 2
        assert [entry.action for entry in history.entries(store, "asset/x")] == ["k", "l"]
    finally:
        subprocess.run(["umount", mount], check=True)


def on_host(name: str, command: list[str]) -> list[str]:
    """The command on a host of that name, which sees no process of another: as on a shared folder, no lease can be
    asked for."""
    script = 'hostname "$0" && exec "$@"'
    return ["unshare", "--uts", "--pid", "--fork", "--mount-proc", "sh", "-c", script, name, *command]


@pytest.mark.parametrize("hosts", [False, True], ids=["processes", "hosts"])
def test_two_builds_at_once_give_what_one_gives(tmp_path: Path, hosts: bool) -> None:
    if hosts and (
        not shutil.which("unshare") or subprocess.run(on_host("x", ["true"]), capture_output=True).returncode
    ):
        pytest.skip("this machine gives no namespaces")
    project = write_small_project(tmp_path / "both")
    command = [sys.executable, "-m", "tests.builder", str(project.folder), "2"]
    commands = [on_host(f"host-{number}", command) if hosts else command for number in range(2)]
    builds = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for command in commands]
    assert [(build.communicate()[1], build.returncode) for build in builds] == [("", 0), ("", 0)]
    alone = write_small_project(tmp_path / "alone")
    alone.build()
    store, wanted = open_store(project.store), open_store(alone.store)
    assert faults_of(store) == []
    assert content_of(store) == content_of(wanted)
    assert versions_of(store) == versions_of(wanted)
    assert list(store.tmp.iterdir()) == list(store.leases.iterdir()) == []
