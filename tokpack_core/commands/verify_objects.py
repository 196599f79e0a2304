"""Objects of a store verified: every digest again, and the structure of what Megatron reads."""

from __future__ import annotations

import filecmp
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokpack_core.commands.progress import progress
from tokpack_core.errors import StoreError
from tokpack_core.megatron.indexed_dataset import bin_path
from tokpack_core.megatron.verify import Findings, examine
from tokpack_core.megatron.verify_packs import ExpectedPacks
from tokpack_core.stages import export
from tokpack_core.store import objects
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store


@dataclass(frozen=True)
class Checked:
    """How much was checked, what is wrong, what is worth knowing, and damaged objects with what was made from them."""

    counts: dict[str, int]
    faults: list[str]
    notes: list[str] = field(default_factory=list)
    damaged: dict[ObjectRef, list[ObjectRef]] = field(default_factory=dict)


def verify_objects(store: Store, refs: Sequence[ObjectRef], quiet: bool) -> Checked:
    sizes = {ref: object_size(store, ref) for ref in refs}
    findings = Findings()
    damaged: dict[ObjectRef, list[ObjectRef]] = {}
    with progress("verifying", sum(sizes.values()), "B", quiet) as on_done:
        done = 0
        for ref in refs:
            found = object_findings(store, ref)
            findings += found
            damaged |= {ref: []} if found.faults else {}
            done += sizes[ref]
            on_done(done)
    return Checked({"objects": len(refs), "bytes": sum(sizes.values())}, findings.faults, findings.notes, damaged)


def object_size(store: Store, ref: ObjectRef) -> int:
    try:
        return objects.stated_manifest(store, ref).size
    except StoreError:
        return 0


def object_findings(store: Store, ref: ObjectRef) -> Findings:
    """Faults of the digests, else of the structure; both read the files at once, so the slower one sets the speed."""
    try:
        counts = objects.stated_manifest(store, ref).counts
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


def packs_findings(prefix: Path, vocab_size: int | None, expected: ExpectedPacks) -> Findings:
    """Of both views of packs, and that they are of the same bytes where the second is no link."""
    docs = prefix.with_name(f"{prefix.name}_docs")
    both = bin_path(prefix), bin_path(docs)
    differ = Findings()
    if all(path.is_file() for path in both) and not both[0].samefile(both[1]) and not filecmp.cmp(*both, shallow=False):
        differ = Findings([f"{both[1]} does not hold the bytes of {both[0]}: copy one over the other, or pack again"])
    as_packs = examine(prefix, vocab_size=vocab_size, sequence_length=expected.sequence_length)
    return differ + as_packs + examine(docs, packs=expected)
