"""corpus/<corpus>: the inventory of source files, by name, size and sha256; no copy of the data.

The action names every file's size, times and inode, so an unchanged folder costs one stat a file, and only
files that differ from the newest inventory are hashed again. The object holds content alone (`inventory.parquet`:
name, size, sha256, sorted by name), so touching a file changes nothing downstream.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tokpack_core.corpus.files import SourceFile, find_files
from tokpack_core.corpus.remote import remote_sha256
from tokpack_core.errors import InputError
from tokpack_core.stages.asset import Built, Workplace, finish
from tokpack_core.stages.unit import Unit
from tokpack_core.store import actions, history, objects
from tokpack_core.store.actions import Action, json_digest, library_versions
from tokpack_core.store.files import sha256_of

STAGE = "corpus"
VERSION = 1
SCHEMA = pa.schema({"name": pa.string(), "size": pa.int64(), "sha256": pa.string()})


@dataclass(frozen=True)
class InventoryFile:
    name: str
    size: int
    sha256: str


def asset_key(corpus: str) -> str:
    return f"corpus/{corpus}"


def source_key(corpus: str) -> str:
    """The external asset that stands for a corpus's files."""
    return f"source/{corpus}"


def source_files(work: Workplace, corpus: str) -> list[SourceFile]:
    """The files that the configuration names now, sorted by name.

    Raises:
        InputError: a path matches nothing, cannot be read, or takes in the store.
    """
    try:
        files = find_files(work.project.corpora[corpus].paths, work.project.base)
    except InputError as error:
        raise InputError(f"corpus {corpus}: {error}") from error
    for file in files:
        if file.version is None and Path(os.path.abspath(file.path)).is_relative_to(work.store.root):
            raise InputError(
                f"corpus {corpus}: its paths take in {file.path}, a file of the store; name only folders of source text"
            )
    return files


def fingerprint(files: list[SourceFile]) -> dict[str, str]:
    """By name of each file, what a stat or a listing tells without reading."""
    return {file.name: file.fingerprint for file in files}


def source_version(files: list[SourceFile]) -> str:
    """The data version of the external asset: changes when a stat of its files does."""
    return json_digest(fingerprint(files))


def build(work: Workplace, corpus: str) -> Built:
    files = source_files(work, corpus)
    work.read[source_key(corpus)] = source_version(files)
    action = Action(STAGE, VERSION, inputs={"files": fingerprint(files)}, libraries=library_versions("pyarrow"))
    known = known_digests(work, corpus, action.inputs["files"])
    unit = Unit(action, partial(write_inventory, files, known, work.engine.workers))
    return finish(work, asset_key(corpus), unit)


def known_digests(work: Workplace, corpus: str, stats: dict[str, str]) -> dict[str, str]:
    """sha256 by name of the files whose stat is the same as in the newest inventory."""
    entry = history.latest(work.store, asset_key(corpus))
    if entry is None or not objects.exists(work.store, entry.object):
        return {}
    before = actions.read_action(work.store, STAGE, entry.action).inputs["files"]
    inventory = read_inventory(objects.folder_of(work.store, entry.object))
    return {file.name: file.sha256 for file in inventory if before.get(file.name) == stats.get(file.name, "")}


def write_inventory(files: list[SourceFile], known: dict[str, str], threads: int, folder: Path) -> dict[str, Any]:
    to_hash = [file for file in files if file.name not in known]
    with ThreadPoolExecutor(threads) as pool:
        hashed = dict(zip((file.name for file in to_hash), pool.map(hash_unchanged, to_hash), strict=True))
    digests = known | hashed
    table = pa.table(
        [[f.name for f in files], [f.size for f in files], [digests[f.name] for f in files]], schema=SCHEMA
    )
    pq.write_table(table, folder / "inventory.parquet", compression="zstd")
    return {"files": len(files), "bytes": sum(file.size for file in files)}


def hash_unchanged(file: SourceFile) -> str:
    """sha256 of a source file.

    Raises:
        InputError: it changed while it was read.
    """
    if file.version is not None:
        return remote_sha256(file.name)
    with file.opened() as path:
        return sha256_of(path)


def read_inventory(folder: Path) -> list[InventoryFile]:
    table = pq.ParquetFile(folder / "inventory.parquet").read()
    return [InventoryFile(**row) for row in table.to_pylist()]
