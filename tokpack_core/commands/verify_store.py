"""A store, or an object with all it was made from, verified.

Of a whole store, every object is checked, every record and history entry is read, and the newest version of each asset
must be there. Of an object, everything upstream is checked down to the bytes, and that the records lead from it to the
inventories of the corpora: each action there under its key, each input there, and an inventory that lists exactly the
source files behind a normalized corpus.

What was made from a damaged object is told: it is right if it was made before the damage, and nothing but an audit, or
the same bytes built again, can say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokpack_core.commands.lineage_steps import OWNERS, all_downstream, all_upstream
from tokpack_core.commands.store_access import graph_of
from tokpack_core.commands.verify_objects import Checked, verify_objects
from tokpack_core.errors import StoreError
from tokpack_core.stages import corpus as corpus_stage
from tokpack_core.stages import normalize as normalize_stage
from tokpack_core.store import actions, history, objects
from tokpack_core.store.actions import Action
from tokpack_core.store.lineage import DIGEST, LineageGraph, named_objects
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store

NOT_READ = ("files", "key")
"""Inputs whose sha256 is that of a source file, or the key of an action, and not of a file of an object."""


def verify_store(store: Store, quiet: bool) -> Checked:
    refs = list(objects.list_objects(store))
    checked = verify_objects(store, refs, quiet)
    known = set(refs)
    records = list(actions.list_records(store))
    numbers = {asset: history.numbers(store, asset) for asset in history.list_assets(store)}
    faults = checked.faults + [fault for path in records for fault in action_faults(path)]
    for asset, listed in numbers.items():
        for number in listed:
            faults += entry_faults(store, asset, number, known if number == max(listed) else None)
    counts = checked.counts | {"actions": len(records), "history_entries": sum(map(len, numbers.values()))}
    return with_consequences(store, Checked(counts, faults, checked.notes, checked.damaged))


def verify_chain(store: Store, graph: LineageGraph, ref: ObjectRef, quiet: bool) -> Checked:
    """An object and everything that it was made from."""
    there = [found for found in all_upstream(graph, ref) if objects.exists(store, found)]
    checked = verify_objects(store, there, quiet)
    faults = checked.faults + [fault for found in there for fault in chain_faults(store, graph, found)]
    inventories = sum(found.stage == corpus_stage.STAGE for found in there)
    counts = checked.counts | {"inventories": inventories}
    return with_consequences(store, Checked(counts, faults, checked.notes, checked.damaged))


def chain_faults(store: Store, graph: LineageGraph, ref: ObjectRef) -> Iterator[str]:
    """What is missing between an object and those it was made from."""
    made_by = graph.made_by.get(ref, {})
    for key in made_by:
        if not actions.path_of(store, ref.stage, key).is_file():
            yield f"{ref}: a record of how it was made was altered; remove what `tokpack verify {store.root}` names"
    missing = [list(missing_inputs(action, graph)) for action in made_by.values()]
    if not made_by:
        yield f"{ref}: no record says how it was made; build again"
    elif all(missing):
        yield f"{ref}: {missing[0][0]}, which it was made from, is not in this store; build again"
    elif ref.stage == normalize_stage.STAGE and not any(
        source.stage == corpus_stage.STAGE for source in graph.upstream[ref]
    ):
        yield f"{ref}: no inventory of this store lists exactly the source files that it was made from; build again"


def missing_inputs(action: Action, graph: LineageGraph) -> Iterator[str]:
    """What an action read and no object of the store is or holds."""
    for name in input_names(action.inputs):
        found = list(named_objects(name, graph))
        if not found or (len(found) == 1 and found[0] not in graph.manifests):
            yield name


def input_names(value: Any) -> Iterator[str]:
    """Every `stage/digest` and sha256 that inputs name."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name not in NOT_READ:
                yield from input_names(item)
    elif isinstance(value, list):
        for item in value:
            yield from input_names(item)
    elif isinstance(value, str) and DIGEST.fullmatch(value.rpartition("/")[2]):
        yield value


def with_consequences(store: Store, checked: Checked) -> Checked:
    """Adds what was made from each damaged object, and says it in a note."""
    if not checked.damaged:
        return checked
    graph = graph_of(store)
    made = {ref: sorted(all_downstream(graph, ref)[1:], key=str) for ref in checked.damaged}
    notes = [consequence(graph, ref, others) for ref, others in made.items() if others]
    return Checked(checked.counts, checked.faults, checked.notes + notes, made)


def consequence(graph: LineageGraph, ref: ObjectRef, made: list[ObjectRef]) -> str:
    entries = [entry for other in made for entry in graph.versions.get(other, [])]
    units = sum(other.stage in OWNERS for other in made)
    told = sorted(f"{entry.asset} #{entry.number}" for entry in entries) + ([f"{units} units of work"] if units else [])
    return (
        f"made from {ref.stage}/{ref.digest[:12]}, which is damaged: {', '.join(told)}; this is right if it was made "
        "before the damage, which `tokpack audit` tells"
    )


def action_faults(path: Path) -> Iterator[str]:
    """A record whose object is gone is no fault: garbage collection removes the object first, and nothing uses it."""
    try:
        action, _ = actions.load_record(path)
    except StoreError as error:
        yield str(error)
        return
    if (action.stage, action.key) != (path.parent.name, path.stem):
        yield f"{path}: the record was altered, its key is not its name; remove the file and build again"


def entry_faults(store: Store, asset: str, number: int, known: set[ObjectRef] | None) -> Iterator[str]:
    """Faults of a history entry; with `known`, the objects there are, also what the newest version must have.

    An older version may be gone: garbage collection keeps the entry and removes the object.
    """
    try:
        entry = history.read_entry(store, asset, number)
    except StoreError as error:
        yield str(error)
        return
    if entry is None or known is None:  # a number that was reserved and never used has no entry
        return
    if entry.object not in known:
        yield f"version {number} of {asset}: its object {entry.object} is not in the store; build {asset} again"
    if not actions.path_of(store, entry.object.stage, entry.action).is_file():
        yield f"version {number} of {asset}: its action {entry.action} is not in the store; build {asset} again"
