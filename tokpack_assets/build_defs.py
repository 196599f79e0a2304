"""The Dagster definitions that a configuration gives: one asset for each plan of the graph."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg

from tokpack_assets.automation import automation_sensor, rebuild_condition, schedules
from tokpack_assets.links import CODE_VERSION_TAG, INPUT_DATA_VERSION_TAG_PREFIX
from tokpack_assets.metadata import asset_metadata
from tokpack_assets.sources import source_sensor, source_spec
from tokpack_core.config import Project
from tokpack_core.engine import Engine
from tokpack_core.errors import TokpackError
from tokpack_core.stages.asset import Built, Workplace
from tokpack_core.stages.graph import AssetPlan, plan_graph
from tokpack_core.stages.unit import OnProgress, Progress
from tokpack_core.store.store import open_store
from tokpack_core.verdict import Verdict

CORES = "cores"
"""The pool of steps that use all cores: dagster.yaml lets one of them run at a time, whatever run it belongs to."""
CHECKS = {
    "rare_token_share": "Few vocabulary entries are rare in the training sample, or never seen.",
    "vocabulary_utilization": "Most vocabulary entries are seen in the training sample.",
    "unreachable_tokens": "Text can give all vocabulary entries, or nearly all.",
    "fairness": "No language takes many more tokens for the same sentences than the reference.",
    "round_trip": "Test documents come back from encode and decode as they were.",
    "normalization_agreement": "The tokenizer's own file gives raw text the ids of normalized text.",
    "pits": "The tokenizer has none of the common faults that the report looks for.",
    "packing_utilization": "Packs are filled with tokens, not with padding.",
    "nothing_lost": "Tokens in are tokens out, but for what policies were told to drop.",
    "readable_by_megatron": "Indices, lengths and sizes are as Megatron wants them; Megatron-Core opens all, if here.",
    "tokens_in_are_tokens_out": "As many tokens stand in the files as were planned.",
}
CONFIGURED, MADE_WITH = "configured", "made_with"
"""What of the configuration shapes an asset, as it is now and as it was for a version: Dagster counts it into the code
version, and of a difference says no more than that."""
PRELOADED = "tokpack_assets.preloaded"
LONGEST_TAG = 63
"""Dagster's limit of a tag's value."""
KINDS = {
    "corpus": {"inventory"},
    "normalized_corpus": {"parquet"},
    "tokenizer_model": {"tokenizer"},
    "vocabulary_report": {"html"},
    "tokenized_shards": {"megatron"},
    "packed_sequences": {"parquet"},
    "megatron_dataset": {"megatron"},
}


def build_defs(
    project: Project,
    store: Path,
    engine: Engine,
    on_progress: OnProgress | None = None,
    retrain: frozenset[str] = frozenset(),
    pool: str | None = CORES,
) -> dg.Definitions:
    """Assets, checks, sensors, schedules and a job that rebuilds everything.

    Args:
        on_progress: called after each unit, besides a line in the run's log.
        retrain: keys of frozen tokenizers to train again whenever they are materialized.
        pool: whose slot each step takes; a run that is killed leaves its slot to the daemon's run monitoring.
    """
    assets = [make_asset(plan, project, store, engine, on_progress, retrain, pool) for plan in plan_graph(project)]
    return dg.Definitions(
        assets=[*(source_spec(project, corpus) for corpus in project.corpora), *assets],
        jobs=[dg.define_asset_job("rebuild_all", selection=dg.AssetSelection.assets(*assets))],
        schedules=schedules(project),
        sensors=[source_sensor(project), automation_sensor()],
        executor=dg.multiprocess_executor.configured(
            {"start_method": {"forkserver": {"preload_modules": [PRELOADED]}}, "max_concurrent": 1}
        ),
    )


def make_asset(
    plan: AssetPlan,
    project: Project,
    store: Path,
    engine: Engine,
    on_progress: OnProgress | None,
    retrain: frozenset[str],
    pool: str | None,
) -> dg.AssetsDefinition:
    key = dg.AssetKey(plan.key.split("/"))

    @dg.asset(
        key=key,
        deps=[dg.AssetKey(name.split("/")) for name in plan.upstream],
        group_name=plan.group,
        description=plan.description,
        code_version=plan.code_version,
        metadata={CONFIGURED: dg.MetadataValue.json(plan.settings)},
        automation_condition=rebuild_condition(plan, project),
        pool=pool,
        kinds=KINDS[plan.stage],
        owners=list(plan.owners),
        tags={f"tokpack/{kind}": name[:LONGEST_TAG] for kind, name in plan.parts.items()},
        check_specs=[
            dg.AssetCheckSpec(name, asset=key, blocking=blocking, description=CHECKS.get(name))
            for name, blocking in plan.check_names.items()
        ],
        config_schema={"retrain": dg.Field(bool, default_value=False)} if plan.stage == "tokenizer_model" else None,
    )
    def materialize(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        begin = time.monotonic()

        def progress(now: Progress) -> None:
            context.log.info(now.describe())
            if on_progress:
                on_progress(now)

        asked = plan.key in retrain or bool((context.op_execution_context.op_config or {}).get("retrain"))
        try:
            work = Workplace(project, open_store(store, create=True), engine, progress, context.run_id, asked)
            built = plan.build(work)
            checks = list(check_results(plan.verdicts(work))) if plan.verdicts else []
        except TokpackError as error:
            raise dg.Failure(description=str(error), allow_retries=False) from error
        return dg.MaterializeResult(
            data_version=dg.DataVersion(built.entry.object.digest),
            metadata=asset_metadata(built, time.monotonic() - begin, context.instance)
            | {MADE_WITH: dg.MetadataValue.json(plan.settings)},
            check_results=checks,
            tags=provenance_tags(plan, built),
        )

    return materialize


def provenance_tags(plan: AssetPlan, built: Built) -> dict[str, str]:
    """What Dagster records of an asset's making: the versions that were read, and the code that made it.

    Left to itself, Dagster takes what was newest when the step began, so a frozen tokenizer that was kept would pass
    for one of the newest text and code, and not be shown as out of date.
    """
    tags = {
        f"{INPUT_DATA_VERSION_TAG_PREFIX}/{key}": version
        for key, version in built.made_from.items()
        if key in plan.upstream
    }
    if built.stale:
        _, _, parameters = plan.code_version.partition("-")
        tags[CODE_VERSION_TAG] = f"{built.code_version}-{parameters}"
    return tags


def check_results(verdicts: list[Verdict]) -> Iterator[dg.AssetCheckResult]:
    for verdict in verdicts:
        shown: dict[str, Any] = {
            "value": float(verdict.value),
            "limit": float(verdict.limit),
            "explanation": dg.MetadataValue.text(verdict.explanation),
        }
        yield dg.AssetCheckResult(
            check_name=verdict.name,
            passed=bool(verdict.passed),
            severity=dg.AssetCheckSeverity.ERROR if verdict.blocking else dg.AssetCheckSeverity.WARN,
            description=verdict.explanation,
            metadata=shown,
        )
