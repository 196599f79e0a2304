"""`tokpack verify`: recomputes digests and structure of a prefix, a folder, an object with its chain, or a whole store.

Faults are one sentence each, and so are notes, which are advice. A path means what is there; an asset key or a digest
means an object and all that it was made from, see verify_store.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.commands.inspect_prefix import without_ending
from tokpack_core.commands.results import print_json, show_facts
from tokpack_core.commands.run_manifest import RunManifest, manifest_of
from tokpack_core.commands.store_access import INVENTORIES, graph_of, store_around, store_that_knows
from tokpack_core.commands.verify_objects import Checked, dataset_findings, packs_findings, verify_objects
from tokpack_core.commands.verify_store import verify_chain, verify_store
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import bin_path, idx_path
from tokpack_core.megatron.verify import Findings, examine
from tokpack_core.megatron.verify_modes import ExpectedImages
from tokpack_core.megatron.verify_packs import ExpectedPacks
from tokpack_core.store import objects
from tokpack_core.store.copied_chain import PARTS, CopiedChain, chain_around, chain_faults
from tokpack_core.store.files import sha256_of
from tokpack_core.store.lineage import copied_object, find_object, object_at
from tokpack_core.store.store import open_store


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
        made = {str(ref): list(map(str, others)) for ref, others in checked.damaged.items()}
        damaged = {"made_from_damaged": made} if made else {}
        print_json({"sound": not checked.faults, "checked": checked.counts, **findings, **damaged})
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
    graph = graph_of(store)
    return verify_chain(store, graph, find_object(store, graph, name), quiet)


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
        images = expected_images(counts.get("vision"), tokenizer)
        length = known.sequence_length
        findings += examine(prefix, vocab_size=vocab_size, eod=eod, sequence_length=length, images=images)
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


def expected_images(vision: dict[str, Any] | None, tokenizer: dict[str, Any]) -> ExpectedImages | None:
    """None where the manifest knows of no placeholder."""
    placeholder = tokenizer.get("special_tokens", {}).get("image")
    if placeholder is None:
        return None
    return ExpectedImages(
        placeholder, **({"images": vision["images"], "tokens": vision["image_tokens"]} if vision else {})
    )


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
