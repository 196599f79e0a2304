"""The lineage of what stand-alone commands wrote: from manifest to manifest, by path and proven by sha256."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text
from rich.tree import Tree

from tokpack_core.commands.results import counted, shown
from tokpack_core.commands.run_manifest import RunManifest, manifest_of

FILES_SHOWN = 5
SHORT = 12
KEY_PARAMETERS = ("family", "vocab_size", "unicode", "append_eod", "strategy", "sequence_length", "eod", "seed")


def upstream_runs(run: RunManifest) -> list[RunManifest]:
    """The runs that wrote this run's tokenizer and inputs, while their outputs are what was read."""
    found: dict[Path, RunManifest] = {}
    tokenizer = run.content["tokenizer"]
    read = list(run.content["inputs"])
    if tokenizer and run.content["command"] in ("encode", "report"):
        folder = Path(tokenizer["path"])
        folder = folder if folder.is_dir() else folder.parent
        read += [{"path": str(folder / file["path"]), "sha256": file["sha256"]} for file in tokenizer["files"]]
    for file in read:
        before = manifest_of(Path(file["path"]))
        entry = before.output_file(Path(file["path"])) if before else None
        if before and entry and entry["sha256"] == file["sha256"]:
            found[before.path] = before
    return list(found.values())


def source_inputs(run: RunManifest, upstream: list[RunManifest]) -> list[dict[str, Any]]:
    """Inputs that no run before wrote."""
    made = {entry["sha256"] for before in upstream for entry in before.content["outputs"]}
    return [file for file in run.content["inputs"] if file["sha256"] not in made]


def run_to_json(run: RunManifest) -> dict[str, Any]:
    upstream = upstream_runs(run)
    return {
        "output": str(run.output),
        "command": run.content["command"],
        "tokpack": run.content["tokpack"],
        "parameters": run.content["parameters"],
        "tokenizer": run.content["tokenizer"],
        "files": source_inputs(run, upstream),
        "branches": [run_to_json(before) for before in upstream],
    }


def run_tree(run: RunManifest, seen: set[Path] | None = None) -> Tree:
    """A run, the runs before it, a tokenizer from elsewhere, and the files that no run wrote."""
    seen = set() if seen is None else seen
    tree = Tree(run_label(run, again=run.path in seen))
    if run.path in seen:
        return tree
    seen.add(run.path)
    upstream = upstream_runs(run)
    tree.children += [run_tree(before, seen) for before in upstream]
    tokenizer = run.content["tokenizer"]
    if tokenizer and run.content["command"] in ("encode", "report") and not trained_here(upstream):
        tree.add(tokenizer_label(tokenizer))
    sources = source_inputs(run, upstream)
    if sources:
        files = tree.add(Text(counted(len(sources), "file")))
        for file in sources[:FILES_SHOWN]:
            files.add(Text.assemble(file["path"], "  ", (file["sha256"][:SHORT], "dim")))
        if len(sources) > FILES_SHOWN:
            files.add(Text(f"… and {len(sources) - FILES_SHOWN:,} more"))
    return tree


def trained_here(upstream: list[RunManifest]) -> bool:
    return any(before.content["command"] == "train" for before in upstream)


def run_label(run: RunManifest, again: bool) -> Text:
    content = run.content
    first = min(content["outputs"], key=lambda entry: str(entry["path"]))
    text = Text.assemble((str(run.output), "bold"), "  ", (first["sha256"][:SHORT], "cyan"), f"  {content['command']}")
    if again:
        return text.append("  (above)", "dim")
    facts = {name: content["parameters"].get(name) for name in KEY_PARAMETERS}
    told = [f"{name.replace('_', ' ')} {shown(value)}" for name, value in facts.items() if value is not None]
    return text.append("  " + " · ".join([*told, f"tokpack {content['tokpack']}"]))


def tokenizer_label(tokenizer: dict[str, Any]) -> Text:
    digest = (tokenizer["digest"][:SHORT], "cyan")
    facts = f"  {tokenizer['family']} · vocab size {tokenizer['vocab_size']:,}"
    return Text.assemble((f"tokenizer {tokenizer['path']}", "bold"), "  ", digest, facts)
