"""`tokpack report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tokpack_core.cli.options import (
    AsJson,
    OutputFolder,
    RankRegex,
    TokenizerPath,
    show_errors,
)
from tokpack_core.cli.read_options import AS_USUAL, Files, ReadOptions, with_read_options

app = typer.Typer(add_completion=False)


@app.command()
@with_read_options(images=True)
def report(
    files: Files,
    tokenizer: TokenizerPath,
    output: OutputFolder,
    parallel: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Parallel sentences (.jsonl): what the same content costs by language."),
    ] = None,
    parameters: Annotated[
        float | None, typer.Option(min=1, help="Of the model it is for, with --d-model: share of embeddings.")
    ] = None,
    d_model: Annotated[int | None, typer.Option("--d-model", min=1, help="Width of the model's embeddings.")] = None,
    pretokenizer: RankRegex = None,
    read: ReadOptions = AS_USUAL,
    json: AsJson = False,
) -> None:
    """Show how a tokenizer's vocabulary is used by files: DIR/report.json and DIR/report.html.

    FILE: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders, globs and URLs (s3://...) too.
    """
    with show_errors(json):
        from tokpack_core.commands import report as command
        from tokpack_core.commands import results
        from tokpack_core.commands.arrow_alone import leave_pandas_out
        from tokpack_core.commands.opened_tokenizer import open_tokenizer

        leave_pandas_out()
        reading = read.open(files)
        options = command.Options(parallel, command.model_shape(parameters, d_model))
        opened = open_tokenizer(tokenizer, pretokenizer=pretokenizer)
        results.show_run(command.report(opened, reading, options, output, json), json)
