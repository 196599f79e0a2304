"""Units of work: each is keyed by its action, built in a staging folder, published, and reused ever after."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tokpack_core.engine import LocalEngine
from tokpack_core.store import actions, objects
from tokpack_core.store.actions import Action
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store

SMALL_WORK = 4 * 10**6
"""Bytes of input below which starting worker processes, about 2 s, costs more than it gains."""

Build = Callable[[Path], dict[str, Any]]
"""Writes files into an empty folder and returns the counts for the manifest; picklable, of an installed package."""


@dataclass(frozen=True)
class Unit:
    """One piece of work that can run anywhere.

    Attributes:
        action: names everything that shapes the bytes.
        build: does the work.
        weight: bytes of input, for progress.
    """

    action: Action
    build: Build
    weight: int = 1


@dataclass(frozen=True)
class Progress:
    """How far a stage has come, in units and bytes of input."""

    stage: str
    done: int
    total: int
    weight_done: int
    weight_total: int
    seconds: float

    @property
    def seconds_left(self) -> float:
        return self.seconds * (self.weight_total - self.weight_done) / max(self.weight_done, 1)

    def describe(self) -> str:
        rate = self.weight_done / 1e6 / max(self.seconds, 1e-9)
        return (
            f"{self.stage}: {self.done} of {self.total} units, {self.weight_done / 1e6:,.1f} MB at {rate:,.1f} MB/s, "
            f"{self.seconds_left:,.0f} s left"
        )


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class UnitResults:
    """Objects in the order of the units, and how many units had to run."""

    refs: list[ObjectRef]
    run: int
    reused: int


def run_unit(store: Store, unit: Unit) -> ObjectRef:
    """The unit's object: the published one if its action ran before, else built and published now."""
    found = actions.lookup(store, unit.action)
    if found is not None:
        return found
    with objects.staging(store) as folder:
        counts = unit.build(folder)
        ref = objects.publish(store, unit.action.stage, folder, counts)
    actions.record(store, unit.action, ref)
    return ref


def run_units(store: Store, engine: LocalEngine, units: Sequence[Unit], on_progress: OnProgress) -> UnitResults:
    """Runs the units that never ran and reports after each."""
    found = [actions.lookup(store, unit.action) for unit in units]
    missing = [unit for unit, ref in zip(units, found, strict=True) if ref is None]
    total = sum(unit.weight for unit in missing)
    if total < SMALL_WORK:
        engine = LocalEngine(1)
    begin = time.monotonic()
    done = 0
    built: dict[str, ObjectRef] = {}
    for unit, ref in zip(missing, engine.map(partial(run_unit, store), missing), strict=True):
        built[unit.action.key] = ref
        done += unit.weight
        seconds = time.monotonic() - begin
        on_progress(Progress(unit.action.stage, len(built), len(missing), done, total, seconds))
    refs = [ref or built[unit.action.key] for unit, ref in zip(units, found, strict=True)]
    return UnitResults(refs, len(missing), len(units) - len(missing))
