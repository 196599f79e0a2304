"""Runs whose process is gone are ended when a local instance is opened; runs of living processes are left alone."""

import os
import subprocess
import sys
from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.utils import make_new_run_id

from tokpack_assets.dead_runs import MESSAGE, end_dead_runs


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as instance:
        yield instance


def started(instance: dg.DagsterInstance, process: int | None, status: dg.DagsterRunStatus) -> str:
    run = instance.add_run(dg.DagsterRun("rebuild_all", make_new_run_id(), status=status))
    if process is not None:
        instance.report_engine_event(f"Started process for run (pid: {process}).", run)
    return run.run_id


def test_only_dead_runs_end(instance: dg.DagsterInstance) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    unasked = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, unasked.pid, os.WEXITED | os.WNOWAIT)
    running = dg.DagsterRunStatus.STARTED
    dead = {started(instance, ended.pid, s) for s in (running, dg.DagsterRunStatus.CANCELING)}
    dead.add(started(instance, unasked.pid, running))
    alive = started(instance, os.getpid(), running)
    about_to_start = started(instance, None, dg.DagsterRunStatus.STARTING)
    done = started(instance, ended.pid, dg.DagsterRunStatus.SUCCESS)
    assert set(end_dead_runs(instance)) == dead
    found = {run.run_id: run.status for run in instance.get_runs()}
    assert {found[run] for run in dead} == {dg.DagsterRunStatus.FAILURE}
    assert (found[alive], found[about_to_start]) == (running, dg.DagsterRunStatus.STARTING)
    assert found[done] == dg.DagsterRunStatus.SUCCESS
    for run in dead:
        events = [event.dagster_event for event in instance.all_logs(run)]
        assert MESSAGE in {event.message for event in events if event}
    assert end_dead_runs(instance) == []
    unasked.wait()
