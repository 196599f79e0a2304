"""Which store a command means, how its objects hang together, and where one of them is (`tokpack path`)."""

from __future__ import annotations

import os
from pathlib import Path

from tokpack_core.commands.results import print_json
from tokpack_core.errors import InputError
from tokpack_core.stages import corpus as corpus_stage
from tokpack_core.stages import normalize as normalize_stage
from tokpack_core.store import history, objects
from tokpack_core.store.lineage import InventoryStage, LineageGraph, find_object, read_graph
from tokpack_core.store.store import Store, open_store


def named_store() -> Path:
    return Path(os.environ.get("TOKPACK_STORE") or "store")


def store_that_knows(name: str) -> Store:
    """The store that the environment names, in which `name` is looked up.

    Raises:
        InputError: there is none.
    """
    store = named_store()
    if not (store / "store.json").is_file():
        what = "no manifest of a command says what it is" if Path(name).exists() else "there is no such file"
        raise InputError(f"{name}: {what}, and {store.absolute()} is no store; name the store in TOKPACK_STORE")
    return open_store(store)


def store_around(path: Path) -> Store | None:
    """The store that contains `path`, whether or not it is the one that the environment names."""
    for folder in path.resolve().parents:
        if (folder / "store.json").is_file() and (folder / "objects").is_dir():
            return open_store(folder)
    return None


def inventory_files(folder: Path) -> dict[str, str]:
    """sha256 by name of the source files of a corpus."""
    return {file.name: file.sha256 for file in corpus_stage.read_inventory(folder)}


INVENTORIES = InventoryStage(corpus_stage.STAGE, inventory_files, normalize_stage.STAGE)


def graph_of(store: Store) -> LineageGraph:
    """The lineage of a store, corpora linked by the files that their inventories list."""
    return read_graph(store, INVENTORIES)


def show_folder(name: str, json: bool) -> None:
    """Raises InputError when the store has no such object, StoreError when the object is damaged."""
    store = store_that_knows(name)
    newest = history.latest(store, name) if name in history.list_assets(store) else None
    ref = newest.object if newest else find_object(store, graph_of(store), name)
    folder = objects.require_object(store, ref)
    if json:
        print_json({"object": str(ref), "folder": str(folder)})
    else:
        print(folder)
