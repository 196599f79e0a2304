"""The commands about the configuration itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tokpack_core.cli.options import AsJson, show_errors

app = typer.Typer(name="config", help="Check the configuration, or print its schema for editors.", no_args_is_help=True)

Folder = Annotated[Path, typer.Option("--configs", envvar="TOKPACK_CONFIGS", help="The folder of configuration files.")]


@app.command()
def check(configs: Folder = Path("configs"), json: AsJson = False) -> None:
    """Say everything that is wrong with the configuration, with file, line and key; nothing is built."""
    with show_errors(json):
        from tokpack_core.commands.config_check import check_and_show

        check_and_show(configs.absolute(), json)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a configuration file.

    Editors with YAML support check and complete by it: save it beside the configuration, and start each file with
    `# yaml-language-server: $schema=tokpack.schema.json`.
    """
    from tokpack_core.commands.config_schema import config_schema
    from tokpack_core.commands.results import print_json

    print_json(config_schema())
