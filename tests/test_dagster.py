"""The graph as Dagster sees it: definitions and `tokpack build`."""

import json
import os
import signal
import subprocess
import time
from io import StringIO
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from rich.console import Console

from tests.dagster_server import TOKPACK, environment
from tests.small_project import SmallProject, write_small_project
from tokpack_assets.build_defs import build_defs
from tokpack_assets.building import build_with_bar, show_outcome, text_changes
from tokpack_assets.run import BuildOutcome, is_interruption, run_build
from tokpack_core.engine import LocalEngine
from tokpack_core.errors import ConfigError
from tokpack_core.store import history
from tokpack_core.store.store import open_store


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    return write_small_project(tmp_path)


def tokpack(project: SmallProject, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TOKPACK, *arguments], cwd=project.folder, env=environment(project), capture_output=True, text=True
    )


def specs(project: SmallProject) -> dict[str, dg.AssetSpec]:
    definitions = build_defs(project.load(), project.store, LocalEngine(1))
    return {spec.key.to_user_string(): spec for spec in definitions.resolve_all_asset_specs()}


def test_the_graph_of_the_design(project: SmallProject) -> None:
    found = specs(project)
    upstream = {key: sorted(dep.asset_key.to_user_string() for dep in spec.deps) for key, spec in found.items()}
    normalized = ["normalized_corpus/code", "normalized_corpus/docs"]
    encoded = ["tokenized_shards/bpe_600/code", "tokenized_shards/bpe_600/docs"]
    report = ["tokenizer_model/bpe_600", "vocabulary_report/bpe_600"]
    assert upstream == {
        "source/code": [],
        "source/docs": [],
        "corpus/code": ["source/code"],
        "corpus/docs": ["source/docs"],
        "normalized_corpus/code": ["corpus/code"],
        "normalized_corpus/docs": ["corpus/docs"],
        "tokenizer_model/bpe_600": normalized,
        "vocabulary_report/bpe_600": [*normalized, "tokenizer_model/bpe_600"],
        "tokenized_shards/bpe_600/code": ["normalized_corpus/code", *report],
        "tokenized_shards/bpe_600/docs": ["normalized_corpus/docs", *report],
        "packed_sequences/base": encoded,
        "megatron_dataset/base": ["packed_sequences/base", *encoded],
    }
    assert {spec.group_name for spec in found.values()} == {"corpora", "tokenizers", "datasets"}


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("sequence_length: 512", "sequence_length: 256", {"packed_sequences/base"}),
        ("docs: 2.0", "docs: 3.0", {"megatron_dataset/base"}),
        ("vocab_size: 600", "vocab_size: 700", {"tokenizer_model/bpe_600"}),
        ("lang: code", "lang: py", {"normalized_corpus/code"}),
        ("max_rare_token_share: 0.5", "max_rare_token_share: 0.4", set()),
        ("min_packing_utilization: 0.5", "min_packing_utilization: 0.4", set()),
    ],
)
def test_code_versions_follow_what_shapes_the_bytes(
    project: SmallProject, old: str, new: str, changed: set[str]
) -> None:
    before = {key: spec.code_version for key, spec in specs(project).items()}
    project.edit(old, new)
    after = {key: spec.code_version for key, spec in specs(project).items()}
    assert {key for key in before if before[key] != after[key]} == changed


def test_build_from_the_command_line(project: SmallProject) -> None:
    first = tokpack(project, "build", "--json")
    assert first.returncode == 0, first.stderr
    assets = json.loads(first.stdout)["assets"]
    store = open_store(project.store)
    for key, shown in assets.items():
        entry = history.require_latest(store, key)
        assert shown["digest"] == entry.object.digest
        assert entry.run
        assert shown["units_run"] >= 1
    (changes,) = text_changes(assets["normalized_corpus/docs"])
    assert changes.startswith("nfc changed 1 documents (")
    again = json.loads(tokpack(project, "build", "--json").stdout)["assets"]
    assert {key: shown["units_run"] for key, shown in again.items()} == dict.fromkeys(assets, 0)
    assert {key: shown["digest"] for key, shown in again.items()} == {k: s["digest"] for k, s in assets.items()}


def test_one_asset_is_built_with_all_it_stands_on(project: SmallProject) -> None:
    result = tokpack(project, "build", "vocabulary_report/bpe_600", "--json")
    assert list(json.loads(result.stdout)["assets"])[-1] == "vocabulary_report/bpe_600"
    assert "megatron_dataset/base" not in json.loads(result.stdout)["assets"]


