"""Garbage collection removes what nothing reaches, and nothing else, whoever else is at work."""

import json
import mmap
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.small_project import SmallProject, write_small_project
from tests.store_checks import content_of, faults_of, versions_of
from tokpack_core.errors import StoreError
from tokpack_core.stages.unit import Unit, run_unit
from tokpack_core.store import actions, history, leases, objects, pins
from tokpack_core.store.actions import Action
from tokpack_core.store.condemned import collecting
from tokpack_core.store.garbage_collection import CollectionPlan, collect, plan
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store, open_store

ROOT = Path(__file__).parent.parent
DAY = 24 * 3600


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def make(store: Store, name: str, *inputs: str) -> ObjectRef:
    """An object with a file of its own, made from the named objects or file digests."""

    def build(folder: Path) -> dict[str, int]:
        (folder / "file").write_text(name)
        return {}

    return run_unit(store, Unit(Action("stage", 1, {"name": name}, {"from": list(inputs)}), build))


def age(store: Store, seconds: float = 2 * DAY) -> None:
    """Makes everything published so far look that old."""
    then = time.time() - seconds
    for path in [*store.objects.rglob("*"), *store.tmp.rglob("*")]:
        os.utime(path, (then, then))


def garbage(planned: CollectionPlan) -> set[ObjectRef]:
    return {item.ref for item in planned.garbage}


def reasons(planned: CollectionPlan) -> dict[ObjectRef, str]:
    return {item.ref: item.reason for item in planned.kept}


def test_what_versions_reach_is_kept_by_object_and_by_file_digest(store: Store) -> None:
    base = make(store, "base")
    part = make(store, "part", str(base))
    sha256 = objects.read_manifest(store, part).file("file").sha256
    tops = [make(store, f"top {n}", sha256) for n in range(3)]
    lost = make(store, "lost", str(base))
    age(store)
    for number, top in enumerate(tops):
        history.append(store, "asset/x", f"key {number}", top, None)
    planned = plan(store, keep_versions=2)
    assert garbage(planned) == {lost, tops[0]}
    assert reasons(planned)[tops[2]] == "version 3 of asset/x"
    assert reasons(planned)[base] == "made into: version 2 of asset/x"
    assert planned.bytes == len("lost") + len("top 0")
    assert len(list(objects.list_objects(store))) == 6
    done = collect(store, planned)
    assert set(done.objects) == {lost, tops[0]}
    assert (done.records, done.bytes, done.spared) == (2, planned.bytes, ())
    assert set(objects.list_objects(store)) == {base, part, *tops[1:]}
    assert {ref for _, ref in actions.list_actions(store)} == {base, part, *tops[1:]}
    assert list(store.tmp.iterdir()) == list(store.leases.iterdir()) == []
    assert garbage(plan(store, keep_versions=2)) == set()
    assert make(store, "lost", str(base)) == lost


def test_equal_content_made_twice_keeps_the_inputs_of_one_action(store: Store) -> None:
    def build(folder: Path) -> dict[str, int]:
        (folder / "empty plan").write_bytes(b"")
        return {}

    inputs = [make(store, f"shard {n}") for n in range(3)]
    plans = {run_unit(store, Unit(Action("plan", 1, {}, {"shard": str(ref)}), build)) for ref in inputs}
    (empty,) = plans
    top = make(store, "top", str(empty), str(inputs[1]))
    age(store)
    history.append(store, "asset/x", "unknown", top, None)
    planned = plan(store, 1)
    assert garbage(planned) == {inputs[0], inputs[2]}
    assert collect(store, planned).records == 4
    assert {ref for _, ref in actions.list_actions(store)} == {top, empty, inputs[1]}
    alone = Action("plan", 1, {}, {"shard": str(inputs[1])})
    history.append(store, "asset/y", alone.key, empty, None)
    assert garbage(plan(store, 1)) == set()


def test_young_objects_are_spared_with_what_they_were_made_from(store: Store) -> None:
    old, lost = make(store, "old"), make(store, "lost")
    age(store)
    young = make(store, "young", str(old))
    planned = plan(store, keep_versions=1)
    assert garbage(planned) == {lost}
    assert reasons(planned) == {young: "published lately", old: "made into: published lately"}
    assert garbage(plan(store, keep_versions=1, min_age_seconds=0)) == {old, lost, young}


