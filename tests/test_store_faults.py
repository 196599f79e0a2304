"""Whatever ends a build, at whatever file operation: the store stays valid and the next run gives the same bytes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.kill_driver import KINDS, write_larger_project
from tests.ordinary_user import as_ordinary_user
from tests.small_project import SmallProject, write_small_project
from tests.store_checks import content_of, faults_of
from tokpack_core.engine import LocalEngine
from tokpack_core.errors import InputError, StoreError, TokpackError
from tokpack_core.stages.unit import Unit, run_unit, run_units
from tokpack_core.store import actions, objects
from tokpack_core.store.actions import Action
from tokpack_core.store.store import Store, open_store

ROOT = Path(__file__).parent.parent
MODES = {"kill": (1, 0), "disk_full": (3, 28), "input_output_error": (2, 5), "read_only": (2, 30), "denied": (2, 13)}


@pytest.fixture
def fast_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: these tests write and remove a store hundreds of times."""
    shared_memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=shared_memory if os.access(shared_memory, os.W_OK) else tmp_path))
    yield folder
    for parent, _, _ in os.walk(folder):
        os.chmod(parent, 0o755)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def faulty_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("file faults are injected by a preloaded C library, which takes a compiler and Linux")
    library = tmp_path_factory.mktemp("faults") / "file_faults.so"
    source = ROOT / "tests" / "file_faults.c"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def inject(library: Path, folder: Path, mode: str, stride: int, *assets: str) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.fault_driver", folder / "project", *map(str, MODES[mode]), str(stride)]
    environment = os.environ | {"LD_PRELOAD": str(library), "TOKENIZERS_PARALLELISM": "false"}
    result = subprocess.run([*command, *assets], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["failures"] == []
    return found["faults"]


@pytest.mark.parametrize(("mode", "stride"), [("kill", 1), ("disk_full", 3), ("input_output_error", 3)])
def test_a_fault_at_the_file_operations_of_an_asset(
    faulty_library: Path, fast_folder: Path, mode: str, stride: int
) -> None:
    faults = inject(faulty_library, fast_folder, mode, stride, "corpus/docs")
    assert faults["corpus/docs"] > 50 // stride


def test_a_kill_at_some_file_operations_of_units(faulty_library: Path, fast_folder: Path) -> None:
    faults = inject(faulty_library, fast_folder, "kill", 23, "normalized_corpus/docs")
    assert faults["normalized_corpus/docs"] > 5


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_fault_at_every_file_operation_of_every_asset(faulty_library: Path, fast_folder: Path, mode: str) -> None:
    faults = inject(faulty_library, fast_folder, mode, 1)
    assert len(faults) == 10
    assert all(count > 50 for count in faults.values())


def group_is_gone(group: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
def test_200_kills_at_random_instants(fast_folder: Path) -> None:
    command = [sys.executable, "-m", "tests.kill_driver", fast_folder, "200", "3"]
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert result.returncode == 0
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["failures"] == []
    assert found["kills"].keys() == set(KINDS)
    assert all(count > 30 for count in found["kills"].values())
    assert found["complete"] > 10


def test_killed_builds_leave_no_process_and_the_next_one_completes(fast_folder: Path) -> None:
    project = write_larger_project(fast_folder / "project")
    command = [sys.executable, "-m", "tests.builder", str(project.folder), "2", "normalized_corpus/docs"]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    until = time.monotonic() + 60
    while not list(project.store.glob("actions/normalized_part/*.json")) and time.monotonic() < until:
        time.sleep(0.002)
    process.kill()
    process.wait()
    assert group_is_gone(process.pid, 20)
    store = open_store(project.store)
    assert faults_of(store) == []
    published = len(list(store.actions.glob("normalized_part/*.json")))
    built = project.build("normalized_corpus/docs", workers=2)["normalized_corpus/docs"]
    assert built.units_reused >= published >= 1


def test_a_killed_worker_is_one_sentence(fast_folder: Path) -> None:
    store = open_store(fast_folder / "store", create=True)
    units = [Unit(Action("stage", 1, {"n": n}), end_abruptly, 10**7) for n in range(2)]
    with pytest.raises(TokpackError, match="a worker process died"):
        run_units(store, LocalEngine(2), units, lambda _: None)
    assert faults_of(store) == []
    assert list(store.leases.iterdir()) == []


def end_abruptly(folder: Path) -> dict[str, int]:
    (folder / "half").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def write_much(folder: Path) -> dict[str, int]:
    (folder / "sub").mkdir()
    np.zeros(2**21, np.uint8).tofile(folder / "sub" / "tokens.bin")
    return {}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_size_limit_is_one_sentence_also_from_a_worker(fast_folder: Path, workers: int) -> None:
    store = open_store(fast_folder / "store", create=True)
    units = [Unit(Action("stage", 1, {"n": n}), write_much, 10**7) for n in range(2)]
    script = (
        "import resource, sys; from tests.test_store_faults import *\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20)); signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "units = [Unit(Action('stage', 1, {'n': n}), write_much, 10**7) for n in range(2)]\n"
        "try: run_units(open_store(Path(sys.argv[1])), LocalEngine(int(sys.argv[2])), units, lambda _: None)\n"
        "except StoreError as error: print(error)"
    )
    command = [sys.executable, "-c", script, str(store.root), str(workers)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{store.root}: cannot build stage (")
    assert result.stdout.count("\n") == 1
    assert list(store.tmp.iterdir()) == list(objects.list_objects(store)) == []
    assert run_units(store, LocalEngine(1), units, lambda _: None).run == 2


def test_a_full_disk(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("mounting takes root")
    project = write_small_project(tmp_path / "project")
    wanted = content_of(open_store(write_and_build(tmp_path / "undisturbed").store))
    project.store.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "none", project.store], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine allows no mounts")
    try:
        sentences = set()
        for size in (160, 400, 700, 1000):
            subprocess.run(["mount", "-o", f"remount,size={size}k", project.store], check=True)
            with pytest.raises(StoreError, match=r"No space left|requested and .* written") as caught:
                project.build()
            sentences.add(str(caught.value))
            store = open_store(project.store)
            assert faults_of(store) == []
            assert list(store.tmp.iterdir()) == list(store.leases.iterdir()) == []
        assert all(text.startswith(f"{project.store}: cannot ") and "\n" not in text for text in sentences)
        assert all("free some space" in text for text in sentences)
        subprocess.run(["mount", "-o", "remount,size=100m", project.store], check=True)
        built = project.build()
        assert sum(asset.units_reused for asset in built.values()) > 3
        assert content_of(store) == wanted
    finally:
        subprocess.run(["umount", "-l", project.store], check=True)


def write_and_build(folder: Path) -> SmallProject:
    project = write_small_project(folder)
    project.build()
    return project


def test_a_read_only_store_is_one_sentence(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", create=True)
    for folder in [store.root, *store.root.rglob("*")]:
        folder.chmod(0o555)
    for parent in store.root.parents:
        if parent.stat().st_uid == os.getuid():
            parent.chmod(parent.stat().st_mode | 0o055)

    def refused() -> None:
        with pytest.raises(StoreError, match=r"store: cannot .*Permission denied.*check the rights"):
            run_unit(open_store(store.root), Unit(Action("stage", 1), write_much))

    as_ordinary_user(refused)


def test_an_unreadable_source_is_blamed_and_not_the_store(fast_folder: Path) -> None:
    store = open_store(fast_folder / "store", create=True)

    def build(folder: Path) -> dict[str, int]:
        return {"bytes": len((fast_folder / "source").read_bytes())}

    with pytest.raises(InputError, match=r"source: cannot be read \(No such file"):
        run_unit(store, Unit(Action("stage", 1), build))


def test_an_altered_action_record_counts_as_none(fast_folder: Path) -> None:
    store = open_store(fast_folder / "store", create=True)
    unit = Unit(Action("stage", 1), write_much)
    ref = run_unit(store, unit)
    path = actions.path_of(store, "stage", unit.action.key)
    for content in (b"", b"{", b"[]", b'{"object": 3}'):
        path.chmod(0o644)
        path.write_bytes(content)
        assert actions.lookup(store, unit.action) is None
        assert run_unit(store, unit) == ref
        assert actions.lookup(store, unit.action) == ref


def test_a_store_whose_creation_was_cut_short_is_completed(fast_folder: Path) -> None:
    root = fast_folder / "store"
    for made in ([], ["tmp"], ["tmp", "objects", "actions"]):
        objects.remove_folder(root) if root.exists() else None
        for folder in ["", *made]:
            (root / folder).mkdir(exist_ok=True)
        assert open_store(root, create=True) == Store(root)
    (root / "store.json").unlink()
    (root / "store.json").touch()
    with pytest.raises(StoreError, match="no store here"):
        open_store(root)
    assert open_store(root, create=True) == open_store(root)


def test_a_publication_cut_short_before_its_last_step_is_completed(fast_folder: Path) -> None:
    store = open_store(fast_folder / "store", create=True)
    unit = Unit(Action("stage", 1), write_much)
    folder = objects.folder_of(store, run_unit(store, unit))
    folder.chmod(0o755)
    actions.path_of(store, "stage", unit.action.key).unlink()
    run_unit(store, unit)
    assert folder.stat().st_mode & 0o222 == 0


def test_an_altered_object_is_never_reused(fast_folder: Path) -> None:
    store = open_store(fast_folder / "store", create=True)
    unit = Unit(Action("stage", 1), write_much)
    ref = run_unit(store, unit)
    path = objects.folder_of(store, ref) / "sub" / "tokens.bin"
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.write(b"\1")
    path.chmod(0o444)
    for use in (lambda: run_unit(store, unit), lambda: run_units(store, LocalEngine(1), [unit], lambda _: None)):
        with pytest.raises(StoreError, match=r"tokens\.bin: content differs from its sha256; remove the object"):
            use()
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.write(b"\0")
    assert run_unit(store, unit) == ref
    path.parent.chmod(0o755)
    path.unlink()
    with pytest.raises(StoreError, match="missing"):
        run_unit(store, unit)
    objects.remove_object(store, ref)
    assert run_unit(store, unit) == ref
