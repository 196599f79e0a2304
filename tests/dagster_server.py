"""The real Dagster webserver and daemon, started as a user would, on a free port of this machine."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.small_project import SmallProject
from tokpack_assets.environment import DAGSTER_YAML

ROOT = Path(__file__).parent.parent
TOKPACK = [sys.executable, "-c", "from tokpack_assets.cli import main; main()"]


def environment(project: SmallProject) -> dict[str, str]:
    """The variables of a user who works on `project`."""
    names: dict[str, object] = {"TOKPACK_CONFIGS": project.configs, "TOKPACK_STORE": project.store}
    names["TOKPACK_WORKERS"] = 1
    kept = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    home = project.folder / "dagster_home"
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text(DAGSTER_YAML)
    names["DAGSTER_HOME"] = home
    return kept | {name: str(value) for name, value in names.items()}


RELOAD = """mutation($name: String!) { reloadRepositoryLocation(repositoryLocationName: $name) {
    ... on WorkspaceLocationEntry { locationOrLoadError {
        ... on PythonError { message causes { message } } } } } }"""
LOG = """query($id: ID!) { logsForRun(runId: $id, limit: 1000) { ... on EventConnection { events {
    ... on MessageEvent { message }
    ... on ExecutionStepFailureEvent { error { message } failureMetadata { description } } } } } }"""


@dataclass(frozen=True)
class DagsterServer:
    """`process` leads the group of all that serves."""

    url: str
    process: int | None = None

    def query(self, text: str, **variables: Any) -> Any:
        body = json.dumps({"query": text, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = json.load(response)
        assert "errors" not in answer, answer
        return answer["data"]

    def location(self) -> str:
        entries = "{ workspaceOrError { ... on Workspace { locationEntries { name } } } }"
        return str(self.query(entries)["workspaceOrError"]["locationEntries"][0]["name"])

    def reload(self) -> str | None:
        """Reads the configuration again; what is wrong with it, if anything."""
        answer = self.query(RELOAD, name=self.location())["reloadRepositoryLocation"]
        error = answer.get("locationOrLoadError") or {}
        if "message" not in error:
            return None
        return "".join([error["message"], *(cause["message"] for cause in error["causes"])])

    def terminate(self, run: str) -> None:
        query = "mutation($id: String!) { terminateRun(runId: $id) { __typename } }"
        assert self.query(query, id=run)["terminateRun"]["__typename"] == "TerminateRunSuccess"

    def messages(self, run: str) -> list[str]:
        """The run's log, with the errors of its steps."""
        nodes = self.query(LOG, id=run)["logsForRun"]["events"]
        causes = [(node.get("error") or {}).get("message", "") for node in nodes]
        return [node["message"] for node in nodes] + [cause for cause in causes if cause]

    def wait_for(self, run: str, text: str, seconds: float = 120) -> None:
        """Waits until the run's log says `text`."""
        end = time.monotonic() + seconds
        while not any(text in message for message in self.messages(run)):
            assert time.monotonic() < end, self.messages(run)
            time.sleep(0.5)

    def launch(self, job: str = "__ASSET_JOB", *assets: str) -> str:
        """Starts a run of a job, or of the named assets."""
        selector: dict[str, Any] = {"repositoryName": "__repository__", "pipelineName": job}
        selector["repositoryLocationName"] = self.location()
        if assets:
            selector["assetSelection"] = [{"path": asset.split("/")} for asset in assets]
        launched = self.query(
            """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) { __typename
            ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }""",
            params={"selector": selector, "runConfigData": {}},
        )["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def status(self, run: str) -> str:
        answer = self.query("query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }", id=run)
        return str(answer["runOrError"]["status"])

    def wait(self, run: str, seconds: float = 500) -> str:
        """The final status of a run."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if (status := self.status(run)) in ("SUCCESS", "FAILURE", "CANCELED"):
                return status
            time.sleep(1)
        raise AssertionError(f"run {run} did not end within {seconds} s")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_answers(server: DagsterServer, question: str, answer: str, seconds: float = 200) -> None:
    """Waits until the server gives an answer to `question` that contains `answer`."""
    end = time.monotonic() + seconds
    said = ""
    while time.monotonic() < end:
        try:
            said = json.dumps(server.query(question))
            if answer in said:
                return
        except OSError as error:
            said = str(error)
        time.sleep(0.5)
    raise AssertionError(said)


@contextmanager
def dagster_dev(project: SmallProject, command: list[str]) -> Iterator[DagsterServer]:
    """Runs `command` with `-p PORT` until the block ends; the server answers when the block starts."""
    port = free_port()
    log = (project.folder / "dagster.log").open("wb")
    process = subprocess.Popen(
        [*command, "-p", str(port)],
        cwd=ROOT,
        env=environment(project),
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    server = DagsterServer(f"http://127.0.0.1:{port}", process.pid)
    try:
        wait_until_ready(server, process, project)
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        log.close()


def wait_until_ready(server: DagsterServer, process: subprocess.Popen[bytes], project: SmallProject) -> None:
    for _ in range(400):
        assert process.poll() is None, (project.folder / "dagster.log").read_text()
        try:
            server.query("{ version }")
            return
        except OSError:
            time.sleep(0.5)
    raise AssertionError((project.folder / "dagster.log").read_text())


def python_module(*arguments: str) -> list[str]:
    return [sys.executable, "-m", *arguments]
