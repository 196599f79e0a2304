"""`tokpack verify`: recomputes digests and structure of a prefix, a folder, an object or a whole store.

Faults are one sentence each. Of a whole store, every object is checked, and that every action and every entry of a
history names an object that is there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.commands.inspect_prefix import without_ending
from tokpack_core.commands.progress import progress
from tokpack_core.commands.results import print_json, show_facts
from tokpack_core.commands.run_manifest import RunManifest, manifest_of
from tokpack_core.commands.store_access import graph_of, store_around, store_that_knows
from tokpack_core.errors import InputError, StoreError
from tokpack_core.megatron.indexed_dataset import bin_path, idx_path
from tokpack_core.megatron.verify import verify
from tokpack_core.stages import export
from tokpack_core.store import actions, history, objects
from tokpack_core.store.files import sha256_of
from tokpack_core.store.lineage import copied_object, find_object, object_at
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store, open_store


@dataclass(frozen=True)
class Checked:
    """How much was checked, and what is wrong."""

    counts: dict[str, int]
    faults: list[str]


def verify_and_show(name: str, json: bool) -> bool:
    """Whether all is sound; faults are printed.

    Raises:
        InputError: `name` means nothing that can be verified.
    """
    checked = verify_target(name, json)
    if json:
        print_json({"sound": not checked.faults, "checked": checked.counts, "faults": checked.faults})
    else:
        show_facts({"checked": checked.counts, "faults": len(checked.faults)})
    for fault in checked.faults:
        print(f"error: {fault}", file=sys.stderr)
    return not checked.faults


def verify_target(name: str, quiet: bool) -> Checked:
    path = Path(name)
    prefix = without_ending(path)
    if (path / "store.json").is_file():
        return verify_store(open_store(path), quiet)
    if path.is_dir():
        return verify_folder(path, quiet)
    if idx_path(prefix).is_file() or bin_path(prefix).is_file():
        return verify_prefix(prefix)
    if path.is_file():
        return verify_file(path)
    store = store_that_knows(name)
    return verify_objects(store, [find_object(store, graph_of(store), name)], quiet)


def verify_folder(path: Path, quiet: bool) -> Checked:
    """A store's object, a copy of one, or the folder that a command wrote."""
    store = store_around(path)
    ref = object_at(store, path) if store else None
    if store and ref:
        return verify_objects(store, [ref], quiet)
    if copied_object(path) is not None:
        return Checked({"objects": 1}, copy_faults(path))
    manifest = manifest_of(path)
    if manifest is not None:
        return Checked({"files": len(manifest.content["outputs"])}, list(output_faults(manifest)))
    raise InputError(
        f"{path} is no store, no object of one, and no folder that tokpack wrote with a manifest beside it"
    )


def verify_file(path: Path) -> Checked:
    store = store_around(path)
    ref = object_at(store, path) if store else None
    if store and ref:
        return verify_objects(store, [ref], quiet=True)
    manifest = manifest_of(path)
    if manifest is None:
        raise InputError(f"{path} is neither of a store nor beside a manifest: nothing says what it should be")
    return Checked({"files": len(manifest.content["outputs"])}, list(output_faults(manifest)))


def verify_prefix(prefix: Path) -> Checked:
    """Structure, and the digests that a manifest states for its files."""
    manifest = manifest_of(bin_path(prefix)) or manifest_of(idx_path(prefix))
    store = store_around(prefix)
    ref = object_at(store, prefix) if store else None
    if store and ref:
        return verify_objects(store, [ref], quiet=True)
    if manifest is None:
        return Checked({"prefixes": 1}, verify(prefix))
    counts, tokenizer = manifest.content["counts"], manifest.content["tokenizer"] or {}
    length = counts.get("sequence_length")
    faults = list(output_faults(manifest))
    faults += verify(manifest.output, vocab_size=tokenizer.get("vocab_size"), sequence_length=length)
    if length is not None:
        docs = manifest.output.with_name(f"{manifest.output.name}_docs")
        faults += verify(docs, vocab_size=tokenizer.get("vocab_size"))
    return Checked({"prefixes": 1, "files": len(manifest.content["outputs"])}, faults)


