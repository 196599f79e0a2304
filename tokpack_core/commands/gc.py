"""`tokpack gc`: shows what nothing needs any more, and removes it when told."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from rich.text import Text

from tokpack_core.commands.results import console, print_json
from tokpack_core.commands.store_access import INVENTORIES, named_store
from tokpack_core.store.garbage_collection import CollectionPlan, collect, plan
from tokpack_core.store.store import open_store

SHOWN = 20


def gc_and_show(keep: int, min_age_hours: float, yes: bool, json: bool) -> None:
    """`tokpack gc`. Removes only with `yes`, or when a person at a terminal agrees.

    Raises:
        StoreError: the store cannot be read or written.
    """
    store = open_store(named_store())
    planned = plan(store, keep, min_age_hours * 3600, INVENTORIES)
    if not json:
        show_plan(planned)
    agreed = yes or (not json and something(planned) and sys.stdin.isatty() and asked_and_agreed())
    collected = collect(store, planned, INVENTORIES) if agreed and something(planned) else None
    if json:
        print_json(as_json(planned) | ({"removed_bytes": collected.bytes} if collected else {}))
    elif collected:
        spared = f", {len(collected.spared)} spared since they came into use" if collected.spared else ""
        console().print(f"removed {len(collected.objects)} objects, {megabytes(collected.bytes)}{spared}")
    elif something(planned):
        console().print("nothing was removed; run again with --yes to remove it")


def something(planned: CollectionPlan) -> bool:
    return bool(planned.garbage or planned.leftovers)


def asked_and_agreed() -> bool:
    return console().input("remove it? [y/N] ").strip().lower() in ("y", "yes")


def show_plan(planned: CollectionPlan) -> None:
    out = console()
    for item in planned.garbage[:SHOWN]:
        out.print(f"  {item.ref.stage}/{item.ref.digest[:12]}  {megabytes(item.bytes)}")
    if len(planned.garbage) > SHOWN:
        out.print(f"  and {len(planned.garbage) - SHOWN} more objects")
    if planned.leftovers:
        out.print(f"  {len(planned.leftovers)} leftovers of interrupted work")
    out.print(Text(f"{len(planned.garbage)} objects can go, {megabytes(planned.bytes)}", "bold"))
    for reason, count in sorted(Counter(kind_of(item.reason) for item in planned.kept).items()):
        out.print(f"  {count} kept: {reason}")


def kind_of(reason: str) -> str:
    """Reasons without their numbers and names, so that they can be counted."""
    for kind in ("version", "pin", "lease", "published lately", "published during"):
        if reason.startswith(kind):
            return {"version": "a version of an asset"}.get(kind, kind)
    return "something kept was made from them"


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def as_json(planned: CollectionPlan) -> dict[str, Any]:
    return {
        "garbage": [{"object": str(item.ref), "bytes": item.bytes} for item in planned.garbage],
        "kept": [{"object": str(item.ref), "bytes": item.bytes, "reason": item.reason} for item in planned.kept],
        "leftovers": [str(item.path) for item in planned.leftovers],
        "bytes": planned.bytes,
    }
