"""Watches the source folders: a cheap stat of every file gives the data version of `source/<corpus>`."""

import dagster as dg

from tokpack_assets.links import DATA_VERSION_TAG
from tokpack_core.config import Project
from tokpack_core.config.project import SOURCE_SENSOR
from tokpack_core.corpus.files import find_files
from tokpack_core.errors import InputError
from tokpack_core.stages.corpus import source_key, source_version

INTERVAL_SECONDS = 60


def source_spec(project: Project, corpus: str) -> dg.AssetSpec:
    """The external asset that stands for a corpus's files."""
    paths = ", ".join(project.corpora[corpus].paths)
    return dg.AssetSpec(
        source_key(corpus).split("/"),
        group_name="corpora",
        description=f"Source files of `{corpus}`: {paths}. Watched by size and time; hashed by corpus/{corpus}.",
        kinds={"file"},
        owners=list(project.corpora[corpus].owners),
    )


def changed_sources(
    project: Project, instance: dg.DagsterInstance
) -> tuple[list[dg.AssetMaterialization], dict[str, str]]:
    """Events for the corpora whose files have other names, sizes or times than last reported, and what is wrong."""
    events = []
    problems = {}
    for corpus, config in project.corpora.items():
        key = dg.AssetKey(source_key(corpus).split("/"))
        try:
            files = find_files(config.paths, project.base)
        except InputError as error:
            problems[corpus] = str(error)
            continue
        version = source_version(files)
        newest = instance.get_latest_materialization_event(key)
        tags = newest.asset_materialization.tags if newest and newest.asset_materialization else None
        if not tags or tags.get(DATA_VERSION_TAG) != version:
            figures = {"files": len(files), "bytes": sum(file.size for file in files)}
            events.append(dg.AssetMaterialization(key, metadata=figures, tags={DATA_VERSION_TAG: version}))
    return events, problems


def report_sources(project: Project, instance: dg.DagsterInstance) -> None:
    """Tells Dagster of changed sources now, so that what is built next is in step with them."""
    for event in changed_sources(project, instance)[0]:
        instance.report_runless_asset_event(event)


def source_sensor(project: Project) -> dg.SensorDefinition:
    """Reports changed sources; starts no run."""

    @dg.sensor(
        name=SOURCE_SENSOR,
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def source_files(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        events, problems = changed_sources(project, context.instance)
        said = [f"corpus {corpus}: {problem}" for corpus, problem in problems.items()]
        if said:
            context.log.warning("; ".join(said))
        changed = ", ".join(event.asset_key.to_user_string() for event in events)
        said += [f"changed: {changed}"] if changed else []
        # Without a reason, Dagster says of a tick that starts no run that its result was empty.
        return dg.SensorResult(asset_events=events, skip_reason="; ".join(said) or "no source file changed")

    return source_files