def output_faults(manifest: RunManifest) -> Iterator[str]:
    """Outputs of a command that are not what its manifest says."""
    for entry in manifest.content["outputs"]:
        path = manifest.path.parent / entry["path"]
        if not path.is_file():
            yield f"{path}: missing, though {manifest.path} names it"
        elif sha256_of(path) != entry["sha256"]:
            yield f"{path}: content differs from its sha256 in {manifest.path}"


def copy_faults(folder: Path) -> list[str]:
    """Faults of an object's folder that was copied out of its store."""
    document = orjson.loads((folder / objects.MANIFEST).read_bytes())
    stated = {entry["path"]: entry["sha256"] for entry in document["files"]}
    files = objects.list_files(folder)
    found = {file.path: file.sha256 for file in files}
    faults = [f"{folder / path}: missing" for path in sorted(stated.keys() - found.keys())]
    faults += [f"{folder / path}: not part of the object" for path in sorted(found.keys() - stated.keys())]
    faults += [
        f"{folder / path}: content differs from its sha256"
        for path in sorted(stated.keys() & found.keys())
        if stated[path] != found[path]
    ]
    if not faults and objects.digest_of(files) != document["digest"]:
        faults.append(f"{folder}: the digest of its files is not the one that its manifest states")
    return faults or dataset_faults(folder, document["stage"], document["counts"])


def verify_objects(store: Store, refs: list[ObjectRef], quiet: bool) -> Checked:
    sizes = {ref: object_size(store, ref) for ref in refs}
    faults: list[str] = []
    with progress("verifying", sum(sizes.values()), "B", quiet) as on_done:
        done = 0
        for ref in refs:
            faults += object_faults(store, ref)
            done += sizes[ref]
            on_done(done)
    return Checked({"objects": len(refs), "bytes": sum(sizes.values())}, faults)


def object_size(store: Store, ref: ObjectRef) -> int:
    try:
        return objects.read_manifest(store, ref).size
    except StoreError:
        return 0


def object_faults(store: Store, ref: ObjectRef) -> list[str]:
    faults = objects.verify_object(store, ref)
    if faults:
        return faults
    return dataset_faults(objects.folder_of(store, ref), ref.stage, objects.read_manifest(store, ref).counts)


def dataset_faults(folder: Path, stage: str, counts: dict[str, Any]) -> list[str]:
    """Structure of every prefix of a megatron_dataset."""
    faults = []
    for name in sorted(counts["packs"]) if stage == export.STAGE else []:
        prefix = folder / name
        sizes = {"vocab_size": counts["vocab_size"]}
        faults += verify(prefix, sequence_length=counts["sequence_length"], **sizes)
        faults += verify(prefix.with_name(f"{prefix.name}_docs"), **sizes)
    return faults


def verify_store(store: Store, quiet: bool) -> Checked:
    refs = list(objects.list_objects(store))
    checked = verify_objects(store, refs, quiet)
    known = set(refs)
    records = list(actions.list_records(store))
    entries = [(asset, number) for asset in history.list_assets(store) for number in history.numbers(store, asset)]
    faults = checked.faults + [fault for path in records for fault in action_faults(path, known)]
    faults += [fault for asset, number in entries for fault in entry_faults(store, asset, number, known)]
    return Checked(checked.counts | {"actions": len(records), "history_entries": len(entries)}, faults)


def action_faults(path: Path, known: set[ObjectRef]) -> Iterator[str]:
    try:
        action, ref = actions.load_record(path)
    except StoreError as error:
        yield str(error)
        return
    if (action.stage, action.key) != (path.parent.name, path.stem):
        yield f"{path}: the record was altered, its key is not its name; remove the file and build again"
    elif ref not in known:
        yield f"{path}: its object {ref} is not in the store; build again"


def entry_faults(store: Store, asset: str, number: int, known: set[ObjectRef]) -> Iterator[str]:
    try:
        entry = history.read_entry(store, asset, number)
    except StoreError as error:
        yield str(error)
        return
    if entry is None:  # a number that was reserved and never used
        return
    if entry.object not in known:
        yield f"version {number} of {asset}: its object {entry.object} is not in the store; build {asset} again"
    if not actions.path_of(store, entry.object.stage, entry.action).is_file():
        yield f"version {number} of {asset}: its action {entry.action} is not in the store; build {asset} again"
