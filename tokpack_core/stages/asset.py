"""Assets: what every stage gives back, and how a stage finds what it stands on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.config import Project
from tokpack_core.engine import Engine
from tokpack_core.stages.file_errors import file_errors
from tokpack_core.stages.unit import OnProgress, Progress, Unit, UnitResults, run_unit
from tokpack_core.store import actions, history, leases, objects
from tokpack_core.store.history import HistoryEntry
from tokpack_core.store.objects import Manifest, ObjectRef
from tokpack_core.store.store import Store


@dataclass(frozen=True)
class Workplace:
    """What a stage works with.

    Attributes:
        run: the Dagster run that asks, for the history.
        retrain: whether frozen tokenizers are trained again.
        read: the version of each asset that the build has read, by key: Dagster is told this and not what was newest
            when the step began.
    """

    project: Project
    store: Store
    engine: Engine
    on_progress: OnProgress
    run: str | None = None
    retrain: bool = False
    read: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Built:
    """An asset's current version.

    Attributes:
        counts: the figures of its manifest.
        units_bytes: bytes on disk of the units that the asset is made of.
        units_run: pieces of work done now, the asset's own object included.
        units_reused: pieces of work found in the store.
        stale: why the asset is out of date though it was kept, if it is.
        code_version: number of the stage's code that made it.
        made_from: versions (digests) of the assets that it was made from, by key.
        warnings: sentences on its configuration, which its files do not show.
    """

    asset: str
    entry: HistoryEntry
    manifest: Manifest
    folder: Path
    units_bytes: int
    units_run: int
    units_reused: int
    stale: str | None = None
    code_version: int = 0
    made_from: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, Any]:
        return self.manifest.counts


def build_under_lease(build: Callable[[Workplace], Built], work: Workplace) -> Built:
    """Builds an asset; what it reads, reuses and publishes stays until its new version is recorded.

    Raises:
        TokpackError: in place of every error of the file system.
    """
    work = replace(work, read={})
    with leases.hold(work.store), file_errors(work.store, "build"):
        built = build(work)
    return replace(built, made_from=dict(sorted(work.read.items())))


def finish(
    work: Workplace, asset: str, unit: Unit, units: UnitResults | None = None, stale: str | None = None
) -> Built:
    """Builds the asset's own object in this process out of its units, and records it as the newest version."""
    units = units or UnitResults([], 0, 0)
    with leases.hold(work.store):
        cached = actions.lookup(work.store, unit.action) is not None
        if not cached:
            work.on_progress(Progress(asset, 0, 1, 0, unit.weight, 0.0))
        ref = run_unit(work.store, unit)
        entry = history.append(work.store, asset, unit.action.key, ref, work.run)
    return Built(
        asset,
        entry,
        objects.read_manifest(work.store, ref),
        objects.folder_of(work.store, ref),
        sum(objects.read_manifest(work.store, part).size for part in dict.fromkeys(units.refs)),
        units.run + (not cached),
        units.reused + cached,
        stale,
        unit.action.code_version,
    )


def kept(work: Workplace, asset: str, entry: HistoryEntry, stale: str | None) -> Built:
    """The newest version as it stands, without any work."""
    leases.claim(work.store, entry.object)
    manifest = objects.read_manifest(work.store, entry.object)
    made_by = actions.read_action(work.store, entry.object.stage, entry.action).code_version
    return Built(asset, entry, manifest, objects.folder_of(work.store, entry.object), 0, 0, 1, stale, made_by)


def current(work: Workplace, asset: str) -> tuple[ObjectRef, Path]:
    """Object and folder of an upstream asset's newest version.

    Raises:
        StoreError: it was never built, or its object is damaged.
    """
    ref = history.require_latest(work.store, asset).object
    leases.claim(work.store, ref)
    work.read[asset] = ref.digest
    return ref, objects.require_object(work.store, ref)


def note_version_read(work: Workplace, asset: str, listed: Callable[[Path], set[str]], used: set[str]) -> None:
    """Notes which version of an asset was read by way of the objects that it lists, if the history still has it."""
    work.read.pop(asset, None)
    for entry in reversed(history.entries(work.store, asset)):
        if objects.exists(work.store, entry.object) and listed(objects.folder_of(work.store, entry.object)) == used:
            work.read[asset] = entry.object.digest
            return


def write_json(path: Path, value: Any) -> None:
    """Sorted, indented, strict JSON: the same value gives the same bytes."""
    path.write_bytes(
        orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    )


def read_json(path: Path) -> Any:
    return orjson.loads(path.read_bytes())