def test_pins_and_leases_keep_until_they_end(store: Store) -> None:
    base = make(store, "base")
    top = make(store, "top", str(base))
    age(store)
    pins.add(store, "paper", [top])
    assert reasons(plan(store, 1)) == {top: "pin paper", base: "made into: pin paper"}
    pins.remove(store, "paper")
    with leases.hold(store, [top], "reader"):
        assert reasons(plan(store, 1))[top].startswith("lease: reader of ")
    assert garbage(plan(store, 1)) == {top, base}


def test_what_came_into_use_after_the_plan_is_spared(store: Store) -> None:
    one, two, three, four = (make(store, name) for name in "1234")
    age(store)
    planned = plan(store, 1)
    assert garbage(planned) == {one, two, three, four}
    history.append(store, "asset/x", "key", one, None)
    pins.add(store, "pin", [two])
    with leases.hold(store, [three]):
        done = collect(store, planned)
    assert set(done.objects) == {four}
    assert set(done.spared) == {one, two, three} == set(objects.list_objects(store))


def test_at_least_one_version_is_kept(store: Store) -> None:
    with pytest.raises(StoreError, match="at least 1 version"):
        plan(store, 0)


def test_abandoned_work_is_removed_unless_it_is_young_or_a_build_runs(store: Store) -> None:
    leftover = store.tmp / "crashed"
    (leftover / "sub").mkdir(parents=True)
    (leftover / "sub" / "part.bin").write_bytes(b"12345")
    (leftover / "sub").chmod(0o555)
    assert plan(store, 1, min_age_seconds=0).leftovers == ()
    age(store)
    with leases.hold(store) as lease:
        document = json.loads(lease.header.read_bytes())
        lease.header.chmod(0o644)
        lease.header.write_text(json.dumps(document | {"began": time.time() - 3 * DAY}))
        assert plan(store, 1).leftovers == ()
    planned = plan(store, 1)
    assert [(item.path, item.bytes) for item in planned.leftovers] == [(leftover, 5)]
    assert collect(store, planned).leftovers == 1
    assert not leftover.exists()


