"""`tokpack verify`: recomputes digests and structure of a prefix, a folder, an object or a whole store.

Faults are one sentence each, and so are notes, which are advice about what is sound. Of a whole store, every object is
checked, every record and history entry is read, and the newest version of each asset must be there.
"""

from __future__ import annotations

import filecmp
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.commands.inspect_prefix import without_ending
from tokpack_core.commands.progress import progress
from tokpack_core.commands.results import print_json, show_facts
from tokpack_core.commands.run_manifest import RunManifest, manifest_of
from tokpack_core.commands.store_access import INVENTORIES, graph_of, store_around, store_that_knows
from tokpack_core.errors import InputError, StoreError
from tokpack_core.megatron.indexed_dataset import bin_path, idx_path
from tokpack_core.megatron.verify import Findings, examine
from tokpack_core.megatron.verify_packs import ExpectedPacks
from tokpack_core.stages import export
from tokpack_core.store import actions, history, objects
from tokpack_core.store.copied_chain import PARTS, CopiedChain, chain_around, chain_faults
from tokpack_core.store.files import sha256_of
from tokpack_core.store.lineage import copied_object, find_object, object_at
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store, open_store


@dataclass(frozen=True)
class Checked:
    """How much was checked, what is wrong, and what is worth knowing."""

    counts: dict[str, int]
    faults: list[str]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Known:
    """What the user says of a prefix; it comes before what a manifest says."""

    vocab_size: int | None = None
    eod: int | None = None
    sequence_length: int | None = None


NOTHING = Known()


def verify_and_show(name: str, json: bool, known: Known = NOTHING) -> bool:
    """Whether all is sound; faults are printed.

    Raises:
        InputError: `name` means nothing that can be verified.
    """
    checked = verify_target(name, json, known)
    if json:
        findings = {"faults": checked.faults, "notes": checked.notes}
        print_json({"sound": not checked.faults, "checked": checked.counts, **findings})
    else:
        show_facts({"checked": checked.counts, "faults": len(checked.faults), "notes": len(checked.notes)})
    for note in checked.notes:
        print(f"note: {note}", file=sys.stderr)
    for fault in checked.faults:
        print(f"error: {fault}", file=sys.stderr)
    return not checked.faults


def verify_target(name: str, quiet: bool, known: Known = NOTHING) -> Checked:
    path = Path(name)
    prefix = without_ending(path)
    if known != NOTHING and not (idx_path(prefix).is_file() or bin_path(prefix).is_file()):
        raise InputError(f"{name} is no prefix: only of one can vocabulary, EOD and sequence length be given")
    if (path / "store.json").is_file():
        return verify_store(open_store(path), quiet)
    chain = chain_around(path)
    if chain is not None and known == NOTHING and (path.exists() or bin_path(prefix).is_file()):
        return verify_copy(chain)
    if idx_path(prefix).is_file() or bin_path(prefix).is_file():  # a cache of Megatron's is a folder of that name
        return verify_prefix(prefix, known)
    if path.is_dir():
        return verify_folder(path, quiet)
    if path.is_file():
        return verify_file(path)
    store = store_that_knows(name)
    return verify_objects(store, [find_object(store, graph_of(store), name)], quiet)


def verify_copy(chain: CopiedChain) -> Checked:
    """What `tokpack copy` wrote: both objects, that they are the ones of the lineage, and that it proves itself."""
    findings = Findings(list(chain_faults(chain, INVENTORIES)))
    for name in PARTS:
        folder = chain.folder / name
        if copied_object(folder) != chain.part(name):
            findings += Findings([f"{folder} is not {chain.part(name)}, which {chain.path} names; copy it again"])
        else:
            findings += copy_findings(folder)
    return Checked({"objects": len(PARTS), "actions": len(chain.content["actions"])}, findings.faults, findings.notes)


def verify_folder(path: Path, quiet: bool) -> Checked:
    """A store's object, a copy of one, or the folder that a command wrote."""
    store = store_around(path)
    ref = object_at(store, path) if store else None
    if store and ref:
        return verify_objects(store, [ref], quiet)
    if copied_object(path) is not None:
        findings = copy_findings(path)
        return Checked({"objects": 1}, findings.faults, findings.notes)
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


def verify_prefix(prefix: Path, known: Known = NOTHING) -> Checked:
    """Structure, and the digests that a manifest states for its files."""
    manifest = manifest_of(bin_path(prefix)) or manifest_of(idx_path(prefix))
    store = store_around(prefix)
    ref = object_at(store, prefix) if store else None
    if store and ref:
        return verify_objects(store, [ref], quiet=True)
    if manifest is None:
        findings = examine(prefix, **asdict(known))
        return Checked({"prefixes": 1}, findings.faults, findings.notes)
    counts, tokenizer = manifest.content["counts"], manifest.content["tokenizer"] or {}
    vocab_size = known.vocab_size or tokenizer.get("vocab_size")
    eod = counts.get("eod") if known.eod is None else known.eod
    length = known.sequence_length or counts.get("sequence_length")
    findings = Findings(list(output_faults(manifest)))
    if manifest.content["command"] != "pack":
        findings += examine(manifest.output, vocab_size=vocab_size, eod=eod, sequence_length=known.sequence_length)
    else:
        expected = ExpectedPacks(
            length,
            eod,
            counts.get("align", 1),
            counts.get("padding"),
            counts.get("foreign_labels"),
            tokenizer.get("special_tokens", {}).get("image"),
            counts.get("packed_images"),
            counts.get("packed_image_tokens"),
        )
        findings += packs_findings(manifest.output, vocab_size, expected)
    counted = {"prefixes": 1, "files": len(manifest.content["outputs"])}
    return Checked(counted, findings.faults, findings.notes)


