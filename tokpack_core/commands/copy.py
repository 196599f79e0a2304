"""`tokpack copy DATASET DEST`: a dataset, its tokenizer and its lineage, to a folder or any URL that fsspec takes.

DEST/dataset/        the object's files and manifest, as in the store
DEST/tokenizer/      likewise, the tokenizer that encoded it
DEST/lineage.json    see `store/copied_chain.py`; written last
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.commands.lineage_steps import all_upstream
from tokpack_core.commands.progress import progress
from tokpack_core.commands.results import print_json, show_facts
from tokpack_core.commands.store_access import INVENTORIES, graph_of, store_that_knows
from tokpack_core.errors import InputError
from tokpack_core.stages import export
from tokpack_core.store import copied_chain, leases, objects
from tokpack_core.store.copy import (
    PARTIAL,
    FileToCopy,
    Target,
    bytes_to_copy,
    copy_file,
    is_equal,
    list_target,
    open_target,
)
from tokpack_core.store.lineage import LineageGraph, find_object
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store


def copy_and_show(name: str, destination: str, json: bool) -> None:
    """Copies what is not there yet; every file at the destination was read and compared in the end.

    Raises:
        InputError: `name` is no dataset, or the destination holds other content.
        StoreError: the dataset is damaged, or the destination cannot be written.
    """
    store = store_that_knows(name)
    graph = graph_of(store)
    dataset = find_object(store, graph, name)
    tokenizer = tokenizer_of(graph, dataset, name)
    target = open_target(destination)
    if target.local:
        require_outside(Path(target.root).resolve(), store)
    with held(store, [dataset, tokenizer]):
        files = [*object_files(store, dataset, "dataset"), *object_files(store, tokenizer, "tokenizer")]
        chain = copied_chain.describe_chain(
            graph, all_upstream(graph, dataset), dataset, tokenizer, target.local, INVENTORIES
        )
        files.append(bytes_to_copy(copied_chain.NAME, orjson.dumps(chain, option=orjson.OPT_INDENT_2)))
        missing = missing_files(target, files)
        copy_files(target, missing, json)
    facts = {
        "dataset": str(dataset),
        "destination": destination,
        "files_written": len(missing),
        "files_kept": len(files) - len(missing),
        "bytes": sum(file.size for file in files),
    }
    if json:
        print_json(facts)
    else:
        show_facts(facts)


def require_outside(folder: Path, store: Store) -> None:
    """Raises InputError when the folder is part of the store or of another copy, which it would spoil."""
    if folder.is_relative_to(store.root.resolve()):
        raise InputError(f"{folder} is inside the store {store.root}; name a folder elsewhere")
    around = copied_chain.chain_around(folder.parent)
    if around is not None:
        raise InputError(f"{folder} is inside the copy {around.folder}; name a folder elsewhere")


def tokenizer_of(graph: LineageGraph, dataset: ObjectRef, name: str) -> ObjectRef:
    action = graph.action(dataset)
    if dataset.stage != export.STAGE or action is None:
        raise InputError(f"{name}: only datasets are copied; name one, like {export.STAGE}/base_4k")
    return ObjectRef.parse(action.inputs["tokenizer"])


def held(store: Store, refs: list[ObjectRef]) -> AbstractContextManager[Any]:
    """Keeps the objects from garbage collection; a store that cannot be written is read as it is."""
    return leases.hold(store, refs, "copy") if os.access(store.leases, os.W_OK) else nullcontext()


def object_files(store: Store, ref: ObjectRef, under: str) -> list[FileToCopy]:
    """An object's files below the folder `under`, its manifest last."""
    manifest = objects.read_manifest(store, ref)
    folder = objects.folder_of(store, ref)
    files = [
        FileToCopy(
            f"{under}/{file.path}",
            folder / file.path,
            file.size,
            file.sha256,
            file.same_as and f"{under}/{file.same_as}",
        )
        for file in manifest.files
    ]
    return [*files, bytes_to_copy(f"{under}/{objects.MANIFEST}", (folder / objects.MANIFEST).read_bytes())]


def missing_files(target: Target, files: list[FileToCopy]) -> list[FileToCopy]:
    """What is not at the target; all that is there is read and compared before anything is written.

    Raises:
        InputError: other content is there.
    """
    there = {path: size for path, size in list_target(target).items() if not path.endswith(PARTIAL)}
    # A lineage.json grows with what the store learns; the one that was copied first stays, it is as true as ever.
    expected = {file.path: file for file in files}
    for path, size in there.items():
        ours = path == "" or path.partition("/")[0] in copied_chain.PARTS
        if path == copied_chain.NAME or not (path in expected or ours):
            continue
        if path not in expected or not is_equal(target, expected[path], size):
            raise InputError(
                f"{target.shown(path)} is there and is not of this dataset; name a new folder, or remove it"
            )
    return [file for file in files if file.path not in there]


def copy_files(target: Target, files: list[FileToCopy], quiet: bool) -> None:
    done = 0
    with progress("copying", sum(file.size for file in files), "B", quiet) as on_done:
        for file in files:
            copy_file(target, file)
            done += file.size
            on_done(done)
