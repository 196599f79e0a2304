"""Where a store stands on disk.

<store>/store.json                     layout version
<store>/objects/<stage>/<digest>/      files + manifest.json, read-only, written once
<store>/actions/<stage>/<key>.json     what was run -> the object
<store>/assets/<asset key>/<n>.json    an asset's history, append-only
<store>/leases/                        what running processes hold, see leases.py
<store>/pins/<name>.json               what is kept by name
<store>/verified/<stage>/<digest>.json which files were compared with their sha256, see verified.py
<store>/tmp/                           work in progress, renamed into place when complete
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from tokpack_core.errors import StoreError
from tokpack_core.store.files import create_exclusively, make_folder, replace_file, store_errors

LAYOUT = 1
MARKER = "store.json"
FOLDERS = ("tmp", "objects", "actions", "assets", "leases", "pins", "verified")


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
    def leases(self) -> Path:
        return self.root / "leases"

    @property
    def pins(self) -> Path:
        return self.root / "pins"

    @property
    def verified(self) -> Path:
        return self.root / "verified"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"


def open_store(root: Path, create: bool = False) -> Store:
    """Opens the store at `root`, making an empty one first if `create`.

    Raises:
        StoreError: there is no store, it has another layout, or it cannot be read or created.
    """
    root = Path(os.path.abspath(root))
    with store_errors(root, "open the store"):
        layout = read_layout(root)
    if layout is None:
        if not create:
            raise StoreError(f"{root}: no store here; run `tokpack build`, or name the store in TOKPACK_STORE")
        create_store(root)
        layout = LAYOUT
    if layout != LAYOUT:
        raise StoreError(f"{root}: this store has layout {layout}, not {LAYOUT}; use the tokpack version that made it")
    return Store(root)


def read_layout(root: Path) -> object:
    """The layout that the marker states; None without a marker, or with one that was reserved and never written."""
    try:
        content = (root / MARKER).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not content:
        return None
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        raise StoreError(f'{root / MARKER}: the file was altered; write {{"layout": {LAYOUT}}} into it')
    return document.get("layout")


def create_store(root: Path) -> None:
    """Makes an empty store, or completes one whose creation was cut short; two processes may do so at once."""
    with store_errors(root, "create the store"):
        if root.exists() and (not root.is_dir() or set(os.listdir(root)) - {*FOLDERS, MARKER}):
            raise StoreError(f"{root}: this folder holds other files; name an empty or new folder for the store")
        for folder in FOLDERS:
            make_folder(root / folder)
        content = orjson.dumps({"layout": LAYOUT})
        if not create_exclusively(root / MARKER, content, root / "tmp") and read_layout(root) is None:
            replace_file(root / MARKER, content, root / "tmp")
