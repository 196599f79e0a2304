"""Lineage: what an object was made from, up to the corpus files, and what was made from it.

The truth is in the actions: an action names its inputs as objects (`stage/digest`) or as the sha256 of a file of an
object. A file anywhere, also a copy outside the store, is found by its content. What an action names by sha256 under
`files` and no object holds is a source file. An inventory holds no source file but lists them: it is upstream of the
object whose parts were made from exactly the files that it lists.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.errors import InputError, StoreError
from tokpack_core.store import actions, history, objects
from tokpack_core.store.actions import Action
from tokpack_core.store.files import sha256_of
from tokpack_core.store.history import HistoryEntry
from tokpack_core.store.objects import Manifest, ObjectRef
from tokpack_core.store.store import Store

DIGEST = re.compile(r"[0-9a-f]{64}")
SHORTEST_DIGEST = 6


@dataclass(frozen=True)
class InventoryStage:
    """A stage whose objects list source files and hold none.

    Attributes:
        read: from the folder of an object to the files that it lists, name to sha256.
        reader: the stage whose objects are each made, in parts, from exactly the files of one inventory.
    """

    stage: str
    read: Callable[[Path], dict[str, str]]
    reader: str


@dataclass
class LineageGraph:
    """All objects of a store and how they hang together."""

    manifests: dict[ObjectRef, Manifest] = field(default_factory=dict)
    faults: dict[ObjectRef, str] = field(default_factory=dict)
    """Objects that are damaged or gone, and why; of a damaged one, the manifest may stand."""
    files: dict[str, list[ObjectRef]] = field(default_factory=lambda: defaultdict(list))
    """sha256 of a file to the objects that hold it."""
    sources: dict[ObjectRef, dict[str, str]] = field(default_factory=dict)
    """Source files that an object was made from or lists: name to sha256."""
    made_by: dict[ObjectRef, dict[str, Action]] = field(default_factory=lambda: defaultdict(dict))
    """Actions that gave an object, by key."""
    versions: dict[ObjectRef, list[HistoryEntry]] = field(default_factory=lambda: defaultdict(list))
    upstream: dict[ObjectRef, list[ObjectRef]] = field(default_factory=dict)
    downstream: dict[ObjectRef, list[ObjectRef]] = field(default_factory=lambda: defaultdict(list))

    def action(self, ref: ObjectRef) -> Action | None:
        """The action behind the newest version, else any that gave the object."""
        made_by = self.made_by.get(ref, {})
        for entry in reversed(self.versions.get(ref, [])):
            if entry.action in made_by:
                return made_by[entry.action]
        return next(iter(made_by.values()), None)

    def action_with(self, ref: ObjectRef, name: str, value: str) -> Action | None:
        """Of the actions that gave the object, one with this input; inputs that differ may give the same content."""
        made_by = self.made_by.get(ref, {}).values()
        return next((action for action in made_by if action.inputs.get(name) == value), None)

    def counts(self, ref: ObjectRef) -> dict[str, Any]:
        return self.manifests[ref].counts if ref in self.manifests else {}


@dataclass(frozen=True)
class LineageNode:
    """An object in a printed chain; `branches` lead further."""

    ref: ObjectRef
    versions: list[HistoryEntry]
    action: Action | None
    counts: dict[str, Any]
    sources: dict[str, str]
    fault: str | None
    branches: list[LineageNode]

    def to_json(self) -> dict[str, Any]:
        return {
            "object": str(self.ref),
            "versions": [{"asset": v.asset, "number": v.number, "when": v.when, "run": v.run} for v in self.versions],
            "parameters": self.action.parameters if self.action else None,
            "code_version": self.action.code_version if self.action else None,
            "libraries": self.action.libraries if self.action else None,
            "files": self.sources,
            "fault": self.fault,
            "branches": [branch.to_json() for branch in self.branches],
        }


def read_graph(store: Store, inventory: InventoryStage | None = None) -> LineageGraph:
    """Reads every manifest, action and history entry once; a damaged object is noted and stops nothing.

    Raises:
        StoreError: the entry of a history was altered.
    """
    graph = LineageGraph()
    for ref in objects.list_objects(store):
        try:
            manifest = graph.manifests[ref] = objects.stated_manifest(store, ref)
            for file in manifest.files:
                graph.files[file.sha256].append(ref)
            objects.require_unaltered(store, manifest, manifest.files, unknown_too=False)
        except StoreError as error:
            graph.faults[ref] = str(error)
    for action, ref in actions.list_actions(store):
        graph.made_by[ref][action.key] = action
    for asset in history.list_assets(store):
        for entry in history.entries(store, asset):
            graph.versions[entry.object].append(entry)
    link(graph)
    if inventory is not None:
        link_inventories(store, graph, inventory)
    link_downstream(graph)
    return graph


def link(graph: LineageGraph) -> None:
    """Upstream objects and source files of every object, from the actions that gave it."""
    for ref in [*graph.manifests, *graph.faults, *(ref for ref in graph.made_by if ref not in graph.manifests)]:
        found = [source for action in graph.made_by[ref].values() for source in named_objects(action.inputs, graph)]
        graph.upstream[ref] = [source for source in dict.fromkeys(found) if source != ref]
        files = {n: s for action in graph.made_by[ref].values() for n, s in source_files(action, graph)}
        graph.sources[ref] = files
        if ref not in graph.manifests:
            graph.faults.setdefault(ref, f"the object {ref} is not in this store")


def link_downstream(graph: LineageGraph) -> None:
    for ref, upstream in graph.upstream.items():
        for source in upstream:
            graph.downstream[source].append(ref)


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


def source_files(action: Action, graph: LineageGraph) -> Iterator[tuple[str, str]]:
    files = action.inputs.get("files")
    for name, sha256 in files.items() if isinstance(files, dict) else ():
        if DIGEST.fullmatch(sha256) and sha256 not in graph.files:
            yield name, sha256


def link_inventories(store: Store, graph: LineageGraph, inventory: InventoryStage) -> None:
    """Puts each inventory upstream of what was made from exactly the files that it lists."""
    listed: dict[bytes, ObjectRef] = {}
    for ref in graph.manifests:
        if ref.stage == inventory.stage and ref not in graph.faults:
            graph.sources[ref] = inventory.read(objects.folder_of(store, ref))
            listed[file_set(graph.sources[ref])] = ref
    for ref, upstream in graph.upstream.items():
        if ref.stage == inventory.reader:
            files = {name: sha256 for part in upstream for name, sha256 in graph.sources.get(part, {}).items()}
            if found := listed.get(file_set(files)):
                upstream.insert(0, found)


def file_set(files: dict[str, str]) -> bytes:
    return orjson.dumps(files, option=orjson.OPT_SORT_KEYS)


def find_object(store: Store, graph: LineageGraph, name: str) -> ObjectRef:
    """The object meant by an asset key, a (shortened) digest, the path of a file in or copied from the store, or the
    name of a source file that is no longer there or is behind a URL.

    Raises:
        InputError: nothing of the store is meant, or more than one thing.
    """
    assets = history.list_assets(store)
    if name in assets:
        return history.require_latest(store, name).object
    path = Path(name)
    inside = object_at(store, path)
    if inside is not None and inside in graph.upstream:
        return inside
    copied = copied_object(path)
    if copied is not None and copied in graph.upstream:
        return copied
    if path.is_file():
        found = objects_with_file(graph, sha256_of(path))
    else:
        found = [ref for ref in graph.upstream if is_meant(ref, name)]
    if len(found) == 1 or (found and path.is_file()):
        return found[0]
    if not found and (listing := newest_first(graph, [ref for ref, files in graph.sources.items() if name in files])):
        return listing[0]
    if found:
        listed = ", ".join(map(str, found[:3]))
        raise InputError(f"{name}: means {len(found)} objects ({listed}, ...); name one of them")
    removed = [(ref, entries) for ref, entries in graph.versions.items() if is_meant(ref, name)]
    if removed and not path.exists():
        ref, entries = removed[0]
        asset = entries[-1].asset
        raise InputError(
            f"{name}: {ref} was version {entries[-1].number} of {asset} of {entries[-1].when} and is no longer in "
            f"{store.root}; `tokpack history {asset}` shows what is, `tokpack pin` keeps what must stay"
        )
    if "://" in name:
        raise InputError(
            f"{name}: no source file of {store.root} is called so; a copy there is read again and compared by "
            "`tokpack copy` of the same dataset to the same URL, or fetch its folder and name that"
        )
    raise InputError(
        f"{name}: no asset, digest or file of {store.root} is called or contains this; assets: {', '.join(assets)}"
    )


def is_meant(ref: ObjectRef, name: str) -> bool:
    """Whether a name is a (shortened) digest of an object, with or without the stage before it."""
    prefix = name.rpartition("/")[2]
    return len(prefix) >= SHORTEST_DIGEST and ref.digest.startswith(prefix)


def objects_with_file(graph: LineageGraph, sha256: str) -> list[ObjectRef]:
    """Objects that hold a file of this content, else those that list it as a source file; newest versions first."""
    found = graph.files.get(sha256) or [ref for ref, files in graph.sources.items() if sha256 in files.values()]
    return newest_first(graph, found)


def newest_first(graph: LineageGraph, refs: list[ObjectRef]) -> list[ObjectRef]:
    """Versions of assets, the one recorded last first, and then what is no version."""

    def recorded(ref: ObjectRef) -> tuple[str, int]:
        return max(((entry.when, entry.number) for entry in graph.versions.get(ref, [])), default=("", 0))

    return sorted(sorted(refs, key=str), key=recorded, reverse=True)


def object_at(store: Store, path: Path) -> ObjectRef | None:
    """The object whose folder contains `path`."""
    try:
        stage, digest, *_ = path.resolve().relative_to(store.objects.resolve()).parts
    except ValueError:
        return None
    return ObjectRef(stage, digest)


def copied_object(folder: Path) -> ObjectRef | None:
    """The object that a folder copied from a store says it is."""
    try:
        document = orjson.loads((folder / objects.MANIFEST).read_bytes())
        return ObjectRef(document["stage"], document["digest"])
    except (OSError, KeyError, TypeError, ValueError):
        return None


def chain(graph: LineageGraph, ref: ObjectRef, further: Callable[[ObjectRef], list[ObjectRef]]) -> LineageNode:
    """The tree of all that `further` leads to from `ref`; an object met again is not opened again."""
    return open_node(graph, ref, further, set())


def open_node(
    graph: LineageGraph, ref: ObjectRef, further: Callable[[ObjectRef], list[ObjectRef]], seen: set[ObjectRef]
) -> LineageNode:
    branches: list[LineageNode] = []
    if ref not in seen:
        seen.add(ref)
        branches = [open_node(graph, other, further, seen) for other in further(ref)]
    return LineageNode(
        ref,
        graph.versions.get(ref, []),
        graph.action(ref),
        graph.counts(ref),
        graph.sources.get(ref, {}),
        graph.faults.get(ref),
        branches,
    )