def test_a_failed_gate_is_one_sentence_and_stops_what_is_downstream(project: SmallProject) -> None:
    project.edit("max_rare_token_share: 0.5", "max_rare_token_share: 0.0")
    project.edit("rare_below: 2", "rare_below: 50")
    result = tokpack(project, "build")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("error: vocabulary_report/bpe_600: rare_token_share failed: ")
    assert "Traceback" not in result.stderr + result.stdout
    assert history.latest(open_store(project.store), "tokenized_shards/bpe_600/docs") is None


def test_what_a_build_says_is_shown_as_it_is() -> None:
    """Tokens and file names may look like markup, and a sentence stays in one line for what reads it."""
    said = "vocabulary_report/a: rarest: [/b] (id 7), [red] (id 8), " + "long " * 30
    console = Console(file=StringIO(), width=60)
    show_outcome(BuildOutcome({}, [], [said]), console)
    assert f"warning  {said}" in console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_two_underscores_in_a_name(project: SmallProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster makes the name of a step of its asset's key with two underscores for a slash."""
    monkeypatch.setenv("DAGSTER_HOME", str(project.folder / "home"))
    project.edit("bpe_600", "bpe__600")
    project.edit("    sample_bytes", "    parallel: none.jsonl\n    sample_bytes")
    wanted = ["vocabulary_report/bpe__600"]
    outcome = run_build(project.load(), project.store, LocalEngine(1), wanted, lambda _: None)
    assert len(outcome.failures) == 1
    assert outcome.failures[0].startswith("vocabulary_report/bpe__600: tokenizers.bpe__600: there is no file")


def test_two_pairs_that_dagster_could_not_tell_apart(project: SmallProject) -> None:
    more = """
  other: {tokenizer: bpe_600__b, mixture: {code: 1.0}, packing: {sequence_length: 64}}
tokenizers:
  bpe_600__b: {family: byte_bpe, vocab_size: 300, train_on: {code: 1.0}, special_tokens: {eod: "<e>"}}
corpora:
  b__code: {paths: [data/code]}
"""
    file = project.configs / "more.yaml"
    file.write_text("datasets:" + more)
    project.load()
    project.edit("mixture: {docs: 2.0, code: 1.0}", "mixture: {docs: 2.0, b__code: 1.0}")
    with pytest.raises(ConfigError, match=r"`b__code` by `bpe_600`.* would have one name in Dagster; rename one"):
        project.load()


def test_wrong_input_is_one_sentence(project: SmallProject) -> None:
    path = project.folder / "data" / "docs" / "0.jsonl"
    path.write_text(path.read_text() + "{broken\n")
    lines = len(path.read_text().splitlines())
    result = tokpack(project, "build")
    assert result.returncode == 1
    errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert f"0.jsonl, line {lines}" in errors[0]
    assert "Traceback" not in result.stderr + result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["build", "megatron_dataset/bose"], "there is no asset megatron_dataset/bose"),
        (["build", "--retrain", "corpus/docs"], "name a tokenizer to train again; there are tokenizer_model/bpe_600"),
    ],
)
def test_wrong_names_are_one_sentence(project: SmallProject, arguments: list[str], said: str) -> None:
    result = tokpack(project, *arguments)
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert said in result.stderr


def test_a_wrong_configuration_is_told_before_anything_runs(project: SmallProject) -> None:
    project.edit("vocab_size: 600", "vocab_sice: 600")
    result = tokpack(project, "build")
    assert result.returncode == 1
    assert "project.yaml:14: tokenizers.bpe_600.vocab_sice: unknown key; did you mean `vocab_size`?" in result.stderr
    assert not project.store.exists()


