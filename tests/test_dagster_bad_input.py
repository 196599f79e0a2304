"""What is wrong is one sentence in the run's log, which says what to do; nothing half-written is left."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest

from tests.dagster_server import environment
from tests.graph_in_process import GraphInProcess
from tests.small_project import SmallProject, write_small_project
from tests.store_checks import faults_of
from tokpack_assets.sources import source_sensor
from tokpack_core.store.store import open_store


@pytest.fixture
def graph(tmp_path: Path) -> GraphInProcess:
    return GraphInProcess(write_small_project(tmp_path))


def sentence(graph: GraphInProcess, *keys: str) -> str:
    """Why the only step that failed did."""
    result = graph.materialize(*keys)
    assert not result.success
    failed = [event for event in result.all_events if event.is_step_failure]
    (said,) = {
        data.user_failure_data.description
        for event in failed
        if (data := event.step_failure_data).user_failure_data is not None
    }
    assert said
    assert "\n" not in said
    return said


@contextmanager
def disk(project: SmallProject, options: str) -> Iterator[None]:
    """A disk of its own for the store."""
    if os.getuid() != 0:
        pytest.skip("mounting takes root")
    project.store.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", project.store], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine allows no mounts")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", project.store], check=True)


def test_a_full_disk(graph: GraphInProcess) -> None:
    with disk(graph.project, "size=48k"):
        said = sentence(graph, "corpus/docs", "normalized_corpus/docs")
        assert said.startswith(f"{graph.project.store}: cannot ")
        assert "free some space" in said
        subprocess.run(["mount", "-o", "remount,size=20m", graph.project.store], check=True)
        assert faults_of(open_store(graph.project.store)) == []
        assert graph.materialize("corpus/docs", "normalized_corpus/docs").success


def test_a_disk_that_is_read_only(graph: GraphInProcess) -> None:
    with disk(graph.project, "ro"):
        said = sentence(graph, "corpus/docs", "normalized_corpus/docs")
    assert said.startswith(f"{graph.project.store}: cannot ")
    assert "Read-only file system" in said


def test_a_corpus_folder_that_vanishes(graph: GraphInProcess) -> None:
    """The run says where it was; the sensor says so too, and still reports what changed elsewhere."""
    folder = graph.project.folder / "data"
    gone = f"data/code: gives no file to read, for there is no {folder}/code; restore it, or correct the path"
    (folder / "code").rename(folder / "moved")
    sensor = source_sensor(graph.project.load())
    tick = sensor.evaluate_tick(dg.build_sensor_context(graph.instance))
    assert [event.asset_key.path for event in tick.asset_events] == [["source", "docs"]]
    assert tick.skip_message == f"corpus code: {gone}; changed: source/docs"
    for event in tick.asset_events:
        graph.instance.report_runless_asset_event(event)
    again = sensor.evaluate_tick(dg.build_sensor_context(graph.instance))
    assert (list(again.asset_events), again.skip_message) == ([], f"corpus code: {gone}")
    assert sentence(graph, "corpus/code") == f"corpus code: {gone}"


def test_a_file_that_cannot_be_read(graph: GraphInProcess) -> None:
    path = graph.project.folder / "data" / "docs" / "0.jsonl"
    path.write_text(path.read_text() + "{broken\n")
    lines = len(path.read_text().splitlines())
    assert f"0.jsonl, line {lines}" in sentence(graph, "corpus/docs", "normalized_corpus/docs")


def test_a_wrong_configuration_is_what_the_ui_says_first(tmp_path: Path) -> None:
    """Dagster puts an error that is none of its own below a line about loading definitions."""
    project = write_small_project(tmp_path)
    project.edit("vocab_size: 600", "vocab_sice: 600")
    command = [sys.executable, "-c", "import tokpack_assets.definitions"]
    result = subprocess.run(command, env=environment(project), capture_output=True, text=True)
    said = f"{project.configs}/project.yaml:14: tokenizers.bpe_600.vocab_sice: unknown key; did you mean `vocab_size`?"
    assert result.stderr.splitlines()[-1] == f"dagster._core.errors.DagsterInvalidDefinitionError: {said}"
    assert result.stderr.count("Traceback") == 1
