"""`tokpack diff`: what changed between two versions of a dataset."""

from __future__ import annotations

from tokpack_core.commands.results import console, print_json
from tokpack_core.commands.store_access import graph_of, named_store
from tokpack_core.errors import InputError
from tokpack_core.stages.diff import DatasetDiff, diff_datasets
from tokpack_core.stages.trace import open_dataset
from tokpack_core.store import history
from tokpack_core.store.store import open_store


def diff_and_show(asset: str, old: int | None, new: int | None, json: bool) -> None:
    """Raises InputError when there are no two such versions."""
    store = open_store(named_store())
    entries = {entry.number: entry for entry in history.entries(store, asset)}
    newer = new if new is not None else max(entries, default=0)
    older = old if old is not None else max((number for number in entries if number < newer), default=0)
    for number in (older, newer):
        if number not in entries:
            numbers = ", ".join(map(str, entries)) or "none"
            raise InputError(f"{asset} has no version {number} to compare; its versions: {numbers}")
    graph = graph_of(store)
    found = diff_datasets(graph, *(open_dataset(store, graph, entries[number].object) for number in (older, newer)))
    if json:
        print_json(found.as_json())
    else:
        show(found, older, newer)


def show(found: DatasetDiff, older: int, newer: int) -> None:
    out = console()
    out.print(f"[bold]version {older}[/] {found.old.rpartition('/')[2][:12]}")
    out.print(f"[bold]version {newer}[/] {found.new.rpartition('/')[2][:12]}")
    names = [tokenizer.rpartition("/")[2][:12] for tokenizer in found.tokenizer]
    out.print(f"tokenizer  {names[0]}" + (f" -> {names[1]}" if found.tokenizer_changed else " (the same)"))
    out.print(f"packs  {found.packs[0]:,} -> {found.packs[1]:,}")
    for name, (before, after) in found.configuration.items():
        out.print(f"{name}  {before} -> {after}")
    for corpus, change in found.corpora.items():
        counts = (
            f"{name} {pair[0]:,} -> {pair[1]:,}"
            for name, pair in (("documents", change.documents), ("tokens", change.tokens))
        )
        out.print(f"[bold]{corpus}[/]  {', '.join(counts)}")
        for sign, files in (("+", change.files_added), ("-", change.files_removed), ("~", change.files_changed)):
            for file in files:
                out.print(f"  {sign} {file}", markup=False)
        out.print(
            f"  {change.documents_added:,} documents added, {change.documents_removed:,} removed, "
            f"{change.documents_retokenized:,} with another number of tokens"
        )
        for example in change.examples:
            out.print(f"    {example}", markup=False)
