"""Units of work: each is keyed by its action, built in a staging folder, published, and reused ever after.

What a unit reads of the store is proven before it is built and looked at again before it is published, so nothing is
made from a file that was altered.

Everything happens under the lease of a build: an object is claimed before anything relies on it, here and in the
worker processes, which take part in the same lease.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tokpack_core.engine import Engine, LocalEngine, threads_of_each
from tokpack_core.errors import StoreError
from tokpack_core.stages.file_errors import file_errors
from tokpack_core.store import actions, leases, objects, publication
from tokpack_core.store.actions import Action
from tokpack_core.store.leases import Lease
from tokpack_core.store.objects import ObjectFile, ObjectRef
from tokpack_core.store.store import MARKER, Store
from tokpack_core.threads import map_in_threads

SMALL_WORK = 4 * 10**6
"""Bytes of input below which starting worker processes, about 2 s, costs more than it gains."""

MOST_THREADS = 4
"""Units at work in one process: more would wait for Python's lock."""


@dataclass(frozen=True)
class Written:
    """Counts for the manifest, and sha256 of files that were hashed as they were written, by path in the folder."""

    counts: dict[str, Any]
    hashed: Mapping[str, str]


Build = Callable[..., dict[str, Any] | Written]
"""Writes files into an empty folder and returns the counts for the manifest; picklable, of an installed package."""


@dataclass(frozen=True)
class Unit:
    """One piece of work that can run anywhere.

    Attributes:
        action: names everything that shapes the bytes.
        build: does the work.
        weight: bytes of input, for progress.
        reads: files of the store that `build` opens.
        in_threads: `build` takes `threads`, how many of them it may use, and releases Python's lock.
    """

    action: Action
    build: Build
    weight: int = 1
    reads: tuple[ObjectFile, ...] = ()
    in_threads: bool = False


@dataclass(frozen=True)
class Progress:
    """How far a stage has come, in units and bytes of input."""

    stage: str
    done: int
    total: int
    weight_done: int
    weight_total: int
    seconds: float

    @property
    def seconds_left(self) -> float:
        return self.seconds * (self.weight_total - self.weight_done) / max(self.weight_done, 1)

    def describe(self) -> str:
        """One line: what is done, and for work of some size the rate and the time left."""
        done = f"{self.stage}: {self.done} of {self.total} {'unit' if self.total == 1 else 'units'}"
        if not self.done or self.weight_total < SMALL_WORK:
            return done
        rate = self.weight_done / 1e6 / max(self.seconds, 1e-9)
        return f"{done}, {self.weight_done / 1e6:,.1f} MB at {rate:,.1f} MB/s, {self.seconds_left:,.0f} s left"


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class UnitResults:
    """Objects in the order of the units, and how many units had to run."""

    refs: list[ObjectRef]
    run: int
    reused: int


def run_unit(store: Store, unit: Unit) -> ObjectRef:
    """The unit's object: the published one if its action ran before, else built and published now.

    Raises:
        StoreError: the store cannot be written, or the published object was altered.
    """
    with leases.hold(store) as lease:
        return find_or_build(store, lease, unit)


def run_unit_in_worker(store: Store, lease: str, unit: Unit) -> ObjectRef:
    """`run_unit` as part of a build of another process, maybe on another machine.

    Raises:
        StoreError: this machine does not see the store.
    """
    if not (store.root / MARKER).is_file():
        raise StoreError(
            f"{store.root}: the machine {socket.gethostname()} does not see the store; mount it there under this path"
        )
    return find_or_build(store, leases.join(store, lease), unit)


def find_or_build(store: Store, lease: Lease, unit: Unit) -> ObjectRef:
    (found,) = find(store, lease, [unit])
    return found or build_unit(store, lease, unit)


def find(store: Store, lease: Lease, units: Sequence[Unit]) -> list[ObjectRef | None]:
    """The published object of each unit that ran before.

    Raises:
        StoreError: an object shows that it was altered.
    """
    recorded = [actions.lookup(store, unit.action) for unit in units]
    lease.claim(*(ref for ref in recorded if ref is not None))
    found = [ref if ref is not None and objects.exists(store, ref) else None for ref in recorded]
    for ref in found:
        if ref is not None:
            objects.read_manifest(store, ref)
    return found


def build_unit(store: Store, lease: Lease, unit: Unit) -> ObjectRef:
    stage = unit.action.stage
    lease.require_writable()
    with publication.staging(store) as folder:
        proven = objects.require_files(store, unit.reads)
        with file_errors(store, f"build {stage}"):
            made = unit.build(folder)
        written = made if isinstance(made, Written) else Written(made, {})
        if not objects.still_the_same(proven):
            objects.require_files(store, unit.reads)
        ref = publication.publish(store, stage, folder, written.counts, lease.claim, written.hashed)
    actions.record(store, unit.action, ref, written.counts)
    return ref


def run_units(store: Store, engine: Engine, units: Sequence[Unit], on_progress: OnProgress) -> UnitResults:
    """Runs the units that never ran and reports after each.

    Raises:
        StoreError: the store cannot be written, or a published object was altered; finished units are kept.
    """
    with leases.hold(store) as lease:
        found = find(store, lease, units)
        missing = [unit for unit, ref in zip(units, found, strict=True) if ref is None]
        if missing:
            lease.require_writable()
        built = build_units(store, engine, lease, missing, on_progress)
    refs = [ref or built[unit.action.key] for unit, ref in zip(units, found, strict=True)]
    return UnitResults(refs, len(missing), len(units) - len(missing))


def build_units(
    store: Store, engine: Engine, lease: Lease, units: Sequence[Unit], on_progress: OnProgress
) -> dict[str, ObjectRef]:
    """Objects by the key of the action."""
    total = sum(unit.weight for unit in units)
    if total < SMALL_WORK:
        engine = LocalEngine(1)
    begin = time.monotonic()
    done = 0
    built: dict[str, ObjectRef] = {}
    refs = map_units(engine, partial(run_unit_in_worker, store, lease.name), units)
    for number, (unit, ref) in enumerate(zip(units, refs, strict=True), 1):
        built[unit.action.key] = ref
        done += unit.weight
        seconds = time.monotonic() - begin
        on_progress(Progress(unit.action.stage, number, len(units), done, total, seconds))
    return built


def map_units(engine: Engine, work: Callable[[Unit], ObjectRef], units: Sequence[Unit]) -> Iterator[ObjectRef]:
    """Where a few units are at work at a time that release Python's lock, threads are spared the start of processes."""
    threads = threads_of_each(engine, len(units))
    built_so = [with_threads(unit, threads) for unit in units]
    few = isinstance(engine, LocalEngine) and 1 < min(engine.workers, len(units)) <= MOST_THREADS
    if few and all(unit.in_threads for unit in units):
        return map_in_threads(work, built_so, lambda unit: 0, min(engine.workers, len(units)))
    return engine.map(work, built_so)


def with_threads(unit: Unit, threads: int) -> Unit:
    return replace(unit, build=partial(unit.build, threads=threads)) if unit.in_threads else unit
