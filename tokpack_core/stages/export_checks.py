"""Checks of megatron_dataset/<dataset>: Megatron can open what was written, and no token was lost on the way.

From indices, file sizes and counts; `tokpack verify` reads the tokens too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokpack_core.megatron.verify import examine
from tokpack_core.packing.truncation import PackingFigures
from tokpack_core.stages import export
from tokpack_core.stages import pack as pack_stage
from tokpack_core.stages.asset import Workplace, current
from tokpack_core.store import objects
from tokpack_core.verdict import Verdict

CHECKS = {"readable_by_megatron": True, "tokens_in_are_tokens_out": True}
FAULTS_SHOWN = 3


def verdicts(work: Workplace, dataset: str) -> list[Verdict]:
    ref, folder = current(work, export.asset_key(dataset))
    counts = objects.read_manifest(work.store, ref).counts
    plans, _ = current(work, pack_stage.asset_key(dataset))
    packed = PackingFigures.from_dict(objects.read_manifest(work.store, plans).counts["figures"])
    return [readable_verdict(folder, counts), tokens_verdict(counts, packed)]


def readable_verdict(folder: Path, counts: dict[str, Any]) -> Verdict:
    faults: list[str] = []
    for name in counts["packs"]:
        faults += examine(folder / name, sequence_length=counts["sequence_length"]).faults
        faults += examine(folder / f"{name}_docs").faults
    explanation = (
        f"{len(counts['packs'])} prefixes and their views by document: indices are in order, every pack has "
        f"{counts['sequence_length']} tokens, sizes agree"
    )
    if faults:
        explanation = f"{len(faults)} faults: {' '.join(faults[:FAULTS_SHOWN])}"
    return Verdict("readable_by_megatron", not faults, float(len(faults)), 0.0, explanation)


def tokens_verdict(counts: dict[str, Any], packed: PackingFigures) -> Verdict:
    positions = sum(counts["packs"].values()) * counts["sequence_length"]
    written = positions - sum(of["padding"] for of in counts["prefixes"].values())
    planned = packed.tokens - packed.tokens_dropped - packed.tokens_lost
    explanation = f"{written:,} tokens stand in packs, where {planned:,} were planned"
    if written != planned:
        explanation += "; build packed_sequences and megatron_dataset again, and report this as a fault of tokpack"
    difference = float(abs(written - planned))
    return Verdict("tokens_in_are_tokens_out", written == planned, difference, 0.0, explanation)
