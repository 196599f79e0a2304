"""Where a store stands on disk.

<store>/store.json                     layout version
<store>/objects/<stage>/<digest>/      files + manifest.json, read-only, written once
<store>/actions/<stage>/<key>.json     what was run -> the object
<store>/assets/<asset key>/<n>.json    an asset's history, append-only
<store>/tmp/                           work in progress, renamed into place when complete
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from tokpack_core.errors import StoreError
from tokpack_core.store.files import create_exclusively

LAYOUT = 1


@dataclass(frozen=True)
class Store:
    """A store folder that exists and has a layout this version understands."""

    root: Path

    @property
    def objects(self) -> Path:
        return self.root / "objects"

    @property
    def actions(self) -> Path:
        return self.root / "actions"

    @property
    def assets(self) -> Path:
        return self.root / "assets"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"


def open_store(root: Path, create: bool = False) -> Store:
    """Opens the store at `root`, making an empty one first if `create`.

    Raises:
        StoreError: there is no store, it has another layout, or it cannot be written.
    """
    root = Path(os.path.abspath(root))
    marker = root / "store.json"
    try:
        if not marker.exists():
            if not create:
                raise StoreError(f"{root}: no store here; run `tokpack build`, or name the store in TOKPACK_STORE")
            create_store(root)
        layout = orjson.loads(marker.read_bytes()).get("layout")
    except OSError as error:
        raise StoreError(f"{root}: the store cannot be read ({error.strerror}); check its rights") from error
    if layout != LAYOUT:
        raise StoreError(f"{root}: this store has layout {layout}, not {LAYOUT}; use the tokpack version that made it")
    return Store(root)


def create_store(root: Path) -> None:
    if root.is_dir() and any(root.iterdir()) and not (root / "tmp").is_dir():
        raise StoreError(f"{root}: this folder holds other files; name an empty or new folder for the store")
    try:
        for folder in ("objects", "actions", "assets", "tmp"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        create_exclusively(root / "store.json", orjson.dumps({"layout": LAYOUT}), root / "tmp")
    except OSError as error:
        reason = error.strerror
        raise StoreError(f"{root}: the store cannot be created ({reason}); check rights and space") from error
