"""OpenLineage events of a real store: of the published shape, repeatable, and the same chain as the tree."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import types
import typing
import uuid
from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

import attr
import pytest
from openlineage.client import generated
from openlineage.client.event_v2 import RunEvent
from openlineage.client.serde import Serde

from tests.command_line import refused, tokpack
from tests.small_project import SmallProject, write_small_project
from tokpack_core.stages.asset import Built
from tokpack_core.store.files import sha256_of
from tokpack_core.store.openlineage import source_dataset

DATASET = "megatron_dataset/base"
URI = r"[a-z][a-z0-9+.-]*:[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]+(#[A-Za-z0-9._~:/?@!$&'()*+,;=%-]*)?"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> SmallProject:
    small = write_small_project(tmp_path_factory.mktemp("openlineage"))
    small.build()
    return small


@pytest.fixture(scope="module")
def built(project: SmallProject) -> dict[str, Built]:
    return project.build()


@pytest.fixture(scope="module")
def events(project: SmallProject) -> list[dict[str, Any]]:
    return events_of(project, DATASET)


def events_of(project: SmallProject, name: str) -> list[dict[str, Any]]:
    out = tokpack(project.folder, "lineage", name, "--openlineage", store=project.store).out
    return [json.loads(line) for line in out.splitlines()]


def official_classes() -> dict[str, type]:
    """The client's classes, which OpenLineage generates from the published schema, by the URL of their definition."""
    found = {}
    for module in pkgutil.iter_modules(generated.__path__):
        for value in vars(importlib.import_module(f"{generated.__name__}.{module.name}")).values():
            if isinstance(value, type) and hasattr(value, "_get_schema"):
                found[value._get_schema()] = value
    return found


OFFICIAL = official_classes()


