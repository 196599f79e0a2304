"""An asset's history: numbered entries, created exclusively, never changed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import orjson

from tokpack_core.errors import StoreError
from tokpack_core.store.files import create_exclusively
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store


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
    """All versions of an asset, oldest first."""
    folder = folder_of(store, asset)
    numbers = sorted(int(path.stem) for path in folder.glob("*.json") if path.stem.isdigit())
    return [read_entry(store, asset, number) for number in numbers]


def read_entry(store: Store, asset: str, number: int) -> HistoryEntry:
    document = orjson.loads((folder_of(store, asset) / f"{number}.json").read_bytes())
    return HistoryEntry(
        asset, number, document["action"], ObjectRef.parse(document["object"]), document["when"], document["run"]
    )


def latest(store: Store, asset: str) -> HistoryEntry | None:
    folder = folder_of(store, asset)
    numbers = [int(path.stem) for path in folder.glob("*.json") if path.stem.isdigit()]
    return read_entry(store, asset, max(numbers)) if numbers else None


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
    """Records a version, unless the newest one says the same; on a clash the next number is tried."""
    while True:
        newest = latest(store, asset)
        if newest and (newest.action, newest.object) == (action, ref):
            return newest
        number = newest.number + 1 if newest else 1
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        document = {"action": action, "object": str(ref), "when": when, "run": run}
        content = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        if create_exclusively(folder_of(store, asset) / f"{number}.json", content, store.tmp):
            return HistoryEntry(asset, number, action, ref, when, run)


def list_assets(store: Store) -> list[str]:
    """Keys of all assets with a history."""
    return sorted({path.parent.relative_to(store.assets).as_posix() for path in store.assets.rglob("*.json")})
