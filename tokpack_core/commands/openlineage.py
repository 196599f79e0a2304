"""`tokpack lineage TARGET --openlineage`: OpenLineage run events, one JSON line each, upstream first.

Units are folded into their assets, as in the printed tree. OPENLINEAGE_NAMESPACE names the namespace, as it does for
other producers of such events.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import orjson

from tokpack_core.commands.known_object import KnownObject, known_object, path_meant
from tokpack_core.commands.lineage_steps import own_units, steps_up
from tokpack_core.commands.run_manifest import manifest_of
from tokpack_core.commands.store_access import store_around
from tokpack_core.errors import InputError
from tokpack_core.store.lineage import LineageGraph
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.openlineage import Output, run_event

NAMESPACE = "tokpack"


def print_openlineage(name: str) -> None:
    """Raises InputError when `name` is nothing that a store or a copy knows, or nothing tells how it was made."""
    path = path_meant(name)
    if path.exists() and store_around(path) is None and manifest_of(path) is not None:
        raise InputError(f"{name}: a stand-alone command wrote it, outside of any history; print its chain with --json")
    known = known_object(name)
    events = list(run_events(known, os.environ.get("OPENLINEAGE_NAMESPACE") or NAMESPACE))
    if not events:
        raise InputError(f"{name}: no action of its store tells how it was made; build it again")
    for event in events:
        sys.stdout.buffer.write(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()


def run_events(known: KnownObject, namespace: str) -> Iterator[dict[str, Any]]:
    """An event for every action behind the object, after those of what it read."""
    graph = known.graph
    for ref in upstream_first(graph, known.ref):
        action = graph.action(ref)
        if action is None:
            continue
        times = [entry.when for entry in graph.versions.get(ref, []) if entry.action == action.key]
        when = times[0] if times else utc(known.written(ref))
        upstream = [step.ref for step in steps_up(graph, ref)]
        yield run_event(graph, ref, action, upstream, output_of(graph, ref, when), namespace)


def upstream_first(graph: LineageGraph, ref: ObjectRef) -> list[ObjectRef]:
    done: dict[ObjectRef, None] = {}

    def visit(other: ObjectRef) -> None:
        for step in steps_up(graph, other):
            if step.ref not in done:
                visit(step.ref)
        done[other] = None

    visit(ref)
    return list(done)


def output_of(graph: LineageGraph, ref: ObjectRef, when: str) -> Output:
    parts = dict.fromkeys([ref, *own_units(graph, ref)])
    manifests = [graph.manifests[part] for part in parts if part in graph.manifests]
    size = sum(manifest.size for manifest in manifests)
    return Output(when, rows(graph.counts(ref)), size, sum(len(manifest.files) for manifest in manifests))


def rows(counts: dict[str, Any]) -> int | None:
    """Documents of corpora and shards, packs of datasets."""
    packs = counts.get("packs")
    found = sum(packs.values()) if isinstance(packs, dict) else counts.get("documents")
    return found if isinstance(found, int) else None


def utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
