"""What `dagster dev`, `dg` and workspace.yaml load: the graph of the configuration folder."""

import dagster as dg

from tokpack_assets.build_defs import build_defs
from tokpack_assets.environment import configs_folder, engine_of, store_folder
from tokpack_core.errors import TokpackError
from tokpack_core.stages.schedules import load_with_schedules

try:
    project = load_with_schedules(configs_folder())
    defs = build_defs(project, store_folder(), engine_of(project))
except TokpackError as error:
    # Dagster shows its own errors as they are, and puts others below a line of its own.
    raise dg.DagsterInvalidDefinitionError(str(error)) from None
