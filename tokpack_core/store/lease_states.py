"""Reading leases: who holds what, and whether the holder still runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from tokpack_core.store.files import store_errors
from tokpack_core.store.holders import Holder, can_be_asked, is_live
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store

EXPIRES_SECONDS = 24 * 3600
BUILD = "build"


@dataclass(frozen=True)
class LeaseState:
    """A lease as its files tell.

    Attributes:
        name: of its files.
        build: whether it protects everything published since it began.
        refs: objects it names or claims.
        began, touched: file system times, seconds since the epoch.
        live: whether its holder still runs, or is taken to.
    """

    name: str
    holders: tuple[Holder, ...]
    purpose: str
    build: bool
    refs: frozenset[ObjectRef]
    began: float
    touched: float
    live: bool

    @property
    def elsewhere(self) -> bool:
        """Whether the holder is one that cannot be asked."""
        return not any(can_be_asked(holder) for holder in self.holders)

    def describe(self) -> str:
        return f"{self.purpose} of " + ", ".join(f"{holder.host}:{holder.pid}" for holder in self.holders)


def read_leases(store: Store) -> list[LeaseState]:
    """Every lease of a store, the dead ones too.

    Raises:
        StoreError: a lease cannot be read.
    """
    found = []
    with store_errors(store.root, "read the leases"):
        for path in sorted(store.leases.glob("*.json")):
            with contextlib.suppress(FileNotFoundError):
                found.append(read_lease(store, path))
    return found


def read_lease(store: Store, path: Path) -> LeaseState:
    touched_at = path.stat().st_mtime
    try:
        document = orjson.loads(path.read_bytes())
        holders = tuple(Holder(**holder) for holder in document["holders"])
        held, purpose, began = document["holds"], document["purpose"], document["began"]
    except (ValueError, KeyError, TypeError):
        # Somebody's all the same: what it names is not known, so it is taken for a build that just began.
        holders, held, purpose, began = (), BUILD, "unreadable lease", touched_at
    refs = {ObjectRef.parse(ref) for ref in held} if held != BUILD else set()
    refs.update(read_claims(store, path.stem))
    live = is_live(holders, touched_at, EXPIRES_SECONDS)
    return LeaseState(path.stem, holders, purpose, held == BUILD, frozenset(refs), began, touched_at, live)


def read_claims(store: Store, name: str) -> Iterator[ObjectRef]:
    for path in store.leases.glob(f"{name}.*.claims"):
        with contextlib.suppress(FileNotFoundError):
            for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
                yield ObjectRef.parse(line)


def live_leases(store: Store) -> list[LeaseState]:
    return [lease for lease in read_leases(store) if lease.live]
