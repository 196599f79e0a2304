"""Ends runs whose process is gone: killed, or of a machine that was switched off.

Dagster marks such a run as failed only while the server that started it lives; else it stays `Started` for ever, and
keeps its slot of the pool from every later run. A local instance, in SQLite, has all its processes on this machine, so
that a process id which is not here is dead.
"""

from __future__ import annotations

import re

import dagster as dg
from dagster._core.storage.runs import SqliteRunStorage

from tokpack_core.store.holders import lives

UNFINISHED = [
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
PROCESS = re.compile(r"\(pid: (\d+)\)")
MESSAGE = (
    "The process of this run is gone: it was killed, or the machine stopped. Run it again: finished units are kept."
)


def end_dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """Marks them as failed, frees their slots, and gives their ids."""
    if not isinstance(instance.run_storage, SqliteRunStorage):
        return []
    runs = instance.get_runs(dg.RunsFilter(statuses=UNFINISHED))
    dead = [run for run in runs if (process := process_of(instance, run.run_id)) is not None and not lives(process)]
    for run in dead:
        instance.report_run_failed(run, message=MESSAGE)
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
    return [run.run_id for run in dead]


def process_of(instance: dg.DagsterInstance, run: str) -> int | None:
    """Id of the process that executes a run, from what the run's log says first."""
    for event in instance.all_logs(run, of_type=dg.DagsterEventType.ENGINE_EVENT):
        if found := PROCESS.search(event.dagster_event.message or "" if event.dagster_event else ""):
            return int(found[1])
    return None
