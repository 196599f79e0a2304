"""Runs that do not end well, in the real webserver and daemon: cancelled, killed, and started on what is wrong.

Training a SentencePiece unigram model on a few megabytes stays in native code, which heeds no signal, for long.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command_line import tokpack
from tests.dagster_server import ROOT, TOKPACK, DagsterServer, dagster_dev, environment, python_module
from tests.small_project import SmallProject, write_small_project
from tokpack_assets.dead_runs import MESSAGE
from tokpack_core.store import history
from tokpack_core.store.store import open_store

LARGE = """\
  large:
    paths: [data/large]
tokenizers:
  slow:
    family: sentencepiece_unigram
    vocab_size: 8000
    train_on: {large: 1.0}
    special_tokens: {eod: "<|endoftext|>"}
    checks: {rare_below: 1, max_rare_token_share: 1.0, min_vocabulary_utilization: 0.0}
"""
TEXT = ("corpus/large", "normalized_corpus/large")
PROGRESS = re.compile(r"normalized_part: \d of \d units, \d+\.\d MB at \d+\.\d MB/s, \d+ s left")
UNITS = """query($path: [String!]!) { assetOrError(assetKey: {path: $path}) { ... on Asset {
    assetMaterializations(limit: 1) { metadataEntries { label ... on IntMetadataEntry { intValue } } } } } }"""


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    project = write_small_project(tmp_path)
    project.edit("tokenizers:\n", LARGE)
    (tmp_path / "data" / "large").mkdir()
    for number in range(6):
        with (tmp_path / "data" / "large" / f"{number}.jsonl").open("w", encoding="utf-8") as file:
            for document in range(80):
                first = (number * 80 + document) * 3_000
                words = (f"{word * 2654435761 % 2**40:x}" for word in range(first, first + 3_000))
                file.write(json.dumps({"text": " ".join(words)}) + "\n")
    return project


def units_run(server: DagsterServer, asset: str) -> int:
    (newest,) = server.query(UNITS, path=asset.split("/"))["assetOrError"]["assetMaterializations"]
    return next(int(e["intValue"]) for e in newest["metadataEntries"] if e["label"] == "units_run")


def start_training(server: DagsterServer) -> str:
    run = server.launch("__ASSET_JOB", *TEXT, "tokenizer_model/slow")
    server.wait_for(run, "tokenizer_model/slow: 0 of 1 unit")
    time.sleep(4)
    return run


@pytest.mark.slow
def test_runs_that_do_not_end_well(project: SmallProject) -> None:
    store = open_store(project.store, create=True)
    command = [*TOKPACK, "dev"]
    with dagster_dev(project, command) as server:
        run = start_training(server)
        assert any(PROGRESS.fullmatch(message) for message in server.messages(run))
        server.terminate(run)
        assert server.wait(run, 20) == "CANCELED"
        assert history.latest(store, "tokenizer_model/slow") is None
        tokpack(project.folder, "verify", project.store)

        again = server.launch("__ASSET_JOB", *TEXT)
        assert server.wait(again) == "SUCCESS"
        assert units_run(server, "normalized_corpus/large") == 0

        run = start_training(server)
        assert server.process
        os.killpg(server.process, signal.SIGKILL)
    with dagster_dev(project, command) as server:
        assert server.status(run) == "FAILURE"
        assert MESSAGE in server.messages(run)
        assert server.wait(server.launch("__ASSET_JOB", "corpus/large")) == "SUCCESS"

        (project.folder / "data" / "large").rename(project.folder / "moved")
        run = server.launch("__ASSET_JOB", *TEXT)
        assert server.wait(run) == "FAILURE"
        gone = f"corpus large: data/large: gives no file to read, for there is no {project.folder}/data/large; restore"
        assert any(gone in message for message in server.messages(run)), server.messages(run)

        project.edit("train_on: {large: 1.0}", "train_on: {larch: 1.0}")
        said = server.reload()
        assert said
        assert said.startswith(f"dagster._core.errors.DagsterInvalidDefinitionError: {project.configs}/project.yaml:")
        assert "tokenizers.slow.train_on: there is no corpus `larch`; did you mean `large`?" in said
        project.edit("train_on: {larch: 1.0}", "train_on: {large: 1.0}")
        (project.configs / "second.yaml").write_text("corpora:\n  docs: {paths: [data/code]}\n", encoding="utf-8")
        said = server.reload()
        assert said
        assert "second.yaml:2: corpora.docs is already defined at" in said


def test_a_run_keeps_the_configuration_that_it_began_with(tmp_path: Path) -> None:
    """An edit in the middle, wrong at that, is for later runs; Dagster would wait for ever for a step that fails so."""
    project = write_small_project(tmp_path)
    schedule = "schedules:\n  two_steps: {cron: '0 3 * * *', assets: [normalized_corpus/code]}\n"
    (project.configs / "schedule.yaml").write_text(schedule, encoding="utf-8")
    command = python_module("dagster", "job", "execute", "-m", "tokpack_assets.definitions", "-j", "two_steps_build")
    run = subprocess.Popen(
        command, cwd=ROOT, env=environment(project), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        assert run.stdout
        for line in run.stdout:
            if "corpus__code - STEP_SUCCESS" in line:
                break
        project.edit("vocab_size: 600", "vocab_sice: 600")
        said, _ = run.communicate(timeout=120)
    finally:
        run.kill()
    assert "RUN_SUCCESS" in said
    assert run.returncode == 0
    assert history.latest(open_store(project.store), "normalized_corpus/code")
    command = [sys.executable, "-c", "import tokpack_assets.preloaded"]
    later = subprocess.run(command, env=environment(project), capture_output=True, text=True)
    assert later.stderr.splitlines()[-1].startswith(f"ImportError: {project.configs}/project.yaml:14: tokenizers.bpe_6")
