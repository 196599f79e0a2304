"""Schedules against the graph: the assets that they name must be there."""

from __future__ import annotations

from pathlib import Path

from tokpack_core.config import Project
from tokpack_core.config.files import LoadedConfig, load_config
from tokpack_core.errors import ConfigError
from tokpack_core.stages.graph import plan_graph, select


def load_with_schedules(folder: Path) -> Project:
    """Reads and checks the configuration, schedules too.

    Raises:
        ConfigError: with a line for every fault found.
    """
    loaded = load_config(folder)
    check_schedules(loaded)
    loaded.faults.stop()
    return loaded.project


def check_schedules(loaded: LoadedConfig) -> None:
    """Only where all else is right: a fault elsewhere takes assets out of the graph."""
    if loaded.faults.found:
        return
    plans = plan_graph(loaded.project)
    for entry in loaded.entries:
        if entry.section == "schedules":
            for number, key in enumerate(loaded.project.schedules[entry.name].assets):
                try:
                    select(plans, [key])
                except ConfigError as error:
                    loaded.faults.add_at(entry, ("assets", number), str(error))
