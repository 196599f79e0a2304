"""`tokpack config check`: everything that is wrong with the configuration, before anything is built.

Beyond what every command checks when it reads the files: that the corpora's paths lead to files, that the files which
tokenizers name exist, and that schedules name assets of the graph. Source files are looked at, not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokpack_core.commands.results import console, counted, print_json
from tokpack_core.config.faults import Entry
from tokpack_core.config.files import LoadedConfig, load_config
from tokpack_core.corpus.files import find_files
from tokpack_core.errors import InputError
from tokpack_core.stages.graph import plan_graph
from tokpack_core.stages.schedules import check_schedules


def check_and_show(folder: Path, json: bool) -> None:
    """Raises ConfigError with a line for every fault."""
    loaded = load_config(folder)
    for entry in loaded.entries:
        check_files(entry, loaded)
    check_schedules(loaded)
    loaded.faults.stop()
    facts = describe(loaded)
    if json:
        print_json(facts)
        return
    for section, names in facts.items():
        if isinstance(names, list) and names:
            console().print(f"{section}: {', '.join(names)}")
    console().print(f"no fault; {counted(facts['source_files'], 'source file')}, {counted(facts['assets'], 'asset')}")


def describe(loaded: LoadedConfig) -> dict[str, Any]:
    project = loaded.project
    return {
        "corpora": list(project.corpora),
        "tokenizers": list(project.tokenizers),
        "datasets": list(project.datasets),
        "schedules": list(project.schedules),
        "source_files": sum(len(find_files(corpus.paths, project.base)) for corpus in project.corpora.values()),
        "assets": len(plan_graph(project)),
    }


def check_files(entry: Entry, loaded: LoadedConfig) -> None:
    project = loaded.project
    if entry.section == "corpora" and entry.name in project.corpora:
        for number, pattern in enumerate(project.corpora[entry.name].paths):
            try:
                find_files([pattern], project.base)
            except InputError as error:
                loaded.faults.add_at(entry, ("paths", number), str(error))
    elif entry.section == "tokenizers" and entry.name in project.tokenizers:
        config = project.tokenizers[entry.name]
        named = {"path": config.path, "parallel": config.parallel, "seed_vocabulary": config.seed_vocabulary}
        for key, path in named.items():
            if path is not None and not (project.base / path).exists():
                loaded.faults.add_at(entry, (key,), f"there is no {project.base / path}; correct it")
