"""OpenLineage run events: what made each object, in the field's common format for lineage.

Spec: OpenLineage 2-0-2 (RunEvent) with the facets `version`, `outputStatistics`, `jobType` and `executionParameters`,
all published with the spec; there are none of our own. An event is a pure function of the store, so sending it twice
changes nothing: a run's id is the UUIDv5 of its action's key, its time is when the history first recorded it.

Datasets are named by asset key, their versions by digest; a source file by its path as configured in the namespace
`file`, one behind a URL by its key in that of its bucket or host (OpenLineage's naming conventions), its version by its
sha256. What no asset owns is named by stage and digest.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import orjson

from tokpack_core.store.actions import Action
from tokpack_core.store.lineage import LineageGraph
from tokpack_core.store.objects import ObjectRef

SPEC = "https://openlineage.io/spec"
SCHEMA = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
FACET_VERSIONS = {
    "DatasetVersionDatasetFacet": "1-0-1",
    "ExecutionParametersRunFacet": "1-0-0",
    "JobTypeJobFacet": "2-0-4",
    "OutputStatisticsOutputDatasetFacet": "1-0-2",
}
SOURCES = "file"
"""Namespace that OpenLineage's naming conventions give to files of a file system."""


@dataclass(frozen=True)
class Output:
    """What an action wrote, the units of the asset included.

    Attributes:
        when: UTC time, ISO 8601.
        rows: documents or packs, where the stage counts them.
        size: bytes.
    """

    when: str
    rows: int | None
    size: int
    files: int


def run_event(
    graph: LineageGraph, ref: ObjectRef, action: Action, upstream: Iterable[ObjectRef], output: Output, namespace: str
) -> dict[str, Any]:
    """The COMPLETE event of the action that gave `ref`.

    Args:
        upstream: objects that the action read.
        namespace: of the job, and of all datasets but source files.
    """
    sources = graph.sources.get(ref, {})
    names = asset_names(graph, ref)
    written = {"size": output.size, "fileCount": output.files} | ({"rowCount": output.rows} if output.rows else {})
    statistics = {"outputStatistics": facet("OutputStatisticsOutputDatasetFacet", written)}
    return {
        "eventTime": output.when,
        "eventType": "COMPLETE",
        "producer": producer(),
        "schemaURL": SCHEMA,
        "run": {"runId": run_id(action), "facets": {"executionParameters": execution_parameters(action)}},
        "job": {"namespace": namespace, "name": names[0], "facets": {"jobType": job_type(action)}},
        "inputs": [dataset(*source_dataset(name), sha256) for name, sha256 in sources.items()]
        + [dataset(namespace, asset_names(graph, other)[0], other.digest) for other in upstream],
        "outputs": [dataset(namespace, name, ref.digest) | {"outputFacets": statistics} for name in names],
    }


def run_id(action: Action) -> str:
    """The same for the same action, in whatever store it ran."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"pkg:generic/tokpack#{action.key}"))


def producer() -> str:
    """A package URL."""
    return f"pkg:generic/tokpack@{version('tokpack')}"


def asset_names(graph: LineageGraph, ref: ObjectRef) -> list[str]:
    """Keys of the assets that an object is a version of, oldest first; else the object's own name."""
    return list(dict.fromkeys(entry.asset for entry in graph.versions.get(ref, []))) or [str(ref)]


def source_dataset(name: str) -> tuple[str, str]:
    """Namespace and name of a source file."""
    scheme, separator, rest = name.partition("://")
    bucket, _, key = rest.partition("/")
    return (f"{scheme}://{bucket}", key) if separator and bucket else (SOURCES, name)


def dataset(namespace: str, name: str, digest: str) -> dict[str, Any]:
    facets = {"version": facet("DatasetVersionDatasetFacet", {"datasetVersion": digest})}
    return {"namespace": namespace, "name": name, "facets": facets}


def job_type(action: Action) -> dict[str, Any]:
    facts = {"processingType": "BATCH", "integration": "TOKPACK", "jobType": action.stage.upper()}
    return facet("JobTypeJobFacet", facts)


def execution_parameters(action: Action) -> dict[str, Any]:
    """All that shaped the bytes beside the inputs; values that are no strings as JSON."""
    libraries = {f"libraries.{name}": found for name, found in action.libraries.items()}
    told = {"code_version": action.code_version} | action.parameters | libraries
    listed = [{"key": key, "value": as_text(value)} for key, value in sorted(told.items())]
    return facet("ExecutionParametersRunFacet", {"parameters": listed})


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def facet(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    schema = f"{SPEC}/facets/{FACET_VERSIONS[name]}/{name}.json#/$defs/{name}"
    return {"_producer": producer(), "_schemaURL": schema} | facts
