"""Watches the source folders: a cheap stat of every file gives the data version of `source/<corpus>`."""

from pathlib import Path

import dagster as dg

from tokpack_core.config import Project
from tokpack_core.corpus.files import find_files
from tokpack_core.errors import InputError
from tokpack_core.stages.corpus import fingerprint
from tokpack_core.stages.graph import source_key
from tokpack_core.store.actions import json_digest

INTERVAL_SECONDS = 60


def source_spec(project: Project, corpus: str) -> dg.AssetSpec:
    """The external asset that stands for a corpus's files."""
    paths = ", ".join(project.corpora[corpus].paths)
    return dg.AssetSpec(
        source_key(corpus).split("/"),
        group_name="corpora",
        description=f"Source files of `{corpus}`: {paths}. Watched by size and time; hashed by corpus/{corpus}.",
        kinds={"file"},
    )


def data_version(paths: tuple[str, ...], base: Path) -> str:
    return json_digest(fingerprint(find_files(paths, base)))


def source_sensor(project: Project) -> dg.SensorDefinition:
    """Reports a new data version of each corpus whose files have other names, sizes or times than before."""

    @dg.sensor(name="source_files", minimum_interval_seconds=INTERVAL_SECONDS)
    def source_files(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        events = []
        problems = []
        for corpus, config in project.corpora.items():
            key = dg.AssetKey(source_key(corpus).split("/"))
            try:
                version = data_version(config.paths, project.base)
            except InputError as error:
                problems.append(f"{corpus}: {error}")
                continue
            newest = context.instance.get_latest_materialization_event(key)
            tags = newest.asset_materialization.tags if newest and newest.asset_materialization else None
            if not tags or tags.get("dagster/data_version") != version:
                events.append(dg.AssetMaterialization(key, tags={"dagster/data_version": version}))
        if not events:
            return dg.SkipReason("; ".join(problems) or "no source file changed")
        return dg.SensorResult(asset_events=events)

    return source_files
