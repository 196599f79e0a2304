"""`tokpack compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tokpack_core.cli.options import (
    AsJson,
    OutputFolder,
    RankRegex,
    show_errors,
)
from tokpack_core.cli.read_options import AS_USUAL, Files, ReadOptions, with_read_options

app = typer.Typer(add_completion=False)


@app.command()
@with_read_options()
def compare(
    files: Files,
    output: OutputFolder,
    tokenizer: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]PATH", help="A tokenizer that takes part; several times.", show_default=False),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="The one all others are compared with.", show_default="the first")
    ] = None,
    parallel: Annotated[
        Path | None, typer.Option(help="Parallel text, .jsonl: tokens per aligned sentence by language.")
    ] = None,
    morphemes: Annotated[
        Path | None, typer.Option(help="Gold list, WORD, tab, MORPHEMES a line: do tokens end where morphemes do?")
    ] = None,
    model_seeds: Annotated[
        int, typer.Option(min=0, help="Small torch models trained with each tokenizer: bits per byte.")
    ] = 0,
    model_bytes: Annotated[int, typer.Option(min=10_000, help="Text that each small model reads.")] = 1_000_000,
    sweep_size: Annotated[
        list[int] | None, typer.Option(min=1, help="A vocabulary size at which families are trained; several times.")
    ] = None,
    sweep_family: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FAMILY",
            help="Trained at each size; several times.",
            show_default="byte_bpe, wordpiece, sentencepiece_unigram",
        ),
    ] = None,
    sweep_seeds: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Entries, one a line: the sweep has seeded_unigram, which starts from them."),
    ] = None,
    train: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Text that the sweep trains on; several times.")
    ] = None,
    pretokenizer: RankRegex = None,
    read: ReadOptions = AS_USUAL,
    json: AsJson = False,
) -> None:
    """Compare tokenizers on held-out files, language by language: DIR/comparison.json, .html and tables as .csv.

    FILE: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders and globs too. None of them should be text
    that a tokenizer was trained on.
    """
    with show_errors(json):
        from tokpack_core.commands import compare as command
        from tokpack_core.commands import results
        from tokpack_core.errors import InputError

        if bool(sweep_size) != bool(train) or not (tokenizer or sweep_size):
            raise InputError("give --tokenizer, or --sweep-size with the --train files of the sweep, or both")
        named = command.open_candidates(tokenizer or [], pretokenizer)
        if baseline is not None and baseline not in named:
            raise InputError(f"--baseline {baseline} is none of the tokenizers: {', '.join(named)}")
        reading = read.open(files)
        training = read.open(train) if train else None
        extras = command.Extras(
            parallel=parallel,
            morphemes=morphemes,
            seeds=model_seeds,
            model_bytes=model_bytes,
            sizes=tuple(sorted(set(sweep_size or ()))),
            families=command.swept_families(sweep_family, sweep_seeds),
            training=training,
            seed_vocabulary=sweep_seeds,
        )
        first = baseline or next(iter(named), "")
        manifest = command.compare_files(named, first, reading, extras, output, json)
        if json:
            results.print_json(manifest)
        else:
            for sentence in manifest["counts"].pop("findings"):
                results.console().print(f"  {sentence}", markup=False)
            results.show_run(manifest, json)