@pytest.mark.parametrize(
    ("store", "home", "said"),
    [
        ("data", None, "data: this folder holds other files; name an empty or new folder for the store"),
        ("store", "configs/project.yaml", "configs/project.yaml: Dagster cannot keep its history here"),
        ("store", "broken", "broken: Dagster cannot use this folder (while parsing"),
    ],
)
def test_folders_that_cannot_be_used_are_one_sentence(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch, store: str, home: str | None, said: str
) -> None:
    """Whatever the configuration has, before anything runs."""
    monkeypatch.setenv("TOKPACK_STORE", store)
    (project.folder / "broken").mkdir()
    (project.folder / "broken" / "dagster.yaml").write_text("{", encoding="utf-8")
    monkeypatch.setenv("DAGSTER_HOME", home or "")
    result = subprocess.run([*TOKPACK, "build"], cwd=project.folder, capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert said in result.stderr
    assert home is None or not (project.folder / "dagster_home").exists()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TOKPACK_STORE", "data", "data: this folder holds other files; name an empty or new folder for the store"),
        ("TOKPACK_STORE", "/proc/none/store", "/proc/none/store: cannot create the store at /proc/none"),
        ("TOKPACK_WORKERS", "many", "TOKPACK_WORKERS"),
        ("TOKPACK_STORE", "store", "yaml:1: schedules.k.assets.0: there is no asset megatron_dataset/none"),
    ],
)
def test_the_ui_is_not_opened_on_what_cannot_be_used(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    if value == "store":
        project.edit("corpora:", "schedules: {k: {cron: '0 3 * * *', assets: [megatron_dataset/none]}}\ncorpora:")
    monkeypatch.setenv("DAGSTER_HOME", str(project.folder / "home"))
    monkeypatch.setenv(name, value)
    result = subprocess.run([*TOKPACK, "dev"], cwd=project.folder, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert said in result.stderr


def test_two_builds_at_once_in_a_fresh_folder(project: SmallProject) -> None:
    """Both make the store and Dagster's databases, which must not meet."""
    command = [*TOKPACK, "build", "corpus/docs"]
    builds = [
        subprocess.Popen(command, cwd=project.folder, env=environment(project), stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = [build.communicate()[1] for build in builds]
    assert [build.returncode for build in builds] == [0] * 4, said


def test_an_interrupted_step_is_no_failure() -> None:
    """Ctrl-C reaches Dagster inside of a step, which then counts as failed."""

    @dg.asset
    def stopped() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    @dg.asset
    def failed() -> None:
        raise ValueError

    for asset, expected in ((stopped, True), (failed, False)):
        result = dg.materialize([asset], instance=dg.DagsterInstance.ephemeral(), raise_on_error=False)
        assert any(is_interruption(event) for event in result.all_events) is expected


def test_a_trained_tokenizer_is_kept_until_asked(project: SmallProject) -> None:
    tokpack(project, "build", "tokenizer_model/bpe_600")
    (project.folder / "data" / "code" / "new.txt").write_text("qqzz " * 4000)
    kept = json.loads(tokpack(project, "build", "tokenizer_model/bpe_600", "--json").stdout)
    assert "its training text changed" in kept["assets"]["tokenizer_model/bpe_600"]["stale"]
    trained = json.loads(tokpack(project, "build", "--retrain", "tokenizer_model/bpe_600", "--json").stdout)
    assert "stale" not in trained["assets"]["tokenizer_model/bpe_600"]
    assert trained["assets"]["tokenizer_model/bpe_600"]["units_run"] == 1


def test_a_killed_build_leaves_the_next_one_free_to_finish(project: SmallProject) -> None:
    """Killed with all its processes when part of its work is published; the bytes are those of an undisturbed build."""
    undisturbed = project.folder / "undisturbed"
    expected = {key: built.entry.object for key, built in write_small_project(undisturbed).build().items()}
    process = subprocess.Popen(
        [*TOKPACK, "build"],
        cwd=project.folder,
        env=environment(project),
        start_new_session=True,
        stderr=subprocess.PIPE,
    )
    published = project.store / "assets" / "normalized_corpus"
    while process.poll() is None and not list(published.glob("*/*.json")):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    for _ in range(2):
        again = subprocess.run(
            [*TOKPACK, "build"], cwd=project.folder, env=environment(project), capture_output=True, timeout=150
        )
        assert again.returncode == 0, again.stderr
    store = open_store(project.store)
    assert {key: history.require_latest(store, key).object for key in expected} == expected


class TalkativeEngine(LocalEngine):
    """Prints on stdout while it works, as Ray does."""

    def map(self, function: Any, items: Any) -> Any:
        print("a node was lost")
        return super().map(function, items)


def test_stdout_is_for_what_the_build_did(project: SmallProject, capsys: pytest.CaptureFixture[str]) -> None:
    build_with_bar(project.load(), project.store, ["megatron_dataset/base"], False, TalkativeEngine(1), quiet=True)
    written = capsys.readouterr()
    assert written.out == ""
    assert "a node was lost" in written.err
