"""Where configuration, store and Dagster's instance are, from the environment."""

from __future__ import annotations

import os
from pathlib import Path

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
  free_slots_after_run_end_seconds: 300
"""


def configs_folder() -> Path:
    return Path(os.environ.get("TOKPACK_CONFIGS", "configs")).absolute()


def store_folder() -> Path:
    return Path(os.environ.get("TOKPACK_STORE", "store")).absolute()


def prepare_dagster_home() -> Path:
    """Sets DAGSTER_HOME, unless it is set, to `dagster_home` beside the store, and writes its dagster.yaml if none."""
    home = Path(os.environ.setdefault("DAGSTER_HOME", str(store_folder().parent / "dagster_home")))
    home.mkdir(parents=True, exist_ok=True)
    settings = home / "dagster.yaml"
    if not settings.exists():
        settings.write_text(DAGSTER_YAML, encoding="utf-8")
    return home