def structured(kind: Any, value: Any) -> Any:
    """`value` as an instance of the official type; anything that the type does not allow fails."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        (kind,) = [option for option in typing.get_args(kind) if option is not type(None)]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        assert isinstance(value, list)
        return [structured(arguments[0], item) for item in value]
    if origin is dict:
        assert isinstance(value, dict)
        return {name: structured(arguments[1], item) for name, item in value.items()}
    if not attr.has(kind):
        if issubclass(kind, Enum):
            return kind(value)
        assert type(value) is kind, f"{value!r} is no {kind}"
        return value
    if "_schemaURL" in value:
        special = OFFICIAL[value["_schemaURL"]]
        assert issubclass(special, kind), f"{special} where {kind} belongs"
        kind = special
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in attr.fields(kind)}
    assert value.keys() <= fields.keys(), f"{kind} has no {value.keys() - fields.keys()}"
    given = {
        fields[name].alias: structured(hints[name], item) for name, item in value.items() if fields[name].init is True
    }
    return kind(**given)


def walk(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(item)


def test_events_survive_the_official_classes_unchanged(events: list[dict[str, Any]]) -> None:
    for event in events:
        assert OFFICIAL[event["schemaURL"]] is RunEvent
        written = json.loads(Serde.to_json(structured(RunEvent, event)))
        assert [dataset.pop("inputFacets") for dataset in written["inputs"]] == [{}] * len(event["inputs"])
        assert written == event
        facets = [part for part in walk(event) if "_producer" in part]
        assert {facet["_producer"] for facet in facets} == {event["producer"]}


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (("run", "runId"), "no-uuid"),
        (("eventTime",), "2026-01-01"),
        (("eventType",), "DONE"),
        (("outputs", 0, "outputFacets", "outputStatistics", "size"), "12"),
        (("job", "facets", "jobType", "_schemaURL"), "https://openlineage.io/spec/facets/9-9-9/None.json"),
        (("job", "namespace"), None),
    ],
)
def test_the_check_itself_finds_faults(events: list[dict[str, Any]], place: tuple[Any, ...], wrong: Any) -> None:
    event = json.loads(json.dumps(events[-1]))
    *way, last = place
    part = event
    for step in way:
        part = part[step]
    part[last] = wrong
    with pytest.raises((AssertionError, ValueError, KeyError, TypeError)):
        structured(RunEvent, event)


@pytest.mark.parametrize(
    "place",
    [
        ("eventTime",),
        ("run",),
        ("run", "runId"),
        ("job",),
        ("job", "name"),
        ("inputs", 0, "namespace"),
        ("inputs", 0, "facets", "version", "datasetVersion"),
        ("job", "facets", "jobType", "integration"),
    ],
)
def test_the_check_itself_misses_what_is_required(events: list[dict[str, Any]], place: tuple[Any, ...]) -> None:
    event = json.loads(json.dumps(events[-1]))
    *way, last = place
    part = event
    for step in way:
        part = part[step]
    del part[last]
    with pytest.raises((AssertionError, ValueError, KeyError, TypeError)):
        structured(RunEvent, event)


def test_formats(events: list[dict[str, Any]]) -> None:
    """RFC 4122 ids, RFC 3339 times with a zone, RFC 3986 addresses, by their own grammars."""
    for event in events:
        assert str(uuid.UUID(event["run"]["runId"])) == event["run"]["runId"]
        assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
        assert {"producer", "schemaURL"} <= event.keys()
        facets = [part for part in walk(event) if part.keys() & {"_producer", "_schemaURL"}]
        assert len(facets) == 2 + len(event["inputs"]) + 2 * len(event["outputs"])
        addresses = [event["producer"], event["schemaURL"]]
        addresses += [facet[name] for facet in facets for name in ("_producer", "_schemaURL")]
        assert all(re.fullmatch(URI, address) for address in addresses)


def test_objects_are_named_in_their_bucket() -> None:
    named = ["s3://bucket/zh/0.jsonl", "https://host/a/b.txt", "data/0.jsonl", "/mnt/a.txt", "odd://"]
    assert [source_dataset(name) for name in named] == [
        ("s3://bucket", "zh/0.jsonl"),
        ("https://host", "a/b.txt"),
        ("file", "data/0.jsonl"),
        ("file", "/mnt/a.txt"),
        ("file", "odd://"),
    ]


def test_each_input_was_an_output_before_and_sources_are_the_corpus_files(
    project: SmallProject, built: dict[str, Built], events: list[dict[str, Any]]
) -> None:
    def named(dataset: dict[str, Any]) -> tuple[str, str, str]:
        return dataset["namespace"], dataset["name"], dataset["facets"]["version"]["datasetVersion"]

    seen: set[tuple[str, str, str]] = set()
    sources: set[tuple[str, str]] = set()
    for event in events:
        inputs = {named(dataset) for dataset in event["inputs"]}
        sources |= {(name, version) for namespace, name, version in inputs if namespace == "file"}
        assert {dataset for dataset in inputs if dataset[0] != "file"} <= seen
        seen |= {named(dataset) for dataset in event["outputs"]}
    data = (project.folder / "data").rglob("*.*")
    assert sources == {(file.relative_to(project.folder).as_posix(), sha256_of(file)) for file in data}
    upstream = [key for key in built if not key.startswith("vocabulary_report")]
    assert seen == {("tokpack", key, built[key].entry.object.digest) for key in upstream}
    assert events[-1]["job"]["name"] == DATASET
    assert {event["eventType"] for event in events} == {"COMPLETE"}


def test_time_rows_bytes_and_parameters_are_the_recorded_ones(
    project: SmallProject, built: dict[str, Built], events: list[dict[str, Any]]
) -> None:
    by_name = {event["job"]["name"]: event for event in events}
    for key, event in by_name.items():
        assert event["eventTime"] == built[key].entry.when
    shards = by_name["tokenized_shards/bpe_600/docs"]["outputs"][0]["outputFacets"]["outputStatistics"]
    assert shards["rowCount"] == built["normalized_corpus/docs"].counts["documents"]
    dataset = by_name[DATASET]["outputs"][0]["outputFacets"]["outputStatistics"]
    folder = built[DATASET].folder
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json"]
    assert dataset["rowCount"] == sum(built[DATASET].counts["packs"].values())
    assert dataset["fileCount"] == len(files)
    assert dataset["size"] == sum({sha256_of(path): path.stat().st_size for path in files}.values())
    listed = by_name["tokenizer_model/bpe_600"]["run"]["facets"]["executionParameters"]["parameters"]
    parameters = {parameter["key"]: parameter["value"] for parameter in listed}
    assert (parameters["family"], parameters["vocab_size"]) == ("byte_bpe", "600")


def test_run_ids_are_those_of_the_actions(
    project: SmallProject, events: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert events_of(project, DATASET) == events
    ids = [event["run"]["runId"] for event in events]
    assert len(set(ids)) == len(events)
    # The shards' events are those of the dataset's chain, whatever is asked for, and in whatever namespace.
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "mine")
    shards = events_of(project, "tokenized_shards/bpe_600/docs")
    assert {event["run"]["runId"] for event in shards} < set(ids)
    assert {event["job"]["namespace"] for event in shards} == {"mine"}
    (tmp_path / "plain.txt").write_text("text", encoding="utf-8")
    tokpack(tmp_path, "train", "--family", "byte_bpe", "--vocab-size", "260", "--output", "tok", "plain.txt")
    assert "a stand-alone command wrote it" in refused(tmp_path, "lineage", "tok", "--openlineage")
