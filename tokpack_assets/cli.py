"""Where `tokpack` starts. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

from tokpack_assets.startup import PROGRAM

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer.main import get_command_name
from typer.models import CommandInfo

from tokpack_core.cli.app import app as core
from tokpack_core.cli.options import AsJson, show_errors
from tokpack_core.errors import InputError

app = typer.Typer(
    name=PROGRAM,
    help="From raw text to packed, verified Megatron datasets.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
)

Assets = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ASSET]...", show_default=False),
]


@app.command()
def build(
    assets: Assets = None,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train the named tokenizers again (all if no asset is named).")
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: TOKPACK_WORKERS, else all.")] = None,
    engine: Annotated[
        Literal["local", "ray"] | None, typer.Option(help="Where units run; default: as configured.")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="The Ray cluster; default: as configured.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Build assets and all they stand on; what exists already is reused.

    ASSET: keys, e.g. `megatron_dataset/base_4k`; all when none is named.
    """
    from tokpack_assets.building import build_and_show

    with show_errors(json):
        build_and_show(assets or [], retrain, json, workers, engine, ray_address)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where the demo is built.")] = Path("demo"),
    offline: Annotated[
        bool, typer.Option("--offline", help="Use only Python's standard library as text; needs no network.")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also train a tokenizer of every family, and compare them.")
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: TOKPACK_WORKERS, else all.")] = None,
    json: AsJson = False,
) -> None:
    """Build real Chinese, English, code and ~90 more languages into a Megatron dataset, and explain the result."""
    from tokpack_assets.demo import run_demo

    with show_errors(json):
        run_demo(folder, offline, compare, workers, json)


@app.command()
def dev(
    port: Annotated[int, typer.Option("--port", "-p", help="Port on 127.0.0.1.")] = 3000,
) -> None:
    """Open the Dagster UI on this machine: materialize, observe, explain.

    Vocabulary reports are served on the next port, or where TOKPACK_REPORTS says.
    """
    from tokpack_assets import report_server
    from tokpack_assets.build_defs import build_defs
    from tokpack_assets.environment import HOST, configs_folder, engine_of, store_folder
    from tokpack_assets.run import open_instance
    from tokpack_core.stages.schedules import load_with_schedules
    from tokpack_core.store.store import open_store

    with show_errors():
        project = load_with_schedules(configs_folder())
        build_defs(project, store_folder(), engine_of(project))
        open_store(store_folder(), create=True)
        with open_instance():
            pass
    if not os.environ.get("TOKPACK_REPORTS"):
        os.environ["TOKPACK_REPORTS"] = f"http://{HOST}:{port + 1}"
        report_server.start(store_folder(), port + 1)
    arguments = ["-m", "tokpack_assets.definitions", "-h", HOST, "-p", str(port)]
    print(f"the Dagster UI opens on http://{HOST}:{port}", flush=True)
    os.execv(sys.executable, [sys.executable, "-W", "ignore", "-m", "dagster", "dev", *arguments])


def refuse_other_encodings(arguments: list[str]) -> None:
    """The name of a file may be any bytes; all else ends in a manifest or a tokenizer, as text."""
    for argument in arguments:
        is_text = not any("\ud800" <= character <= "\udfff" for character in argument)
        if not is_text and not os.path.lexists(argument) and not set("*?[").intersection(argument):
            raise InputError(f"the argument {argument} is no UTF-8 and names no file that exists: write it in UTF-8")


def asked_for(arguments: list[str]) -> list[CommandInfo]:
    """The command that is named, or all: to make the options of all takes longer than a small command."""
    named = [command for command in core.registered_commands if name_of(command) in arguments[:1]]
    return named or core.registered_commands


def name_of(command: CommandInfo) -> str:
    return command.name or get_command_name(command.callback.__name__ if command.callback else "")


def main() -> None:
    app.registered_commands += asked_for(sys.argv[1:])
    app.registered_groups += core.registered_groups
    try:
        with show_errors("--json" in sys.argv):
            refuse_other_encodings(sys.argv[1:])
    except typer.Exit as ended:
        sys.exit(ended.exit_code)
    app()
