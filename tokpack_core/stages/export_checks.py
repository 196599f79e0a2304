"""Checks of megatron_dataset/<dataset>: Megatron can open what was written, and no token was lost on the way.

From indices, file sizes and counts, and where megatron-core is installed it opens what a run has written; `tokpack
verify` reads the tokens too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokpack_core.megatron.core_reader import Expected, read_with_megatron_core
from tokpack_core.megatron.verify import examine
from tokpack_core.packing.truncation import PackingFigures
from tokpack_core.stages import export
from tokpack_core.stages import pack as pack_stage
from tokpack_core.stages.asset import Workplace, current
from tokpack_core.store import history, objects
from tokpack_core.verdict import Verdict

CHECKS = {"readable_by_megatron": True, "tokens_in_are_tokens_out": True}
FAULTS_SHOWN = 3
REMEDY = "Do not train on it: `tokpack verify` says whether files were altered; if none was, tokpack is at fault."


def verdicts(work: Workplace, dataset: str) -> list[Verdict]:
    ref, folder = current(work, export.asset_key(dataset))
    counts = objects.read_manifest(work.store, ref).counts
    plans, _ = current(work, pack_stage.asset_key(dataset))
    by_split = objects.read_manifest(work.store, plans).counts["by_split"]
    planned = {place: PackingFigures.from_dict(figures) for place, figures in by_split.items()}
    written_now = history.require_latest(work.store, export.asset_key(dataset)).run == work.run
    return [readable_verdict(folder, counts, written_now), tokens_verdict(counts, planned)]


def readable_verdict(folder: Path, counts: dict[str, Any], written_now: bool) -> Verdict:
    """Files of an earlier run, which never change, are not opened with megatron-core again."""
    faults: list[str] = []
    for name in counts["packs"]:
        faults += examine(folder / name, sequence_length=counts["sequence_length"]).faults
        faults += examine(folder / f"{name}_docs").faults
    explanation = (
        f"{len(counts['packs'])} prefixes and their views by document: indices are in order, every pack has "
        f"{counts['sequence_length']} tokens, sizes agree"
    )
    if not written_now:
        explanation += " (files of an earlier run: not opened with megatron-core again)"
    elif not faults:
        opened = read_with_megatron_core(expected_by_megatron(folder, counts))
        if opened is None:
            explanation += " (megatron-core is not installed here, so it did not open them)"
        else:
            version, faults = opened
            explanation += f"; megatron-core {version} opened each and read tokens of it"
    if faults:
        explanation = f"{len(faults)} faults: {' '.join(faults[:FAULTS_SHOWN])} {REMEDY}"
    return Verdict("readable_by_megatron", not faults, float(len(faults)), 0.0, explanation)


def expected_by_megatron(folder: Path, counts: dict[str, Any]) -> list[Expected]:
    length = counts["sequence_length"]
    expected = []
    for name, packs in counts["packs"].items():
        modes = "images" in counts["prefixes"][name]
        expected.append(Expected(str(folder / name), packs, packs * length, length))
        expected.append(Expected(str(folder / f"{name}_docs"), packs, packs * length, None, modes))
    return expected


def tokens_verdict(counts: dict[str, Any], planned: dict[str, PackingFigures]) -> Verdict:
    """Args: planned: figures of the plans by corpus and split."""
    length = counts["sequence_length"]
    prefixes = {f"{place}_{length}": figures for place, figures in planned.items()}
    asked = {name: of.tokens - of.tokens_dropped - of.tokens_lost for name, of in prefixes.items()}
    found = {name: packs * length - counts["prefixes"][name]["padding"] for name, packs in counts["packs"].items()}
    wrong = [name for name in sorted({*asked, *found}) if found.get(name, 0) != asked.get(name, 0)]
    written = sum(found.values())
    explanation = f"{written:,} tokens stand in packs, where {sum(asked.values()):,} were planned"
    if wrong:
        named = ", ".join(f"{name} ({found.get(name, 0):,}, not {asked.get(name, 0):,})" for name in wrong)
        explanation += (
            f". They differ in {named}: build packed_sequences and megatron_dataset again, and report this as a fault "
            "of tokpack"
        )
    difference = float(sum(abs(found.get(name, 0) - asked.get(name, 0)) for name in wrong))
    return Verdict("tokens_in_are_tokens_out", not wrong, difference, 0.0, explanation)
