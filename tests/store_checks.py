"""What must hold of a store whatever happened to the processes that wrote in it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tokpack_core.store import actions, history, objects
from tokpack_core.store.store import Store


def faults_of(store: Store) -> list[str]:
    """Everything wrong with a store: an object with a wrong digest, a strange name, a record that cannot be read."""
    found = [fault for ref in objects.list_objects(store) for fault in objects.verify_object(store, ref)]
    names = {str(ref) for ref in objects.list_objects(store)}
    found += [
        f"{path}: not an object"
        for path in store.objects.glob("*/*")
        if path.relative_to(store.objects).as_posix() not in names
    ]
    for path in actions.list_records(store):
        action, ref = actions.load_record(path)
        if actions.path_of(store, action.stage, action.key) != path:
            found.append(f"{path}: not the key of its action")
        if not objects.exists(store, ref):
            found.append(f"{path}: its object is not there")
    for asset in history.list_assets(store):
        for entry in history.entries(store, asset):
            actions.read_action(store, asset.partition("/")[0], entry.action)
            if not objects.exists(store, entry.object):
                found.append(f"{asset} {entry.number}: its object is not there")
    return found


def alter_unseen(path: Path) -> None:
    """Flips a bit in the middle of a file and puts size, modification time and modes back, as a careful hand would."""
    before, folder = path.stat(), path.parent.stat()
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.seek(before.st_size // 2)
        byte = file.read(1)
        file.seek(before.st_size // 2)
        file.write(bytes([byte[0] ^ 1]))
    path.chmod(before.st_mode)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_mode) == (before.st_size, before.st_mtime_ns, before.st_mode)
    assert path.parent.stat() == folder


def content_of(store: Store) -> dict[str, str]:
    """sha256 of every file of every object."""
    return {
        path.relative_to(store.objects).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(store.objects.rglob("*"))
        if path.is_file()
    }


def versions_of(store: Store) -> dict[str, list[str]]:
    """The objects of each asset, oldest version first."""
    return {
        asset: [str(entry.object) for entry in history.entries(store, asset)] for asset in history.list_assets(store)
    }
