"""Garbage collection: removes what no kept version, pin or live lease reaches and nobody published lately.

Mark and sweep. Roots are the newest versions of every asset, pins, what live leases hold or claim, what was published
since a live build began, and whatever is young; from there, everything that actions name as inputs, transitively.
An object goes in three steps, so that a crash between them leaves a valid store: its name is taken away by a rename
into `tmp/`, then the action records that point at it are removed, then its files. Mapped files outlive this.
Builds may run meanwhile: see leases.py for the protocol that both sides follow.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokpack_core.errors import StoreError
from tokpack_core.store import actions, history, objects, pins
from tokpack_core.store.condemned import collecting
from tokpack_core.store.files import remove_folder, store_errors
from tokpack_core.store.lease_states import LeaseState, live_leases
from tokpack_core.store.leftovers import Leftover, find_leftovers, remove_leftover
from tokpack_core.store.lineage import InventoryStage, LineageGraph, named_objects, read_graph
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.reachability import Reachability, Root
from tokpack_core.store.store import Store

MIN_AGE_SECONDS = 24 * 3600
SETTLE_SECONDS = 61.0
"""How long another host may see an old listing of a folder: NFS keeps one for at most 60 s (acdirmax)."""


@dataclass(frozen=True)
class Garbage:
    """An object that nothing reaches, or the records of one that is gone already (0 bytes)."""

    ref: ObjectRef
    bytes: int


@dataclass(frozen=True)
class Kept:
    """An object that stays, and why, in words."""

    ref: ObjectRef
    bytes: int
    reason: str


@dataclass(frozen=True)
class CollectionPlan:
    """What a collection would remove and keep."""

    keep_versions: int
    min_age_seconds: float
    garbage: tuple[Garbage, ...]
    kept: tuple[Kept, ...]
    leftovers: tuple[Leftover, ...]

    @property
    def bytes(self) -> int:
        return sum(g.bytes for g in self.garbage) + sum(left.bytes for left in self.leftovers)


@dataclass(frozen=True)
class Collected:
    """What a collection removed.

    Attributes:
        spared: objects of the plan that came into use since it was made.
    """

    objects: tuple[ObjectRef, ...]
    records: int
    leftovers: int
    bytes: int
    spared: tuple[ObjectRef, ...]


def plan(
    store: Store,
    keep_versions: int,
    min_age_seconds: float = MIN_AGE_SECONDS,
    inventory: InventoryStage | None = None,
) -> CollectionPlan:
    """What a garbage collection would remove, and why everything else stays; changes nothing.

    Args:
        keep_versions: newest versions of each asset that are kept, 1 or more.
        min_age_seconds: objects younger than this are kept in any case.
        inventory: lets a kept corpus keep the inventory it was made from.

    Raises:
        StoreError: the store cannot be read, or a history entry or pin was altered.
    """
    if keep_versions < 1:
        raise StoreError(f"{store.root}: keep at least 1 version of each asset, not {keep_versions}")
    # Leases first: what a build claims or publishes from here on, it does under a lease that is read again later.
    leases = live_leases(store)
    graph = read_graph(store, inventory)
    ages = {ref: published_at(store, ref) for ref in [*graph.manifests, *graph.faults]}
    found = roots(store, leases, ages, keep_versions, time.time() - min_age_seconds)
    reasons = Reachability(graph).mark(found)
    sizes = {ref: manifest.size for ref, manifest in graph.manifests.items()}
    garbage = tuple(Garbage(ref, sizes.get(ref, 0)) for ref in graph.upstream if ref not in reasons)
    kept = tuple(Kept(ref, sizes[ref], reason) for ref, reason in reasons.items() if ref in sizes)
    leftovers = tuple(find_leftovers(store, leases))
    return CollectionPlan(keep_versions, min_age_seconds, garbage, kept, leftovers)


def published_at(store: Store, ref: ObjectRef) -> float:
    """When an object was published; 0 if it is not there."""
    folder = objects.folder_of(store, ref)
    with contextlib.suppress(FileNotFoundError):
        return max(folder.stat().st_mtime, (folder / objects.MANIFEST).stat().st_mtime)
    return 0.0


def roots(
    store: Store,
    leases: Sequence[LeaseState],
    ages: dict[ObjectRef, float],
    keep_versions: int,
    young: float,
) -> Iterator[Root]:
    """Objects kept for their own sake; the first reason of an object is the one that is shown."""
    for asset in history.list_assets(store):
        for entry in history.entries(store, asset)[-keep_versions:]:
            yield Root(entry.object, f"version {entry.number} of {asset}", entry.action)
    for pin in pins.list_pins(store):
        for ref in pin.refs:
            yield Root(ref, f"pin {pin.name}")
    for lease in leases:
        for ref in lease.refs:
            yield Root(ref, f"lease: {lease.describe()}")
        for ref, published in ages.items():
            if lease.build and published >= lease.began:
                yield Root(ref, f"published during a running {lease.describe()}")
    for ref, published in ages.items():
        if published > young:
            yield Root(ref, "published lately")


def collect(
    store: Store,
    planned: CollectionPlan,
    inventory: InventoryStage | None = None,
    settle_seconds: float = SETTLE_SECONDS,
) -> Collected:
    """Removes what was planned and nothing has come to need since.

    Args:
        settle_seconds: waited once if another host holds a lease, so that its listings are no older than the
            announcement.

    Raises:
        StoreError: the store cannot be written, or an object belongs to another user; what was removed until then is
            gone, and the store is valid.
    """
    # These first: on a full disk they may give the space that the announcement takes.
    still = {item.path for item in find_leftovers(store, live_leases(store))}
    leftovers = [item for item in planned.leftovers if item.path in still and remove_leftover(item.path)]
    removed: list[Garbage] = []
    trash: list[Path] = []
    records = 0
    with collecting(store, [item.ref for item in planned.garbage]) as announcement:
        if any(lease.elsewhere for lease in live_leases(store)):
            time.sleep(settle_seconds)
        again = plan(store, planned.keep_versions, planned.min_age_seconds, inventory)
        unneeded = {item.ref for item in again.garbage}
        by_object = records_by_object(store)
        watch = LeaseWatch(store)
        for item in planned.garbage:
            if item.ref not in unneeded or item.ref in watch.held():
                continue
            with store_errors(store.root, f"remove {item.ref}"):
                os.utime(announcement)
                if objects.folder_of(store, item.ref).exists():
                    trash.append(objects.move_to_trash(store, item.ref))
                for record in filter(Path.exists, by_object.get(item.ref, [])):
                    record.unlink(missing_ok=True)
                    records += 1
            removed.append(item)
    for folder in trash:
        with contextlib.suppress(OSError):
            remove_folder(folder)
    gone = tuple(item.ref for item in removed)
    spared = tuple(sorted({item.ref for item in planned.garbage}.difference(gone), key=str))
    size = sum(item.bytes for item in removed) + sum(item.bytes for item in leftovers)
    return Collected(gone, records, len(leftovers), size, spared)


def records_by_object(store: Store) -> dict[ObjectRef, list[Path]]:
    """The records to remove with each object: those that point at it, and those that name it as an input."""
    found: dict[ObjectRef, list[Path]] = {}
    for path in actions.list_records(store):
        with contextlib.suppress(FileNotFoundError, StoreError):
            action, ref = actions.load_record(path)
            for concerned in {ref, *named_objects(action.inputs, LineageGraph())}:
                found.setdefault(concerned, []).append(path)
    return found


class LeaseWatch:
    """The objects of live leases, read again when a file of a lease came, went or grew."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._seen: set[tuple[str, int, int]] | None = None
        self._refs: set[ObjectRef] = set()

    def held(self) -> set[ObjectRef]:
        seen = self._listing()
        if seen != self._seen:
            self._refs = {ref for lease in live_leases(self.store) for ref in lease.refs}
            self._seen = seen
        return self._refs

    def _listing(self) -> set[tuple[str, int, int]]:
        found = set()
        with store_errors(self.store.root, "read the leases"):
            for path in self.store.leases.iterdir():
                with contextlib.suppress(FileNotFoundError):
                    stat = path.stat()
                    found.add((path.name, stat.st_ino, stat.st_size))
        return found
