"""Where configuration, store and Dagster's instance are, from the environment."""

from __future__ import annotations

import os
from pathlib import Path

from tokpack_core.config import Project
from tokpack_core.engine import Engine, LocalEngine, default_engine, refuse_of_other_engine
from tokpack_core.errors import TokpackError
from tokpack_core.ray_engine import RayEngine

HOST = "127.0.0.1"
REPORTS_PORT = 3001
DAGSTER_YAML = """\
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  pools:
    default_limit: 1
    granularity: op
run_monitoring:
  enabled: true
  poll_interval_seconds: 15
  free_slots_after_run_end_seconds: 15
"""


def configs_folder() -> Path:
    return Path(os.environ.get("TOKPACK_CONFIGS") or "configs").absolute()


def store_folder() -> Path:
    return Path(os.environ.get("TOKPACK_STORE") or "store").absolute()


def reports_address() -> str:
    """Where the store's vocabulary reports are served: by `tokpack dev`, or where TOKPACK_REPORTS says."""
    return (os.environ.get("TOKPACK_REPORTS") or f"http://{HOST}:{REPORTS_PORT}").rstrip("/")


def engine_of(
    project: Project, name: str | None = None, workers: int | None = None, address: str | None = None
) -> Engine:
    """Where units run: as named here, else as configured.

    Raises:
        TokpackError: `workers`, or TOKPACK_WORKERS, or `address` does not go with it.
    """
    chosen = name or project.engine.name
    refuse_of_other_engine(chosen, address, workers)
    if chosen == "local":
        return LocalEngine(workers) if workers else default_engine()
    return RayEngine(address or project.engine.address)


def prepare_dagster_home() -> Path:
    """Sets DAGSTER_HOME, unless it is set, to `dagster_home` beside the store, and writes its dagster.yaml if none.

    Raises:
        TokpackError: the folder or the file cannot be made.
    """
    home = Path(os.environ.get("DAGSTER_HOME") or store_folder().parent / "dagster_home").absolute()
    os.environ["DAGSTER_HOME"] = str(home)
    settings = home / "dagster.yaml"
    try:
        home.mkdir(parents=True, exist_ok=True)
        if not settings.exists():
            draft = home / f"dagster.yaml.{os.getpid()}"  # another build must not read half of it
            draft.write_text(DAGSTER_YAML, encoding="utf-8")
            draft.replace(settings)
    except OSError as error:
        raise TokpackError(
            f"{home}: Dagster cannot keep its history here ({error.strerror}); name another folder in DAGSTER_HOME"
        ) from error
    return home
