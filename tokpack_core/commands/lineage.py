"""`tokpack lineage`: what something was made from, up to tokenizer and source files, and what was made from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.text import Text
from rich.tree import Tree

from tokpack_core.commands.known_object import known_object, path_meant
from tokpack_core.commands.lineage_steps import OWNERS, Step, own_units, steps_down, steps_up
from tokpack_core.commands.results import console, counted, print_json, shown
from tokpack_core.commands.run_lineage import run_to_json, run_tree
from tokpack_core.commands.run_manifest import manifest_of
from tokpack_core.commands.store_access import store_around
from tokpack_core.store.lineage import LineageGraph, chain
from tokpack_core.store.objects import ObjectRef

FILES_SHOWN = 5
SHORT = 12
KEY_PARAMETERS = ("family", "vocab_size", "strategy", "sequence_length", "unicode", "eod", "dtype")


def lineage_and_show(name: str, json: bool) -> None:
    """Raises InputError when `name` is nothing that a store, a copy or a manifest knows."""
    path = path_meant(name)
    run = manifest_of(path) if path.exists() and store_around(path) is None else None
    if run is not None:
        if json:
            print_json(run_to_json(run))
        else:
            console().print(run_tree(run))
        return
    known = known_object(name)
    if json:
        print_json(lineage_json(known.graph, known.ref))
    else:
        show_lineage(known.graph, known.ref)


def lineage_json(graph: LineageGraph, ref: ObjectRef) -> dict[str, Any]:
    down = steps_down(graph)
    return {
        "up": chain(graph, ref, lambda other: [step.ref for step in steps_up(graph, other)]).to_json(),
        "down": chain(graph, ref, lambda other: [step.ref for step in down.get(other, [])]).to_json(),
    }


def show_lineage(graph: LineageGraph, ref: ObjectRef) -> None:
    out = console()
    down = steps_down(graph)
    out.print("[bold]made from[/]")
    out.print(object_tree(graph, Step(ref, 0), lambda other: steps_up(graph, other), set()))
    out.print("\n[bold]used by[/]" if down.get(ref) else "\n[bold]used by[/] nothing yet")
    if down.get(ref):
        out.print(object_tree(graph, Step(ref, 0), lambda other: down.get(other, []), set(), files=False))


def object_tree(
    graph: LineageGraph,
    step: Step,
    further: Callable[[ObjectRef], list[Step]],
    seen: set[ObjectRef],
    files: bool = True,
) -> Tree:
    """An object and what `further` leads to; one that was shown before is not opened again."""
    ref = step.ref
    tree = Tree(label(graph, step, again=ref in seen))
    if ref in seen:
        return tree
    seen.add(ref)
    for fault in [graph.faults[ref]] if ref in graph.faults else []:
        tree.add(Text(fault, "red"))
    for other in further(ref):
        tree.children.append(object_tree(graph, other, further, seen, files))
    sources = graph.sources.get(ref, {})
    if sources and files:
        add_files(tree.add(Text(counted(len(sources), "file"))), sources)
    return tree


def add_files(tree: Tree, sources: dict[str, str]) -> None:
    for name, sha256 in list(sources.items())[:FILES_SHOWN]:
        tree.add(Text.assemble(name, "  ", (sha256[:SHORT], "dim")))
    if len(sources) > FILES_SHOWN:
        tree.add(Text(f"… and {len(sources) - FILES_SHOWN:,} more"))


def label(graph: LineageGraph, step: Step, again: bool) -> Text:
    ref = step.ref
    text = Text.assemble((object_name(graph, ref), "bold"), "  ", (ref.digest[:SHORT], "cyan"))
    if step.units:
        text.append(f"  {counted(step.units, 'unit')}", "green")
    if again:
        return text.append("  (above)", "dim")
    facts = key_parameters(graph, ref)
    if facts:
        text.append("  " + " · ".join(f"{name.replace('_', ' ')} {shown(value)}" for name, value in facts.items()))
    return text


def object_name(graph: LineageGraph, ref: ObjectRef) -> str:
    """Asset keys with version numbers, or the stage of what is no asset's own object."""
    numbers: dict[str, list[int]] = {}
    for version in graph.versions.get(ref, []):
        numbers.setdefault(version.asset, []).append(version.number)
    names = [f"{asset} {' '.join(f'#{number}' for number in found)}" for asset, found in numbers.items()]
    return ", ".join(names) or (f"{ref.stage} (a unit)" if ref.stage in OWNERS else ref.stage)


def key_parameters(graph: LineageGraph, ref: ObjectRef) -> dict[str, Any]:
    """The settings by which people tell objects apart, from the action, the counts or the first unit."""
    action = graph.action(ref)
    facts = graph.counts(ref) | (action.parameters if action else {})
    for unit in [*own_units(graph, ref)[:1], ref]:
        normalize = made.parameters.get("normalize") if (made := graph.action(unit)) else None
        facts |= {"unicode": normalize["unicode"]} if normalize else {}
    return {name: facts[name] for name in KEY_PARAMETERS if facts.get(name) is not None}
