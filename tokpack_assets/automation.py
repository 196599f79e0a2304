"""When assets are built without being asked: after a change of what they stand on, and at scheduled times."""

import dagster as dg
from dagster import AutomationCondition

from tokpack_core.config import Project, ScheduleConfig
from tokpack_core.config.project import AUTOMATION_SENSOR
from tokpack_core.stages.graph import AssetPlan, plan_graph, select

SENSOR_SECONDS = 15


def rebuild_condition(plan: AssetPlan, project: Project) -> AutomationCondition:
    """Build when missing, when the code version changed, or when the content of what it reads changed.

    Dagster's own `eager` also fires for a rebuild with the same content, and not for a changed code version. A frozen
    tokenizer does not follow its text: it is shown as out of date, and trained again on request. What reads an asset
    that is about to be built waits for it, so that shards never run beside the report that is their gate.
    """
    changed: AutomationCondition = AutomationCondition.code_version_changed()
    if not is_frozen(plan, project):
        changed = changed | AutomationCondition.any_deps_match(AutomationCondition.data_version_changed())
    missing = AutomationCondition.missing() & ~AutomationCondition.execution_failed()
    return (
        (missing | changed.since_last_handled())
        & ~AutomationCondition.any_deps_missing()
        & ~AutomationCondition.any_deps_in_progress()
        & ~AutomationCondition.any_deps_match(AutomationCondition.will_be_requested())
        & ~AutomationCondition.in_progress()
        & AutomationCondition.all_deps_blocking_checks_passed()
    )


def is_frozen(plan: AssetPlan, project: Project) -> bool:
    name = plan.key.rpartition("/")[2]
    return plan.stage == "tokenizer_model" and project.tokenizers[name].retrain == "on_request"


def automation_sensor() -> dg.AutomationConditionSensorDefinition:
    """Evaluates the conditions once it is switched on in the UI's Automation page; off at first."""
    return dg.AutomationConditionSensorDefinition(
        AUTOMATION_SENSOR, target=dg.AssetSelection.all(), minimum_interval_seconds=SENSOR_SECONDS
    )


def schedules(project: Project) -> list[dg.ScheduleDefinition]:
    """One running schedule for each entry of `schedules:`; when nothing changed, its run executes no unit."""
    return [make_schedule(name, config, project) for name, config in project.schedules.items()]


def make_schedule(name: str, config: ScheduleConfig, project: Project) -> dg.ScheduleDefinition:
    plans = select(plan_graph(project), list(config.assets))
    keys = [dg.AssetKey(plan.key.split("/")) for plan in plans]
    return dg.ScheduleDefinition(
        name=name,
        job=dg.define_asset_job(f"{name}_build", selection=dg.AssetSelection.assets(*keys)),
        cron_schedule=config.cron,
        execution_timezone=config.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
