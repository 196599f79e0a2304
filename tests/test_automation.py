"""What is built without being asked: exactly what depends on a change, and nothing when content stays the same."""

import json
import re
import time

import dagster as dg
import pytest

from tests.dagster_server import DagsterServer, dagster_dev, python_module
from tests.small_project import SmallProject, write_small_project
from tokpack_assets.build_defs import build_defs
from tokpack_assets.sources import report_sources
from tokpack_core.engine import LocalEngine
from tokpack_core.errors import ConfigError
from tokpack_core.stages.schedules import load_with_schedules
from tokpack_core.store import history
from tokpack_core.store.store import open_store

BUILT_FROM_DOCS = {
    "corpus/docs",
    "normalized_corpus/docs",
    "vocabulary_report/bpe_600",
    "tokenized_shards/bpe_600/docs",
    "packed_sequences/base",
    "megatron_dataset/base",
}


@pytest.fixture
def project(tmp_path: object) -> SmallProject:
    return write_small_project(tmp_path)  # type: ignore[arg-type]


class Automation:
    """The conditions of the real definitions, tick by tick, on an instance of their own."""

    def __init__(self, project: SmallProject) -> None:
        self.project = project
        self.instance = dg.DagsterInstance.ephemeral()
        self.cursor: object = None

    def definitions(self) -> dg.Definitions:
        return build_defs(self.project.load(), self.project.store, LocalEngine(1))

    def materialize(self, keys: set[str] | None = None) -> bool:
        assets = list(self.definitions().assets or [])
        chosen = None if keys is None else dg.AssetSelection.assets(*(key.split("/") for key in keys))
        return dg.materialize(assets, instance=self.instance, selection=chosen, raise_on_error=False).success  # type: ignore[arg-type]

    def tick(self) -> set[str]:
        report_sources(self.project.load(), self.instance)
        result = dg.evaluate_automation_conditions(self.definitions(), self.instance, cursor=self.cursor)  # type: ignore[arg-type]
        self.cursor = result.cursor
        return {r.key.to_user_string() for r in result.results if not r.true_subset.is_empty}

    def settle(self) -> list[set[str]]:
        """Builds what is asked for, tick by tick, until two ticks ask for nothing."""
        layers: list[set[str]] = []
        quiet = 0
        while quiet < 2:
            asked = self.tick()
            quiet = 0 if asked else quiet + 1
            if asked:
                layers.append(asked)
                self.materialize(asked)
            assert len(layers) < 12
        return layers


@pytest.fixture
def automation(project: SmallProject) -> Automation:
    built = Automation(project)
    report_sources(project.load(), built.instance)
    assert built.materialize()
    assert built.settle() == []
    return built


def test_a_changed_corpus_rebuilds_what_depends_on_it_layer_by_layer(automation: Automation) -> None:
    path = automation.project.folder / "data" / "docs" / "1.jsonl"
    path.write_text(path.read_text() + '{"id": "new", "text": "a new document", "lang": "en"}\n')
    layers = automation.settle()
    assert layers[0] == {"corpus/docs"}
    assert layers[1] == {"normalized_corpus/docs"}
    assert set().union(*layers) == BUILT_FROM_DOCS
    assert sum(map(len, layers)) == len(BUILT_FROM_DOCS)


def test_a_touched_file_stops_at_the_inventory(automation: Automation) -> None:
    path = automation.project.folder / "data" / "docs" / "1.jsonl"
    path.write_bytes(path.read_bytes())
    assert automation.settle() == [{"corpus/docs"}]


def test_a_changed_configuration_rebuilds_its_own_chain(automation: Automation) -> None:
    automation.project.edit("sequence_length: 512", "sequence_length: 256")
    assert automation.settle() == [{"packed_sequences/base"}, {"megatron_dataset/base"}]


def test_a_changed_limit_rebuilds_nothing(automation: Automation) -> None:
    automation.project.edit("max_rare_token_share: 0.5", "max_rare_token_share: 0.6")
    assert automation.settle() == []


