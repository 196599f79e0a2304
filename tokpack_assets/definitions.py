"""What `dagster dev`, `dg` and workspace.yaml load: the graph of the configuration folder."""

from tokpack_assets.build_defs import build_defs
from tokpack_assets.environment import configs_folder, store_folder
from tokpack_core.config_files import load_project
from tokpack_core.engine import default_engine

defs = build_defs(load_project(configs_folder()), store_folder(), default_engine())
