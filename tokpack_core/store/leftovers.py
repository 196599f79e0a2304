"""What processes that crashed left behind in `tmp/` and `leases/`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokpack_core.store.files import remove_folder, store_errors
from tokpack_core.store.lease_states import EXPIRES_SECONDS, LeaseState, read_leases
from tokpack_core.store.store import Store

LEFTOVER_SECONDS = 24 * 3600
"""How old work in `tmp/` must be, whatever the age asked of objects: a lease that is being written stands there too."""


@dataclass(frozen=True)
class Leftover:
    """What a process that crashed left in `tmp/` or `leases/`."""

    path: Path
    bytes: int


def find_leftovers(store: Store, leases: Sequence[LeaseState]) -> Iterator[Leftover]:
    """Old things in `tmp/` that no running build may have made, and the files of dead leases."""
    begun = min((lease.began for lease in leases if lease.build), default=float("inf"))
    limit = min(time.time() - LEFTOVER_SECONDS, begun)
    with store_errors(store.root, "read the store"):
        for path in sorted(store.tmp.iterdir()):
            size, changed = measure(path)
            if changed < limit:
                yield Leftover(path, size)
        known = {lease.name: lease.live for lease in read_leases(store)}
        for path in sorted(store.leases.iterdir()) if store.leases.is_dir() else ():
            name, (size, changed) = path.name.partition(".")[0], measure(path)
            # A claim without a lease may be one of a worker that outlives its build for a moment.
            if not known.get(name, time.time() - changed < EXPIRES_SECONDS):
                yield Leftover(path, size)


def measure(path: Path) -> tuple[int, float]:
    """Bytes of a file or folder, and when anything in it was last changed."""
    size, changed = 0, 0.0
    found = [path, *(Path(folder, name) for folder, names, files in os.walk(path) for name in (*names, *files))]
    for each in found:
        with contextlib.suppress(FileNotFoundError):
            stat = each.lstat()
            size += stat.st_size if each.is_file() else 0
            changed = max(changed, stat.st_mtime)
    return size, changed


def remove_leftover(path: Path) -> bool:
    """Whether it could be removed; what could not stays for the next collection."""
    try:
        if path.is_dir():
            remove_folder(path)
        else:
            path.unlink(missing_ok=True)
    except OSError:
        return False
    return True