def test_a_failed_gate_stops_automation_behind_it(automation: Automation) -> None:
    automation.project.edit("max_rare_token_share: 0.5", "max_rare_token_share: 0.0")
    automation.project.edit("rare_below: 2", "rare_below: 50")
    path = automation.project.folder / "data" / "docs" / "1.jsonl"
    path.write_text(path.read_text() + '{"id": "new", "text": "a new document", "lang": "en"}\n')
    assert set().union(*automation.settle()) == {"corpus/docs", "normalized_corpus/docs", "vocabulary_report/bpe_600"}


def test_a_tokenizer_that_is_to_follow_its_text_does(project: SmallProject) -> None:
    project.edit("    sample_bytes: 200KB", "    sample_bytes: 200KB\n    retrain: auto")
    automation = Automation(project)
    report_sources(project.load(), automation.instance)
    automation.materialize()
    assert automation.settle() == []
    (project.folder / "data" / "code" / "more.txt").write_text("qqzz " * 5000)
    assert "tokenizer_model/bpe_600" in set().union(*automation.settle())


SCHEDULES = """
schedules:
  nightly: {cron: "0 3 * * *", timezone: Asia/Shanghai}
  hourly_report: {cron: "5 * * * *", assets: [vocabulary_report/bpe_600]}
"""


def add_schedules(project: SmallProject, text: str = SCHEDULES) -> None:
    path = project.configs / "project.yaml"
    path.write_text(path.read_text() + text)


def test_schedules(project: SmallProject) -> None:
    add_schedules(project)
    repository = build_defs(project.load(), project.store, LocalEngine(1)).get_repository_def()
    found = {s.name: s for s in repository.schedule_defs}
    assert (found["nightly"].cron_schedule, found["nightly"].execution_timezone) == ("0 3 * * *", "Asia/Shanghai")
    assert found["hourly_report"].execution_timezone == "UTC"
    job = repository.get_job("hourly_report_build")
    assert sorted(key.to_user_string() for key in job.asset_layer.executable_asset_keys) == [
        "corpus/code",
        "corpus/docs",
        "normalized_corpus/code",
        "normalized_corpus/docs",
        "tokenizer_model/bpe_600",
        "vocabulary_report/bpe_600",
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0 3 * * *", "0 25 * * *", "is no cron expression"),
        ("0 3 * * *", "0 3 * * * *", "is no cron expression of five fields"),
        ("0 3 * * *", "0 3 31 2 *", "names a date that never comes"),
        ("nightly:", "automation:", "`automation` is the name of a sensor; rename the schedule"),
        ("nightly:", "source_files:", "`source_files` is the name of a sensor; rename the schedule"),
        ("Asia/Shanghai", "Asia/Atlantis", "is no time zone"),
        (
            "report/bpe_600]",
            "report/bpe_60]",
            "no asset vocabulary_report/bpe_60; did you mean `voc",
        ),
    ],
)
def test_a_wrong_schedule_is_told(project: SmallProject, old: str, new: str, said: str) -> None:
    add_schedules(project, SCHEDULES.replace(old, new))
    with pytest.raises(ConfigError, match=said) as raised:
        load_with_schedules(project.configs)
    assert re.match(r".*/project.yaml:2\d: schedules\.", str(raised.value))


START_SENSOR = """mutation($s: SensorSelector!) { startSensor(sensorSelector: $s) { __typename } }"""
START_SCHEDULE = "mutation($s: ScheduleSelector!) { startSchedule(scheduleSelector: $s) { __typename } }"
STOP_SCHEDULE = "mutation($id: String!) { stopRunningSchedule(id: $id) { __typename } }"
SCHEDULE = """query($s: ScheduleSelector!) { scheduleOrError(scheduleSelector: $s) {
    ... on Schedule { scheduleState { id } } } }"""
RUNS = """{ runsOrError { ... on Runs { results { runId tags { key value } assetSelection { path }
    assetMaterializations { assetKey { path }
        metadataEntries { label ... on IntMetadataEntry { intValue } } } } } } }"""
REST_SECONDS = 45
"""Three evaluations of the conditions."""


def runs(server: DagsterServer, tag: str) -> list[dict]:
    """Runs with a tag, newest first."""
    found = server.query(RUNS)["runsOrError"]["results"]
    return [run for run in found if tag in {t["key"] for t in run["tags"]}]


