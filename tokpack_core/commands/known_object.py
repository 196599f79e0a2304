"""What an asset key, a digest or a path means to `lineage`: an object of a store, or of a copy beside its lineage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tokpack_core.commands.inspect_prefix import without_ending
from tokpack_core.commands.store_access import INVENTORIES, graph_of, store_around, store_that_knows
from tokpack_core.megatron.indexed_dataset import bin_path
from tokpack_core.store import actions, objects
from tokpack_core.store.copied_chain import PARTS, CopiedChain, chain_around, graph_of_chain
from tokpack_core.store.lineage import LineageGraph, find_object
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store


@dataclass(frozen=True)
class KnownObject:
    """An object and all that is known around it.

    Attributes:
        written: seconds since the epoch at which an object was published, or else noted.
    """

    graph: LineageGraph
    ref: ObjectRef
    written: Callable[[ObjectRef], float]


def path_meant(name: str) -> Path:
    """The path, or the .bin of the prefix, that `name` may be."""
    path = Path(name)
    return bin_path(path) if not path.exists() and bin_path(without_ending(path)).is_file() else path


def known_object(name: str) -> KnownObject:
    """The object meant, in the store or the copy around a path, else in the store that the environment names.

    Raises:
        InputError: `name` means nothing there.
    """
    path = path_meant(name)
    store = store_around(path) if path.exists() else None
    chain = chain_around(path) if path.exists() and store is None else None
    if chain is not None:
        return KnownObject(graph_of_chain(chain, INVENTORIES), part_at(chain, path), lambda _: mtime(chain.path))
    store = store or store_that_knows(name)
    graph = graph_of(store)
    ref = find_object(store, graph, str(path) if path.exists() else name)
    return KnownObject(graph, ref, lambda other: time_written(store, graph, other))


def part_at(chain: CopiedChain, path: Path) -> ObjectRef:
    """The object of a copy that `path` is in; the copy as a whole means its dataset."""
    folder, *_ = (*path.absolute().relative_to(chain.folder).parts, "")
    return chain.part(folder if folder in PARTS else PARTS[0])


def time_written(store: Store, graph: LineageGraph, ref: ObjectRef) -> float:
    """Of the manifest; of an object that is gone, of any action that gave it."""
    manifest = objects.folder_of(store, ref) / objects.MANIFEST
    records = [actions.path_of(store, ref.stage, key) for key in graph.made_by.get(ref, {})]
    return next((mtime(path) for path in [manifest, *records] if path.is_file()), 0.0)


def mtime(path: Path) -> float:
    return path.stat().st_mtime
