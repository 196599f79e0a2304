"""Lineage: what an object was made from, up to the corpus files, and what was made from it.

The truth is in the actions: an action names its inputs as objects (`stage/digest`) or as the sha256 of a file of an
object. A file anywhere, also a copy outside the store, is found by its content.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokpack_core.errors import InputError
from tokpack_core.store import actions, history, objects
from tokpack_core.store.actions import Action
from tokpack_core.store.files import sha256_of
from tokpack_core.store.history import HistoryEntry
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store

DIGEST = re.compile(r"[0-9a-f]{64}")
SHORTEST_DIGEST = 6


@dataclass
class LineageGraph:
    """All objects of a store and how they hang together."""

    files: dict[str, list[ObjectRef]] = field(default_factory=lambda: defaultdict(list))
    """sha256 of a file to the objects that hold it."""
    made_by: dict[ObjectRef, list[Action]] = field(default_factory=lambda: defaultdict(list))
    versions: dict[ObjectRef, list[HistoryEntry]] = field(default_factory=lambda: defaultdict(list))
    upstream: dict[ObjectRef, list[ObjectRef]] = field(default_factory=dict)
    downstream: dict[ObjectRef, list[ObjectRef]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True)
class LineageNode:
    """An object in a printed chain; `branches` lead further in the direction that was asked for."""

    ref: ObjectRef
    versions: list[HistoryEntry]
    counts: dict[str, Any]
    branches: list[LineageNode]

    def to_json(self) -> dict[str, Any]:
        return {
            "object": str(self.ref),
            "versions": [{"asset": v.asset, "number": v.number, "when": v.when, "run": v.run} for v in self.versions],
            "branches": [branch.to_json() for branch in self.branches],
        }


def read_graph(store: Store) -> LineageGraph:
    """Reads every manifest, action and history entry once."""
    graph = LineageGraph()
    refs = list(objects.list_objects(store))
    for ref in refs:
        for file in objects.read_manifest(store, ref).files:
            graph.files[file.sha256].append(ref)
    for action, ref in actions.list_actions(store):
        graph.made_by[ref].append(action)
    for asset in history.list_assets(store):
        for entry in history.entries(store, asset):
            graph.versions[entry.object].append(entry)
    for ref in refs:
        named = [source for action in graph.made_by[ref] for source in named_objects(action.inputs, graph)]
        graph.upstream[ref] = [source for source in dict.fromkeys(named) if source != ref]
        for source in graph.upstream[ref]:
            graph.downstream[source].append(ref)
    return graph


def named_objects(value: Any, graph: LineageGraph) -> Iterator[ObjectRef]:
    """Every object that an action's inputs name, directly or by a file's sha256."""
    if isinstance(value, dict):
        for item in value.values():
            yield from named_objects(item, graph)
    elif isinstance(value, list):
        for item in value:
            yield from named_objects(item, graph)
    elif isinstance(value, str):
        stage, _, digest = value.rpartition("/")
        if stage and DIGEST.fullmatch(digest):
            yield ObjectRef(stage, digest)
        elif DIGEST.fullmatch(value):
            yield from graph.files.get(value, [])


def find_object(store: Store, graph: LineageGraph, name: str) -> ObjectRef:
    """The object meant by an asset key, a (shortened) digest, or the path of a file in or copied from the store.

    Raises:
        InputError: nothing of the store is meant, or more than one thing.
    """
    entry = history.latest(store, name) if name in history.list_assets(store) else None
    if entry:
        return entry.object
    path = Path(name)
    inside = object_at(store, path)
    if inside is not None and inside in graph.upstream:
        return inside
    if path.is_file():
        found = graph.files.get(sha256_of(path), [])
    else:
        prefix = name.rpartition("/")[2]
        found = [r for r in graph.upstream if len(prefix) >= SHORTEST_DIGEST and r.digest.startswith(prefix)]
    if len(found) == 1 or (found and path.is_file()):
        return found[0]
    if found:
        listed = ", ".join(map(str, found[:3]))
        raise InputError(f"{name}: means {len(found)} objects ({listed}, ...); name one of them")
    raise InputError(
        f"{name}: no asset, digest or file of {store.root} is called or contains this; "
        f"assets: {', '.join(history.list_assets(store))}"
    )


def object_at(store: Store, path: Path) -> ObjectRef | None:
    """The object whose folder contains `path`."""
    try:
        stage, digest, *_ = path.resolve().relative_to(store.objects.resolve()).parts
    except ValueError:
        return None
    return ObjectRef(stage, digest)


def chain(store: Store, graph: LineageGraph, ref: ObjectRef, up: bool = True) -> LineageNode:
    """The tree of what `ref` was made from, or of what was made from it; an object met again is not opened again."""
    return open_node(store, graph, ref, up, set())


def open_node(store: Store, graph: LineageGraph, ref: ObjectRef, up: bool, seen: set[ObjectRef]) -> LineageNode:
    branches: list[LineageNode] = []
    if ref not in seen:
        seen.add(ref)
        further = graph.upstream.get(ref, []) if up else graph.downstream.get(ref, [])
        branches = [open_node(store, graph, other, up, seen) for other in further]
    counts = objects.read_manifest(store, ref).counts if objects.exists(store, ref) else {}
    return LineageNode(ref, graph.versions.get(ref, []), counts, branches)
