"""What Dagster costs where nothing is to do: loading the definitions, `tokpack build`, a run from the UI.

    python benchmarks/dagster_times.py DEMO      # a folder that `tokpack demo` has built; takes about a minute

Wall seconds and CPU-seconds of this process's children, the best of three.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPEATS = 3
LOAD = "import tokpack_assets.definitions"
TOKPACK = [sys.executable, "-c", "from tokpack_assets.cli import main; main()"]
LAUNCH = """mutation($p: ExecutionParams!) { launchRun(executionParams: $p) {
    ... on LaunchRunSuccess { run { runId } } } }"""
STATUS = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status startTime endTime creationTime } } }"


def best(work: Callable[[], None]) -> tuple[float, float]:
    """Wall and CPU seconds of the quickest of three."""
    times = []
    for _ in range(REPEATS):
        wall, before = time.monotonic(), children_seconds()
        work()
        times.append((time.monotonic() - wall, children_seconds() - before))
    return min(times)


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def call(*command: str, environment: dict[str, str]) -> None:
    subprocess.run(command, env=environment, check=True, capture_output=True)


def ask(url: str, query: str, **variables: Any) -> Any:
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)["data"]


def runs_from_the_ui(environment: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds from the launch of the job that rebuilds everything to its end, in a running instance."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [*TOKPACK, "dev", "-p", str(port)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        location = wait_for_location(url)
        return min(one_run(url, location, server.pid) for _ in range(REPEATS))
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


def wait_for_location(url: str) -> str:
    for _ in range(240):
        try:
            entries = ask(url, "{ workspaceOrError { ... on Workspace { locationEntries { name loadStatus } } } }")
            (entry,) = entries["workspaceOrError"]["locationEntries"]
            if entry["loadStatus"] == "LOADED":
                return str(entry["name"])
        except (OSError, ValueError, KeyError):
            pass
        time.sleep(0.5)
    raise SystemExit("the webserver did not start")


def group_seconds(group: int) -> float:
    """CPU seconds of all processes of a group and of their children that have ended."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def one_run(url: str, location: str, group: int) -> tuple[float, float]:
    selector = {
        "repositoryLocationName": location,
        "repositoryName": "__repository__",
        "pipelineName": "rebuild_all",
    }
    before = group_seconds(group)
    run = ask(url, LAUNCH, p={"selector": selector, "runConfigData": {}})["launchRun"]["run"]["runId"]
    while True:
        found = ask(url, STATUS, id=run)["runOrError"]
        if found["status"] in ("SUCCESS", "FAILURE"):
            assert found["status"] == "SUCCESS"
            return float(found["endTime"] - found["creationTime"]), group_seconds(group) - before
        time.sleep(0.25)


def main() -> None:
    demo = Path(sys.argv[1]).absolute()
    names = {
        "TOKPACK_CONFIGS": demo / "configs",
        "TOKPACK_STORE": demo / "store",
        "DAGSTER_HOME": demo / "dagster_home",
    }
    environment = {**os.environ, **{name: str(path) for name, path in names.items()}}
    call(*TOKPACK, "build", environment=environment)
    for name, work in {
        "definitions load": lambda: call(sys.executable, "-c", LOAD, environment=environment),
        "tokpack build, nothing to do": lambda: call(*TOKPACK, "build", environment=environment),
    }.items():
        wall, cpu = best(work)
        print(f"{name}: {wall:.1f} s, {cpu:.1f} CPU-seconds")
    wall, cpu = runs_from_the_ui(environment)
    print(f"run from the UI, nothing to do: {wall:.1f} s, {cpu:.1f} CPU-seconds")


if __name__ == "__main__":
    main()
