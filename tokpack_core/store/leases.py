"""Leases: what running processes hold, so that garbage collection leaves it alone.

    leases/<name>.json                what is held: holders (host, boot, pid, start time), "build" or objects, purpose;
                                      touched every minute
    leases/<name>.<process>.claims    one object a line, appended by a build (a file for each of its processes) before
                                      it relies on the object
    leases/<name>.collection          a running garbage collection and the objects it is about to remove

A lease ends when it is given back, when its process is gone (judged on the same host), or 24 h after its last touch.
No locks are used. Both sides write first and look afterwards, so at least one sees the other (Dekker's algorithm): who
wants an object claims it, then waits while a running collection names it, and then looks whether it exists; a
collection names what it is about to remove, and then reads the claims.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.errors import StoreError
from tokpack_core.store import objects
from tokpack_core.store.condemned import wait_for_collections
from tokpack_core.store.files import make_folder, replace_file, store_errors
from tokpack_core.store.holders import Holder, holder_of
from tokpack_core.store.lease_states import BUILD
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store

TOUCH_SECONDS = 60


@dataclass
class Lease:
    """A lease held by this process, or by the one that this process works for.

    Attributes:
        refused: why a build could not write its lease: the store is read-only. Then it may read what there is, which
            nobody can remove from such a store, and make nothing.
    """

    store: Store
    name: str
    claimed: set[ObjectRef] = field(default_factory=set)
    users: int = 0
    owner: int = field(default_factory=os.getpid)
    refused: StoreError | None = None
    _process: str = field(default_factory=lambda: uuid.uuid4().hex)
    _done: threading.Event = field(default_factory=threading.Event)

    @property
    def header(self) -> Path:
        return self.store.leases / f"{self.name}.json"

    def claim(self, *refs: ObjectRef) -> None:
        """Protects objects until the lease ends; afterwards, what exists stays.

        Raises:
            StoreError: the store cannot be written.
        """
        new = [ref for ref in refs if ref not in self.claimed]
        if not new or self.refused:
            return
        with store_errors(self.store.root, "write a lease"):
            # Opened and closed each time: other hosts see what was written before the close.
            with (self.store.leases / f"{self.name}.{self._process}.claims").open("ab") as file:
                file.write("".join(f"{ref}\n" for ref in new).encode())
            wait_for_collections(self.store, new)
        self.claimed.update(new)

    def begin(self, holders: list[Holder], refs: Sequence[ObjectRef] | None, purpose: str) -> None:
        """Writes what is held and by whom, in place of what was written before."""
        document: dict[str, Any] = {
            "holders": [holder.to_json() for holder in holders],
            "holds": BUILD if refs is None else [str(ref) for ref in refs],
            "purpose": purpose,
            "began": time.time(),
        }
        with store_errors(self.store.root, "write a lease"):
            make_folder(self.store.leases)
            replace_file(self.header, orjson.dumps(document), self.store.tmp)

    def require_writable(self) -> None:
        """Raises StoreError where a build may only read."""
        if self.refused:
            raise self.refused

    def keep_touching(self) -> None:
        """Touches the lease every minute from a thread, for hosts that cannot see this process."""

        def work() -> None:
            while not self._done.wait(TOUCH_SECONDS):
                with contextlib.suppress(OSError):
                    os.utime(self.header)

        threading.Thread(target=work, name="tokpack-lease", daemon=True).start()

    def end(self) -> None:
        """Gives the lease back; the header goes first, since claims without one mean nothing."""
        self._done.set()
        # A forked child that unwinds must not give back what its parent holds.
        if self.owner == os.getpid():
            with contextlib.suppress(OSError):
                self.header.unlink(missing_ok=True)
                for path in self.store.leases.glob(f"{self.name}.*.claims"):
                    path.unlink(missing_ok=True)


_builds: dict[Path, Lease] = {}
_lock = threading.RLock()


@contextmanager
def hold(store: Store, refs: Sequence[ObjectRef] | None = None, purpose: str = BUILD) -> Iterator[Lease]:
    """Holds objects against garbage collection until the block is left or this process ends.

    Args:
        refs: what is held; None for a build in progress, which protects everything published since it began and
            everything claimed. Builds of one process, within or beside each other, share a lease.
        purpose: a word for people who ask why an object is kept.

    Raises:
        StoreError: the store cannot be written, or one of `refs` is not there.
    """
    lease = Lease(store, uuid.uuid4().hex) if refs is not None else enter_build(store)
    try:
        if refs is not None:
            lease.begin([holder_of(os.getpid())], refs, purpose)
            lease.keep_touching()
            require_held(store, refs)
        yield lease
    finally:
        if refs is not None:
            lease.end()
        else:
            leave_build(lease)


def enter_build(store: Store) -> Lease:
    with _lock:
        lease = _builds.get(store.root)
        if lease is None:
            lease = Lease(store, uuid.uuid4().hex)
            try:
                lease.begin([holder_of(os.getpid())], None, BUILD)
                lease.keep_touching()
            except StoreError as error:
                if not is_read_only(error):
                    raise
                lease.refused = error
            _builds[store.root] = lease
        lease.users += 1
        return lease


def is_read_only(error: StoreError) -> bool:
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.EROFS, errno.EACCES, errno.EPERM)


def leave_build(lease: Lease) -> None:
    with _lock:
        lease.users -= 1
        if lease.users == 0:
            lease.end()
            _builds.pop(lease.store.root, None)


def join(store: Store, name: str) -> Lease:
    """The lease `name` as this process takes part in it: what it claims is held until that lease ends elsewhere."""
    with _lock:
        lease = _builds.get(store.root)
        if lease is None or lease.name != name:
            lease = _builds[store.root] = Lease(store, name, users=1, owner=0)
        return lease


def claim(store: Store, *refs: ObjectRef) -> None:
    """Claims objects under the build that this process is at, if it is at one."""
    with _lock:
        lease = _builds.get(store.root)
    if lease is not None:
        lease.claim(*refs)


def require_held(store: Store, refs: Sequence[ObjectRef]) -> None:
    wait_for_collections(store, refs)
    with store_errors(store.root, "read the store"):
        missing = [ref for ref in refs if not objects.exists(store, ref)]
    if missing:
        raise StoreError(f"{objects.folder_of(store, missing[0])}: the object is not in this store; build it again")
