"""lineage.json of a copied dataset: all that its store knows of how it came to be, in one file beside it.

    layout                  1
    dataset, tokenizer      names of the objects copied in whole, to `dataset/` and `tokenizer/`
    second_names            "links" or "copies": what files of equal content (`same_as`) are at this place
    manifests               of every object upstream, as in the store
    actions                 of every object upstream: key, object, and what was run
    history                 entries that recorded these objects: asset, number, action, object, when, run
    inventories             by digest of an inventory: the source files that it lists, name to sha256

Objects are named by their content and actions by all that shaped it, so every line can be checked against the copied
files alone: digest by digest up to the sha256 of the source files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.errors import StoreError
from tokpack_core.store.actions import Action
from tokpack_core.store.history import HistoryEntry
from tokpack_core.store.lineage import InventoryStage, LineageGraph, link, link_downstream, link_inventories
from tokpack_core.store.objects import ObjectRef, manifest_json, parse_manifest
from tokpack_core.store.store import Store

NAME = "lineage.json"
LAYOUT = 1
PARTS = ("dataset", "tokenizer")


@dataclass(frozen=True)
class CopiedChain:
    """A lineage.json that was read."""

    path: Path
    content: dict[str, Any]

    @property
    def folder(self) -> Path:
        return self.path.parent

    def part(self, name: str) -> ObjectRef:
        """The object that stands in the folder `name`."""
        return ObjectRef.parse(self.content[name])


def describe_chain(
    graph: LineageGraph,
    upstream: Iterable[ObjectRef],
    dataset: ObjectRef,
    tokenizer: ObjectRef,
    linked: bool,
    inventory: InventoryStage,
) -> dict[str, Any]:
    """The content of a lineage.json about all objects `upstream`, the dataset included."""
    refs = sorted(set(upstream), key=str)
    return {
        "layout": LAYOUT,
        "dataset": str(dataset),
        "tokenizer": str(tokenizer),
        "second_names": "links" if linked else "copies",
        "manifests": [orjson.loads(manifest_json(graph.manifests[ref])) for ref in refs if ref in graph.manifests],
        "actions": [
            {"key": key, "object": str(ref)} | asdict(action)
            for ref in refs
            for key, action in sorted(graph.made_by.get(ref, {}).items())
        ],
        "history": [
            asdict(entry) | {"object": str(ref)}
            for ref in refs
            for entry in sorted(graph.versions.get(ref, []), key=lambda entry: (entry.asset, entry.number))
        ],
        "inventories": {ref.digest: graph.sources[ref] for ref in refs if ref.stage == inventory.stage},
    }


def chain_around(path: Path) -> CopiedChain | None:
    """The lineage.json of the copy that contains `path`.

    Raises:
        StoreError: it was altered.
    """
    path = path.absolute()
    for folder in (path, *path.parents):
        if (folder / NAME).is_file():
            return read_chain(folder / NAME)
    return None


def read_chain(path: Path) -> CopiedChain | None:
    """None when the file is of another program."""
    try:
        content = orjson.loads(path.read_bytes())
    except ValueError:
        return None
    if not isinstance(content, dict) or not {"dataset", "tokenizer", "manifests", "actions"} <= content.keys():
        return None
    if content.get("layout") != LAYOUT:
        raise StoreError(f"{path}: this copy has layout {content.get('layout')}, not {LAYOUT}; use a newer tokpack")
    return CopiedChain(path, content)


def graph_of_chain(chain: CopiedChain, inventory: InventoryStage) -> LineageGraph:
    """The lineage that a copy tells of; what was altered is a fault of its object.

    Args:
        inventory: which stage lists source files, and which reads them; its `read` is not called.
    """
    graph = LineageGraph()
    for document in chain.content["manifests"]:
        ref = ObjectRef(document["stage"], document["digest"])
        try:
            graph.manifests[ref] = parse_manifest(orjson.dumps(document), ref)
        except ValueError:
            graph.faults[ref] = f"{chain.path}: the manifest of {ref} was altered; copy the dataset again"
            continue
        for file in graph.manifests[ref].files:
            graph.files[file.sha256].append(ref)
    for document in chain.content["actions"]:
        action = action_of(document)
        graph.made_by[ObjectRef.parse(document["object"])][action.key] = action
    for document in chain.content["history"]:
        ref = ObjectRef.parse(document["object"])
        graph.versions[ref].append(HistoryEntry(**document | {"object": ref}))
    link(graph)
    listed: dict[str, dict[str, str]] = chain.content["inventories"]
    by_digest = InventoryStage(inventory.stage, lambda folder: listed.get(folder.name, {}), inventory.reader)
    link_inventories(Store(chain.folder), graph, by_digest)
    link_downstream(graph)
    return graph


def action_of(document: dict[str, Any]) -> Action:
    return Action(**{name: value for name, value in document.items() if name not in ("key", "object")})


def chain_faults(chain: CopiedChain, inventory: InventoryStage) -> Iterator[str]:
    """What contradicts itself in a lineage.json, one sentence each."""
    remedy = "the file was altered; copy the dataset again"
    try:
        graph = graph_of_chain(chain, inventory)
        altered = [document for document in chain.content["actions"] if action_of(document).key != document["key"]]
    except (KeyError, TypeError, AttributeError):
        yield f"{chain.path}: {remedy}"
        return
    yield from (fault for ref, fault in graph.faults.items() if fault.startswith(str(chain.path)))
    for document in altered:
        yield f"{chain.path}: the key of an action that gave {document['object']} is not that of its content; {remedy}"
    for ref, entries in graph.versions.items():
        for entry in entries:
            if entry.action not in graph.made_by.get(ref, {}):
                yield f"{chain.path}: the action of version {entry.number} of {entry.asset} is missing; {remedy}"