def start_automation(server: DagsterServer) -> None:
    selector = {"repositoryName": "__repository__", "repositoryLocationName": server.location()}
    started = server.query(START_SENSOR, s=selector | {"sensorName": "automation"})["startSensor"]
    assert started["__typename"] == "Sensor"


def add_document(project: SmallProject, name: str) -> None:
    path = project.folder / "data" / "docs" / "1.jsonl"
    document = {"id": name, "text": f"a new document {name}", "lang": "en"}
    path.write_text(path.read_text() + json.dumps(document) + "\n")


def wait_for_new_version(project: SmallProject, asset: str, server: DagsterServer) -> None:
    store = open_store(project.store)
    before = history.require_latest(store, asset)
    end = time.monotonic() + 400
    while history.require_latest(store, asset) == before:
        assert time.monotonic() < end, server.query(RUNS)
        time.sleep(2)


def test_the_real_daemon_rebuilds_a_changed_corpus_and_then_rests(project: SmallProject) -> None:
    with dagster_dev(project, python_module("dagster", "dev", "-w", "workspace.yaml")) as server:
        assert server.wait(server.launch("rebuild_all")) == "SUCCESS"
        start_automation(server)
        store = open_store(project.store)
        before = {key: history.require_latest(store, key) for key in history.list_assets(store)}
        add_document(project, "new")
        wait_for_new_version(project, "megatron_dataset/base", server)
        after = {key: history.require_latest(store, key) for key in before}
        assert {key for key in before if after[key] != before[key]} == BUILT_FROM_DOCS
        launched = len(runs(server, "dagster/from_automation_condition"))
        time.sleep(REST_SECONDS)
        assert len(runs(server, "dagster/from_automation_condition")) == launched


@pytest.mark.slow
def test_the_real_daemon_keeps_the_schedule_and_the_gate(project: SmallProject) -> None:
    """A scheduled run in which nothing changed executes no unit; a failed blocking check stops automation behind it."""
    add_schedules(project, "schedules:\n  each_minute: {cron: '* * * * *'}\n")
    with dagster_dev(project, python_module("dagster", "dev", "-w", "workspace.yaml")) as server:
        selector = {"repositoryName": "__repository__", "repositoryLocationName": server.location()}
        selector["scheduleName"] = "each_minute"
        schedule = server.query(SCHEDULE, s=selector)["scheduleOrError"]["scheduleState"]["id"]
        server.query(STOP_SCHEDULE, id=schedule)
        assert server.wait(server.launch("rebuild_all")) == "SUCCESS"
        before = len(runs(server, "dagster/schedule_name"))
        server.query(START_SCHEDULE, s=selector)
        end = time.monotonic() + 200
        while len(runs(server, "dagster/schedule_name")) == before:
            assert time.monotonic() < end
            time.sleep(2)
        run = runs(server, "dagster/schedule_name")[0]["runId"]
        assert server.wait(run) == "SUCCESS"
        # Not before: the daemon writes the schedule's state at the end of the tick that launched the run.
        server.query(STOP_SCHEDULE, id=schedule)
        (scheduled,) = [found for found in runs(server, "dagster/schedule_name") if found["runId"] == run]
        units = {
            "/".join(event["assetKey"]["path"]): entry["intValue"]
            for event in scheduled["assetMaterializations"]
            for entry in event["metadataEntries"]
            if entry["label"] == "units_run"
        }
        store = open_store(project.store)
        assert units == dict.fromkeys(history.list_assets(store), 0)

        project.edit("max_rare_token_share: 0.5", "max_rare_token_share: 0.0")
        project.edit("rare_below: 2", "rare_below: 50")
        assert server.reload() is None
        newest = {key: history.require_latest(store, key) for key in history.list_assets(store)}
        start_automation(server)
        add_document(project, "other")
        wait_for_new_version(project, "vocabulary_report/bpe_600", server)
        time.sleep(REST_SECONDS)
        changed = {key for key in newest if history.require_latest(store, key) != newest[key]}
        assert changed == {"corpus/docs", "normalized_corpus/docs", "vocabulary_report/bpe_600"}
        automatic = runs(server, "dagster/from_automation_condition")
        assert {"/".join(key["path"]) for run in automatic for key in run["assetSelection"]} == changed
