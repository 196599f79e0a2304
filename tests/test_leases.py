"""Leases live as long as their process, on whatever host, and pins until they are removed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ordinary_user import as_ordinary_user
from tokpack_core.engine import LocalEngine
from tokpack_core.errors import StoreError, TokpackError
from tokpack_core.stages.unit import Unit, run_units
from tokpack_core.store import holders, leases, pins, publication
from tokpack_core.store.actions import Action
from tokpack_core.store.holders import Holder, holder_of, is_live
from tokpack_core.store.lease_states import live_leases, read_leases
from tokpack_core.store.leased_command import run_with_lease
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store, open_store

ROOT = Path(__file__).parent.parent
HOURS = 3600


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


@pytest.fixture
def ref(store: Store) -> ObjectRef:
    with publication.staging(store) as folder:
        (folder / "tokens.bin").write_bytes(b"tokens")
        return publication.publish(store, "stage", folder, {})


def wait_until(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.01)


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


HOLD = """
import sys
from pathlib import Path
from tokpack_core.store import leases
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import open_store
with leases.hold(open_store(Path(sys.argv[1])), [ObjectRef.parse(sys.argv[2])], "test"):
    print("held", flush=True)
    sys.stdin.readline()
"""
RUN = """
import sys
from pathlib import Path
from tokpack_core.store.leased_command import run_with_lease
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import open_store
sys.exit(run_with_lease(open_store(Path(sys.argv[1])), [ObjectRef.parse(sys.argv[2])], sys.argv[3:]))
"""


def test_a_lease_names_its_process_and_objects_and_is_given_back(store: Store, ref: ObjectRef) -> None:
    with leases.hold(store, [ref], "reader"):
        (lease,) = live_leases(store)
        assert lease.refs == {ref}
        assert not lease.build
        assert [holder.pid for holder in lease.holders] == [os.getpid()]
        assert not lease.elsewhere
    assert list(store.leases.iterdir()) == []


def test_a_lease_of_something_that_is_not_there_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="is not in this store"), leases.hold(store, [ObjectRef("stage", "0" * 64)]):
        pass
    assert list(store.leases.iterdir()) == []


def test_a_lease_ends_with_a_killed_process(store: Store, ref: ObjectRef) -> None:
    process = start(HOLD, store.root, ref)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    assert [lease.refs for lease in live_leases(store)] == [{ref}]
    process.kill()
    wait_until(lambda: not live_leases(store))  # a zombie until it is waited for
    assert len(read_leases(store)) == 1
    process.wait()
    assert live_leases(store) == []


def test_the_pid_of_a_dead_process_may_be_used_again() -> None:
    mine = holder_of(os.getpid())
    assert is_live([mine], 0, 0)
    assert mine.started is not None
    other = Holder(mine.host, mine.boot, mine.pid, mine.started - 1)
    assert not is_live([other], time.time(), 24 * HOURS)
    assert is_live([other, mine], 0, 0)


@pytest.mark.parametrize("boot", ["another boot pid:[1]", f"{holders.this_boot().split()[0]} pid:[1]"])
def test_a_process_that_cannot_be_asked_lives_24_hours_after_its_last_touch(
    store: Store, ref: ObjectRef, boot: str
) -> None:
    with leases.hold(store, [ref]) as lease:
        document = json.loads(lease.header.read_bytes())
        document["holders"] = [{"host": document["holders"][0]["host"], "boot": boot, "pid": 1, "started": 5}]
        lease.header.chmod(0o644)
        lease.header.write_text(json.dumps(document))
        for age, alive in ((0, True), (23 * HOURS, True), (25 * HOURS, False)):
            os.utime(lease.header, (time.time() - age,) * 2)
            (state,) = read_leases(store)
            assert (state.live, state.elsewhere) == (alive, True)


def test_an_unreadable_lease_counts_until_it_is_old(store: Store) -> None:
    path = store.leases / "x.json"
    path.write_bytes(b"")
    (state,) = live_leases(store)
    assert state.build
    os.utime(path, (0, 0))
    assert live_leases(store) == []


def test_a_lease_is_touched(store: Store, ref: ObjectRef, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "TOUCH_SECONDS", 0.02)
    with leases.hold(store, [ref]) as lease:
        os.utime(lease.header, (0, 0))
        wait_until(lambda: lease.header.stat().st_mtime > 0)


def test_builds_within_each_other_share_a_lease(store: Store, ref: ObjectRef) -> None:
    with leases.hold(store) as outer:
        with leases.hold(store) as inner:
            assert inner is outer
            inner.claim(ref)
        leases.claim(store, ref)
        (state,) = live_leases(store)
        assert state.build
        assert state.refs == {ref}
    assert list(store.leases.iterdir()) == []
    leases.claim(store, ref)
    assert list(store.leases.iterdir()) == []


def test_a_forked_child_gives_nothing_back(store: Store, ref: ObjectRef) -> None:
    with leases.hold(store) as lease, leases.hold(store, [ref]):
        child = os.fork()
        if child == 0:
            lease.end()
            os._exit(0)
        os.waitpid(child, 0)
        assert len(live_leases(store)) == 2


def write_number(folder: Path) -> dict[str, int]:
    (folder / "same").write_bytes(b"same")
    (folder / "seen").write_bytes(b"".join(sorted(p.read_bytes() for p in folder.parents[1].glob("leases/*.json"))))
    return {}


def test_what_workers_publish_is_claimed_under_the_lease_of_the_build(store: Store) -> None:
    units = [Unit(Action("stage", 1, {"n": n}), write_number, 10**7) for n in range(4)]
    with leases.hold(store):
        results = run_units(store, LocalEngine(2), units, lambda _: None)
        (state,) = live_leases(store)
        assert state.refs == set(results.refs)
        assert len(list(store.leases.glob("*.claims"))) in (1, 2)
    assert len(set(results.refs)) == 1  # every worker saw the one lease of this process
    assert list(store.leases.iterdir()) == []


def test_a_command_runs_under_a_lease_and_gives_its_exit_code(store: Store, ref: ObjectRef) -> None:
    seen = store.root.parent / "seen"
    script = f"cat {store.leases}/*.json > {seen}; exit 7"
    assert run_with_lease(store, [ref], ["sh", "-c", script]) == 7
    document = json.loads(seen.read_bytes())
    assert document["holds"] == [str(ref)]
    assert len({holder["pid"] for holder in document["holders"]}) == 2
    assert run_with_lease(store, [ref], ["sh", "-c", "kill -TERM $$"]) == 128 + signal.SIGTERM
    assert list(store.leases.iterdir()) == []
    with pytest.raises(TokpackError, match="there is no command no-such-program"):
        run_with_lease(store, [ref], ["no-such-program"])


def test_signals_reach_the_command(store: Store, ref: ObjectRef) -> None:
    trap = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    process = start(RUN, store.root, ref, "sh", "-c", trap)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    assert process.wait(timeout=60) == 5


def test_a_lease_outlives_a_crash_of_all_but_the_command(store: Store, ref: ObjectRef) -> None:
    process = start(RUN, store.root, ref, "sh", "-c", "echo $$; read line; exit 0")
    assert process.stdout is not None
    job = int(process.stdout.readline())
    process.kill()
    process.wait()
    assert [lease.refs for lease in live_leases(store)] == [{ref}]
    os.kill(job, signal.SIGKILL)
    wait_until(lambda: not live_leases(store))


def test_a_store_that_cannot_be_written_gives_no_lease(store: Store, ref: ObjectRef) -> None:
    for parent in store.root.parents:
        if parent.stat().st_uid == os.getuid():
            parent.chmod(parent.stat().st_mode | 0o055)

    def refused() -> None:
        with pytest.raises(StoreError, match="cannot write a lease"), leases.hold(store, [ref]):
            pass

    as_ordinary_user(refused) if os.getuid() == 0 else None


def test_pins(store: Store, ref: ObjectRef) -> None:
    pin = pins.add(store, "paper-2024", [ref])
    assert pins.list_pins(store) == [pin]
    assert pins.add(store, "paper-2024", [ref]) == pin
    with pytest.raises(StoreError, match="the pin paper-2024 keeps other objects"):
        pins.add(store, "paper-2024", [])
    with pytest.raises(StoreError, match="is not in this store"):
        pins.add(store, "nothing", [ObjectRef("stage", "0" * 64)])
    with pytest.raises(StoreError, match="cannot name a pin"):
        pins.add(store, "../escape", [ref])
    pins.remove(store, "paper-2024")
    assert pins.list_pins(store) == []
    with pytest.raises(StoreError, match="there is no pin paper-2024; there are: none"):
        pins.remove(store, "paper-2024")
