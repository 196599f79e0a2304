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


@dataclass(frozen=True)
class DagsterServer:
    url: str

    def query(self, text: str, **variables: Any) -> Any:
        body = json.dumps({"query": text, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = json.load(response)
        assert "errors" not in answer, answer
        return answer["data"]

    def launch(self, job: str) -> str:
        selector = {"repositoryLocationName": "tokpack", "repositoryName": "__repository__", "pipelineName": job}
        launched = self.query(
            """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) { __typename
            ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }""",
            params={"selector": selector, "runConfigData": {}},
        )["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def wait(self, run: str, seconds: float = 240) -> str:
        """The final status of a run."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            status = self.query("query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }", id=run)
            if status["runOrError"]["status"] in ("SUCCESS", "FAILURE", "CANCELED"):
                return str(status["runOrError"]["status"])
            time.sleep(1)
        raise AssertionError(f"run {run} did not end within {seconds} s")


@contextmanager
def dagster_dev(project: SmallProject, command: list[str]) -> Iterator[DagsterServer]:
    """Runs `command` with `-p PORT` until the block ends; the server answers when the block starts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = (project.folder / "dagster.log").open("wb")
    process = subprocess.Popen(
        [*command, "-p", str(port)],
        cwd=ROOT,
        env=environment(project),
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    server = DagsterServer(f"http://127.0.0.1:{port}")
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
    for _ in range(120):
        assert process.poll() is None, (project.folder / "dagster.log").read_text()
        try:
            server.query("{ version }")
            return
        except OSError:
            time.sleep(0.5)
    raise AssertionError((project.folder / "dagster.log").read_text())


def python_module(*arguments: str) -> list[str]:
    return [sys.executable, "-m", *arguments]
