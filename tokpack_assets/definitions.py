"""What `dagster dev`, `dg` and workspace.yaml load: the graph of the configuration folder."""

from tokpack_assets.build_defs import build_defs
from tokpack_assets.environment import configs_folder, engine_of, store_folder
from tokpack_core.config_files import load_project

project = load_project(configs_folder())
defs = build_defs(project, store_folder(), engine_of(project))
