"""An asset's history: numbered entries, created exclusively, never changed.

An empty file is a number that a process reserved and never used (see `files.create_exclusively`); it is no entry.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

import orjson

from tokpack_core.errors import StoreError
from tokpack_core.store.files import create_exclusively, store_errors
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store

NUMBER = re.compile(r"[1-9][0-9]*")


@dataclass(frozen=True)
class HistoryEntry:
    """One version of an asset.

    Attributes:
        number: 1 for the first version.
        when: UTC time, ISO 8601.
        run: the Dagster run that recorded it, if any.
    """

    asset: str
    number: int
    action: str
    object: ObjectRef
    when: str
    run: str | None


def folder_of(store: Store, asset: str) -> Path:
    return store.assets / asset


def entries(store: Store, asset: str) -> list[HistoryEntry]:
    """All versions of an asset, oldest first.

    Raises:
        StoreError: an entry was altered or cannot be read.
    """
    with store_errors(store.root, f"read the history of {asset}"):
        found = [read_entry(store, asset, number) for number in numbers(store, asset)]
    return [entry for entry in found if entry is not None]


def numbers(store: Store, asset: str) -> list[int]:
    """The numbers taken, in order."""
    return sorted(int(path.stem) for path in folder_of(store, asset).glob("*.json") if NUMBER.fullmatch(path.stem))


def read_entry(store: Store, asset: str, number: int) -> HistoryEntry | None:
    path = folder_of(store, asset) / f"{number}.json"
    content = path.read_bytes()
    if not content:
        return None
    try:
        document = orjson.loads(content)
        ref = ObjectRef.parse(document["object"])
        return HistoryEntry(asset, number, document["action"], ref, document["when"], document["run"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StoreError(f"{path}: the entry was altered; restore it, or remove the file and build again") from None


def latest(store: Store, asset: str) -> HistoryEntry | None:
    """The newest version of an asset, if it was ever built."""
    with store_errors(store.root, f"read the history of {asset}"):
        found = (read_entry(store, asset, number) for number in reversed(numbers(store, asset)))
        return next((entry for entry in found if entry is not None), None)


def require_latest(store: Store, asset: str) -> HistoryEntry:
    """The newest version of an asset.

    Raises:
        StoreError: it was never built.
    """
    entry = latest(store, asset)
    if entry is None:
        raise StoreError(f"{asset} was never built in {store.root}; run `tokpack build {asset}`")
    return entry


def append(store: Store, asset: str, action: str, ref: ObjectRef, run: str | None) -> HistoryEntry:
    """Records a version, unless the newest one says the same; on a clash the next number is tried.

    Raises:
        StoreError: the store cannot be written.
    """
    while True:
        with store_errors(store.root, f"record a version of {asset}"):
            # Before the newest version is read: what another build records from now on takes this number.
            number = max(numbers(store, asset), default=0) + 1
        newest = latest(store, asset)
        if newest and (newest.action, newest.object) == (action, ref):
            return newest
        with store_errors(store.root, f"record a version of {asset}"):
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            document = {"action": action, "object": str(ref), "when": when, "run": run}
            content = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
            if create_exclusively(folder_of(store, asset) / f"{number}.json", content, store.tmp):
                return HistoryEntry(asset, number, action, ref, when, run)


def list_assets(store: Store) -> list[str]:
    """Keys of all assets with a history."""
    return sorted({path.parent.relative_to(store.assets).as_posix() for path in store.assets.rglob("*.json")})
