"""`tokpack pin`, `tokpack lease` and `tokpack history`: what is kept, and what there was."""

from __future__ import annotations

from tokpack_core.commands.results import console, print_json
from tokpack_core.commands.store_access import graph_of, named_store, store_that_knows
from tokpack_core.errors import InputError
from tokpack_core.store import history, objects, pins
from tokpack_core.store.leased_command import run_with_lease
from tokpack_core.store.lineage import find_object
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store, open_store


def named_objects_of(store: Store, targets: list[str]) -> list[ObjectRef]:
    graph = graph_of(store)
    return [find_object(store, graph, target) for target in targets]


def pin_and_show(name: str | None, targets: list[str], remove: bool, json: bool) -> None:
    """Pins the targets under `name`, removes the pin, or lists all pins when there is no name.

    Raises:
        InputError: a name without targets.
        StoreError: there is no such pin, or its name stands for other objects.
    """
    store = open_store(named_store())
    if name is not None and remove:
        pins.remove(store, name)
    elif name is not None:
        if not targets:
            raise InputError(f"pin {name}: name what it keeps, like megatron_dataset/base_4k, or give --remove")
        pins.add(store, name, named_objects_of(store, targets))
    listed = pins.list_pins(store)
    if json:
        print_json([{"name": pin.name, "objects": [str(ref) for ref in pin.refs], "when": pin.when} for pin in listed])
        return
    for pin in listed:
        console().print(f"[bold]{pin.name}[/]  {pin.when}  {', '.join(f'{r.stage}/{r.digest[:12]}' for r in pin.refs)}")
    if not listed:
        console().print("no pins")


def lease_and_run(target: str, command: list[str]) -> int:
    """Runs a command while the target is held; its exit code.

    Raises:
        InputError: there is no command, or the store does not know the target.
    """
    if not command:
        raise InputError(
            "name the command to run after --, like: tokpack lease megatron_dataset/base_4k -- bash train.sh"
        )
    store = store_that_knows(target)
    return run_with_lease(store, named_objects_of(store, [target]), command)


def history_and_show(asset: str, json: bool) -> None:
    """Every version of an asset, newest first.

    Raises:
        InputError: there is no such asset.
    """
    store = open_store(named_store())
    entries = history.entries(store, asset)
    if not entries:
        raise InputError(f"{asset} was never built; there are {', '.join(history.list_assets(store)) or 'no assets'}")
    rows = [
        {
            "number": entry.number,
            "when": entry.when,
            "object": str(entry.object),
            "run": entry.run,
            "here": objects.exists(store, entry.object),
        }
        for entry in reversed(entries)
    ]
    if json:
        print_json(rows)
        return
    for row in rows:
        gone = "" if row["here"] else "  [yellow]removed by gc[/]"
        run = f"  run {row['run']}" if row["run"] else ""
        console().print(f"{row['number']:>4}  {row['when']}  {str(row['object']).rpartition('/')[2][:12]}{run}{gone}")
