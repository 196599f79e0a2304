"""The production instance of docs/deploy.md: code server, daemon and webserver apart, on a real PostgreSQL server."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.dagster_server import ROOT, DagsterServer, free_port, wait_until_answers
from tests.postgres_server import ask, postgres_server, programs
from tests.small_project import SmallProject, write_small_project
from tokpack_assets.dead_runs import PROCESS
from tokpack_core.store import history
from tokpack_core.store.store import open_store

DEPLOY = ROOT / "deploy"
DAGSTER = Path(sys.executable).parent
RUNS = "{ runsOrError { ... on Runs { results { runId parentRunId } } } }"


def test_the_files_are_what_dagster_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every key of the instance is known to Dagster, and the page names the files."""
    shutil.copy(DEPLOY / "dagster.yaml", tmp_path)
    monkeypatch.setenv("DAGSTER_PG_URL", "postgresql+psycopg2://nobody@127.0.0.1:1/none")
    from dagster._core.instance.config import dagster_instance_config

    settings, _ = dagster_instance_config(str(tmp_path))
    assert settings["storage"]["postgres"]
    assert settings["concurrency"]["runs"]["max_concurrent_runs"] == 4
    workspace = YAML(typ="safe").load(DEPLOY / "workspace.yaml")
    (server,) = (entry["grpc_server"] for entry in workspace["load_from"])
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    assert f"-h {server['host']} -p {server['port']}" in page
    assert "deploy/dagster.yaml" in page
    assert "deploy/workspace.yaml" in page


@contextmanager
def service(project: SmallProject, environment: dict[str, str], name: str, *arguments: str) -> Iterator[int]:
    """One program of the deployment, until the block ends: its process id."""
    with (project.folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [DAGSTER / name, *arguments],
            cwd=project.folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def kill_a_run(project: SmallProject, server: DagsterServer) -> None:
    """A run whose process is killed fails, and the daemon starts it again."""
    path = project.folder / "data" / "docs" / "1.jsonl"
    path.write_text(path.read_text() + '{"id": "new", "text": "a new document", "lang": "en"}\n')
    run = server.launch("rebuild_all")
    server.wait_for(run, "Started execution of step")
    processes = (PROCESS.search(message) for message in server.messages(run))
    os.kill(next(int(found[1]) for found in processes if found), signal.SIGKILL)
    assert server.wait(run) == "FAILURE"
    end = time.monotonic() + 120
    while not (again := [r["runId"] for r in server.query(RUNS)["runsOrError"]["results"] if r["parentRunId"] == run]):
        assert time.monotonic() < end
        time.sleep(1)
    assert server.wait(again[0]) == "SUCCESS"


@pytest.mark.slow
@pytest.mark.skipif(programs() is None, reason="needs PostgreSQL")
def test_a_production_instance(tmp_path: Path) -> None:
    """A run that is launched while the daemon is dead waits in the queue, and is done when the daemon is back."""
    project = write_small_project(tmp_path)
    home = tmp_path / "dagster_home"
    home.mkdir()
    shutil.copy(DEPLOY / "dagster.yaml", home)
    code_port, web_port = free_port(), free_port()
    workspace = (DEPLOY / "workspace.yaml").read_text().replace("port: 4000", f"port: {code_port}")
    (home / "workspace.yaml").write_text(workspace)
    with ExitStack() as stack:
        url = stack.enter_context(postgres_server("dagster"))
        names = {"TOKPACK_CONFIGS": str(project.configs), "TOKPACK_STORE": str(project.store), "TOKPACK_WORKERS": "1"}
        names |= {"DAGSTER_HOME": str(home), "DAGSTER_PG_URL": url.replace("postgresql:", "postgresql+psycopg2:")}
        environment = {**os.environ, **names, "PYTHONPATH": str(ROOT)}
        code = ["code-server", "start", "-m", "tokpack_assets.definitions", "-h", "127.0.0.1", "-p", str(code_port)]
        stack.enter_context(service(project, environment, "dagster", *code))
        where = ["-w", str(home / "workspace.yaml")]
        web = ["-h", "127.0.0.1", "-p", str(web_port)]
        stack.enter_context(service(project, environment, "dagster-webserver", *where, *web))
        server = DagsterServer(f"http://127.0.0.1:{web_port}")
        repositories = "{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }"
        wait_until_answers(server, repositories, "__repository__")
        run = server.launch("rebuild_all")
        assert server.status(run) == "QUEUED"
        with service(project, environment, "dagster-daemon", "run", *where):
            assert server.wait(run) == "SUCCESS"
            kill_a_run(project, server)
        store = open_store(project.store)
        recorded = ask(url, "SELECT asset_key FROM asset_keys")
        keys = {"/".join(YAML(typ="safe").load(str(row[0]))) for row in recorded}
        assert set(history.list_assets(store)) <= keys
        events = (
            f"SELECT count(*) FROM event_logs WHERE run_id = '{run}' AND dagster_event_type = 'ASSET_MATERIALIZATION'"
        )
        assert ask(url, events) == [(10,)]