def packs_findings(prefix: Path, vocab_size: int | None, expected: ExpectedPacks) -> Findings:
    """Of both views of packs, and that they are of the same bytes where the second is no link."""
    docs = prefix.with_name(f"{prefix.name}_docs")
    both = bin_path(prefix), bin_path(docs)
    differ = Findings()
    if all(path.is_file() for path in both) and not both[0].samefile(both[1]) and not filecmp.cmp(*both, shallow=False):
        differ = Findings([f"{both[1]} does not hold the bytes of {both[0]}: copy one over the other, or pack again"])
    as_packs = examine(prefix, vocab_size=vocab_size, sequence_length=expected.sequence_length)
    return differ + as_packs + examine(docs, packs=expected)


def output_faults(manifest: RunManifest) -> Iterator[str]:
    """Outputs of a command that are not what its manifest says."""
    for entry in manifest.content["outputs"]:
        path = manifest.path.parent / entry["path"]
        if not path.is_file():
            yield f"{path}: missing, though {manifest.path} names it"
        elif sha256_of(path) != entry["sha256"]:
            yield f"{path}: content differs from its sha256 in {manifest.path}"


def copy_findings(folder: Path) -> Findings:
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
    return Findings(faults) if faults else dataset_findings(folder, document["stage"], document["counts"])


def verify_objects(store: Store, refs: list[ObjectRef], quiet: bool) -> Checked:
    sizes = {ref: object_size(store, ref) for ref in refs}
    findings = Findings()
    with progress("verifying", sum(sizes.values()), "B", quiet) as on_done:
        done = 0
        for ref in refs:
            findings += object_findings(store, ref)
            done += sizes[ref]
            on_done(done)
    return Checked({"objects": len(refs), "bytes": sum(sizes.values())}, findings.faults, findings.notes)


def object_size(store: Store, ref: ObjectRef) -> int:
    try:
        return objects.read_manifest(store, ref).size
    except StoreError:
        return 0


def object_findings(store: Store, ref: ObjectRef) -> Findings:
    """Faults of the digests, else of the structure; both read the files at once, so the slower one sets the speed."""
    try:
        counts = objects.read_manifest(store, ref).counts
    except StoreError as error:
        return Findings([str(error)])
    with ThreadPoolExecutor(1) as pool:
        structure = pool.submit(dataset_findings, objects.folder_of(store, ref), ref.stage, counts)
        faults = objects.verify_object(store, ref)
        # What structure says of a file with a wrong digest is worth nothing, even if it is an exception.
        return Findings(faults) if faults else structure.result()


def dataset_findings(folder: Path, stage: str, counts: dict[str, Any]) -> Findings:
    """Structure of every prefix of a megatron_dataset."""
    findings = Findings()
    for name in sorted(counts["packs"]) if stage == export.STAGE else []:
        known = counts.get("prefixes", {}).get(name, {})
        expected = ExpectedPacks(
            counts["sequence_length"],
            counts["eod"],
            counts.get("align", 1),
            known.get("padding"),
            known.get("continued_pieces"),
            counts.get("image"),
            known.get("images"),
            known.get("image_tokens"),
        )
        findings += packs_findings(folder / name, counts["vocab_size"], expected)
    return findings


def verify_store(store: Store, quiet: bool) -> Checked:
    refs = list(objects.list_objects(store))
    checked = verify_objects(store, refs, quiet)
    known = set(refs)
    records = list(actions.list_records(store))
    numbers = {asset: history.numbers(store, asset) for asset in history.list_assets(store)}
    faults = checked.faults + [fault for path in records for fault in action_faults(path)]
    for asset, listed in numbers.items():
        for number in listed:
            faults += entry_faults(store, asset, number, known if number == max(listed) else None)
    counts = checked.counts | {"actions": len(records), "history_entries": sum(map(len, numbers.values()))}
    return Checked(counts, faults, checked.notes)


def action_faults(path: Path) -> Iterator[str]:
    """A record whose object is gone is no fault: garbage collection removes the object first, and nothing uses it."""
    try:
        action, _ = actions.load_record(path)
    except StoreError as error:
        yield str(error)
        return
    if (action.stage, action.key) != (path.parent.name, path.stem):
        yield f"{path}: the record was altered, its key is not its name; remove the file and build again"


def entry_faults(store: Store, asset: str, number: int, known: set[ObjectRef] | None) -> Iterator[str]:
    """Faults of a history entry; with `known`, the objects there are, also what the newest version must have.

    An older version may be gone: garbage collection keeps the entry and removes the object.
    """
    try:
        entry = history.read_entry(store, asset, number)
    except StoreError as error:
        yield str(error)
        return
    if entry is None or known is None:  # a number that was reserved and never used has no entry
        return
    if entry.object not in known:
        yield f"version {number} of {asset}: its object {entry.object} is not in the store; build {asset} again"
    if not actions.path_of(store, entry.object.stage, entry.action).is_file():
        yield f"version {number} of {asset}: its action {entry.action} is not in the store; build {asset} again"