def test_files_of_dead_leases_are_removed(store: Store) -> None:
    ref = make(store, "held")
    script = (
        "import os, sys; from pathlib import Path; from tokpack_core.store import leases, objects\n"
        "from tokpack_core.store.store import open_store\n"
        "store = open_store(Path(sys.argv[1]))\n"
        "with leases.hold(store) as lease: lease.claim(*objects.list_objects(store)); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script, store.root], cwd=ROOT)
    age(store)
    assert len(list(store.leases.iterdir())) == 2
    planned = plan(store, 1)
    assert garbage(planned) == {ref}
    assert collect(store, planned).leftovers == 2
    assert list(store.leases.iterdir()) == []


def test_a_mapped_file_outlives_the_collection(store: Store) -> None:
    ref = make(store, "tokens of a running job")
    age(store)
    with (objects.folder_of(store, ref) / "file").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    collect(store, plan(store, 1))
    assert mapped[:] == b"tokens of a running job"


def test_who_wants_a_condemned_object_waits_and_builds_it_again(store: Store) -> None:
    ref = make(store, "wanted")
    age(store)
    found: list[ObjectRef] = []
    thread = threading.Thread(target=lambda: found.append(make(store, "wanted")))
    with collecting(store, [ref]):
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
        make(store, "something else")
        objects.remove_object(store, ref)
    thread.join()
    assert found == [ref]
    assert faults_of(store) == []


def test_a_collection_that_crashed_holds_nobody_up(store: Store) -> None:
    ref = make(store, "wanted")
    script = (
        "import os, sys; from pathlib import Path; from tokpack_core.store.condemned import collecting\n"
        "from tokpack_core.store import objects; from tokpack_core.store.store import open_store\n"
        "store = open_store(Path(sys.argv[1]))\n"
        "with collecting(store, list(objects.list_objects(store))): os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script, store.root], cwd=ROOT)
    assert len(list(store.leases.glob("*.collection"))) == 1
    assert make(store, "wanted") == ref


def test_a_lease_of_another_host_makes_the_collection_wait(store: Store) -> None:
    lost = make(store, "lost")
    age(store)
    planned = plan(store, 1)
    with leases.hold(store, []) as lease:
        document = json.loads(lease.header.read_bytes())
        document["holders"][0]["boot"] = "another"
        lease.header.chmod(0o644)
        lease.header.write_text(json.dumps(document))
        begin = time.monotonic()
        assert collect(store, planned, settle_seconds=0.3).objects == (lost,)
        assert time.monotonic() - begin >= 0.3


def change_vocabulary(project: SmallProject, old: int, new: int) -> None:
    project.edit(f"vocab_size: {old}", f"vocab_size: {new}")


def test_a_real_store_loses_an_old_version_and_builds_it_again(tmp_path: Path) -> None:
    project = write_small_project(tmp_path)
    first = project.build()
    store = open_store(project.store)
    before = content_of(store)
    change_vocabulary(project, 600, 500)
    second = project.build()
    age(store)
    planned = plan(store, 1)
    assert first["megatron_dataset/base"].entry.object in garbage(planned)
    assert second["megatron_dataset/base"].entry.object not in garbage(planned)
    assert first["normalized_corpus/docs"].entry.object not in garbage(planned)
    collect(store, planned)
    again = project.build()
    assert sum(built.units_run for built in again.values()) == 0
    assert all(objects.verify_object(store, ref) == [] for ref in objects.list_objects(store))
    change_vocabulary(project, 500, 600)
    project.build()
    assert content_of(store).items() >= before.items()


def test_a_collection_that_ends_at_any_object_leaves_a_valid_store(tmp_path: Path) -> None:
    """Ends a collection before each change that it makes to the file system."""
    store = open_store(tmp_path / "store", create=True)
    ended = []
    for stop in range(1, 200):
        refs = {make(store, name) for name in "abc"}
        age(store)
        child = os.fork()
        if child == 0:
            count = 0

            def hook(event: str, _: object, stop: int = stop) -> None:
                nonlocal count
                count += event in ("os.rename", "os.remove", "os.rmdir", "os.chmod", "os.utime")
                if count == stop:
                    os._exit(9)

            sys.addaudithook(hook)
            collect(store, plan(store, 1))
            os._exit(0)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        assert all(objects.verify_object(store, ref) == [] for ref in objects.list_objects(store))
        assert {make(store, name) for name in "abc"} == refs
        assert faults_of(store) == []
        if ended[-1] == 0:
            break
    assert ended == [9] * (len(ended) - 1) + [0]
    assert len(ended) > 15


BUILD_TWO_VERSIONS = """
import sys
from pathlib import Path
from tests.small_project import SmallProject
from tests.test_garbage_collection import change_vocabulary
project = SmallProject(Path(sys.argv[1]))
for round in range(int(sys.argv[2])):
    sizes = (600, 500) if round % 2 == 0 else (500, 600)
    change_vocabulary(project, *sizes)
    project.build(workers=1)
"""


@pytest.mark.parametrize("rounds", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_a_build_and_collections_of_everything_at_once(tmp_path: Path, rounds: int) -> None:
    """A build switches between two versions while collections without a minimum age remove the other one."""
    project = write_small_project(tmp_path)
    project.build()
    store = open_store(project.store)
    process = subprocess.Popen([sys.executable, "-c", BUILD_TWO_VERSIONS, tmp_path, str(rounds)], cwd=ROOT)
    removed = 0
    while process.poll() is None:
        removed += len(collect(store, plan(store, 1, min_age_seconds=0)).objects)
    assert process.returncode == 0
    assert removed > 0
    collect(store, plan(store, 1, min_age_seconds=0))
    undisturbed = write_small_project(tmp_path / "undisturbed")
    undisturbed.build()
    wanted = open_store(undisturbed.store)
    assert all(objects.verify_object(store, ref) == [] for ref in objects.list_objects(store))
    newest = {asset: versions[-1] for asset, versions in versions_of(store).items()}
    assert newest == {asset: versions[-1] for asset, versions in versions_of(wanted).items()}
    assert content_of(store) == content_of(wanted)
