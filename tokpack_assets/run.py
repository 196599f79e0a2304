"""Materializes the graph in this process: `tokpack build`."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from tokpack_assets.build_defs import build_defs
from tokpack_assets.dead_runs import end_dead_runs
from tokpack_assets.environment import prepare_dagster_home
from tokpack_assets.sources import report_sources
from tokpack_core.config import Project
from tokpack_core.engine import Engine
from tokpack_core.errors import ConfigError, TokpackError
from tokpack_core.stages import tokenizer
from tokpack_core.stages.graph import plan_graph, select
from tokpack_core.stages.unit import OnProgress
from tokpack_core.store.store import open_store

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True)
class BuildOutcome:
    """What a build did.

    Attributes:
        assets: by key, in order: the figures that Dagster's UI shows.
        failures: one sentence each.
        warnings: checks that failed without blocking.
    """

    assets: dict[str, dict[str, Any]]
    failures: list[str]
    warnings: list[str]

    def total(self, name: str) -> int:
        return sum(shown[name] for shown in self.assets.values())


def run_build(
    project: Project,
    store: Path,
    engine: Engine,
    names: list[str],
    on_progress: OnProgress,
    retrain: bool = False,
) -> BuildOutcome:
    """Builds the named assets and all they stand on; everything when no name is given.

    Args:
        retrain: train the tokenizers again that are among the named assets, or all when none is named.

    Raises:
        ConfigError: there is no such asset, or none of the named ones is a tokenizer to retrain.
        TokpackError: the store or Dagster's folder cannot be used.
        KeyboardInterrupt: the build was interrupted.
    """
    plans = select(plan_graph(project), names)
    again = retrain_keys(project, names) if retrain else frozenset()
    # No pool: a killed build would keep its slot, and where no daemon runs nobody frees it for the next one.
    definitions = build_defs(project, store, engine, on_progress, again, pool=None)
    open_store(store, create=True)
    with open_instance() as instance:
        report_sources(project, instance)
        result = dg.materialize(
            list(definitions.assets or []),  # type: ignore[arg-type]
            selection=dg.AssetSelection.assets(*(plan.key.split("/") for plan in plans)),
            instance=instance,
            run_config=QUIET,
            raise_on_error=False,
        )
    events = list(result.all_events)
    steps = {dg.AssetKey(plan.key.split("/")).to_python_identifier(): plan.key for plan in plans}
    if any(is_interruption(event) for event in events):
        raise KeyboardInterrupt
    return BuildOutcome(dict(built_assets(events)), list(failures(events, steps)), list(warnings(events)))


@contextmanager
def open_instance() -> Iterator[dg.DagsterInstance]:
    """Dagster's instance in DAGSTER_HOME; it makes its databases when it is opened first, which only one may do.

    Raises:
        TokpackError: the folder, its dagster.yaml or its databases cannot be used.
    """
    home = prepare_dagster_home()
    folder = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        instance = dg.DagsterInstance.get()
    except Exception as error:  # what YAML, SQLite and Dagster raise has no common base
        said = " ".join(str(error).split())
        raise TokpackError(
            f"{home}: Dagster cannot use this folder ({said[:300]}); mend it, or name another in DAGSTER_HOME"
        ) from error
    finally:
        os.close(folder)
    with instance:
        end_dead_runs(instance)
        yield instance


def is_interruption(event: dg.DagsterEvent) -> bool:
    """Whether a step ended because the user stopped the build."""
    error = event.step_failure_data.error if event.is_step_failure else None
    return error is not None and "DagsterExecutionInterruptedError" in (
        error.cls_name,
        error.cause and error.cause.cls_name,
    )


def retrain_keys(project: Project, names: list[str]) -> frozenset[str]:
    known = [tokenizer.asset_key(name) for name in project.tokenizers]
    chosen = [key for key in known if key in names] if names else known
    if not chosen:
        raise ConfigError(f"--retrain: name a tokenizer to train again; there are {', '.join(known)}")
    return frozenset(chosen)


def built_assets(events: list[dg.DagsterEvent]) -> Iterator[tuple[str, dict[str, Any]]]:
    for event in events:
        if event.is_step_materialization and event.asset_key:
            metadata = event.step_materialization_data.materialization.metadata
            plain = {
                name: value.value
                for name, value in metadata.items()
                if isinstance(value.value, str | int | float | dict)
            }
            yield event.asset_key.to_user_string(), plain


def failed_checks(events: list[dg.DagsterEvent]) -> Iterator[dg.AssetCheckEvaluation]:
    for event in events:
        if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            evaluation = event.asset_check_evaluation_data
            if not evaluation.passed:
                yield evaluation


def warnings(events: list[dg.DagsterEvent]) -> Iterator[str]:
    for check in failed_checks(events):
        if not check.blocking:
            yield f"{check.asset_key.to_user_string()}: {check.description}"


def failures(events: list[dg.DagsterEvent], steps: Mapping[str, str]) -> Iterator[str]:
    """One sentence for each asset that failed by itself; what could not run for lack of it is not named.

    Args:
        steps: the asset of each step.
    """
    explained = set()
    for check in failed_checks(events):
        if check.blocking:
            explained.add(check.asset_key.to_user_string())
            yield f"{check.asset_key.to_user_string()}: {check.check_name} failed: {check.description}"
    for event in events:
        if event.is_step_failure:
            key = steps[event.step_key or ""]
            data = event.step_failure_data
            if key in explained:
                continue
            said = data.user_failure_data.description if data.user_failure_data else None
            cause = data.error.cause or data.error if data.error else None
            yield f"{key}: {said or (cause.message.strip() if cause else 'failed')}"
