"""The commands that plan a vocabulary, and that make a tokenizer from another one."""

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
def plan(
    params: Annotated[float, typer.Option(help="Parameters beside the embeddings, as 7e9.", show_default=False)],
    d_model: Annotated[int, typer.Option(help="Width of an embedding.", show_default=False)],
    json: AsJson = False,
) -> None:
    """Vocabulary sizes for a model by the three approaches of arXiv 2407.13623, and what share of it they are."""
    with show_errors(json):
        from tokpack_core.commands.plan import plan_and_show

        plan_and_show(params, d_model, json)


@app.command()
@with_read_options()
def litetoken(
    files: Files,
    tokenizer: TokenizerPath,
    output: OutputFolder,
    max_residue_ratio: Annotated[
        float, typer.Option(min=0, max=1, help="Final occurrences over all, below which a token is a residue.")
    ] = 0.05,
    max_neighbor_entropy: Annotated[
        float, typer.Option(min=0, help="Bits of what consumes a token, below which it is a residue.")
    ] = 2.0,
    min_count: Annotated[int, typer.Option(min=1, help="Fewest occurrences, final and consumed.")] = 20,
    pretokenizer: RankRegex = None,
    read: ReadOptions = AS_USUAL,
    json: AsJson = False,
) -> None:
    """Take the residues out of a byte-level BPE (LiteToken): DIR, in which all other ids stay.

    FILE: text on which residues are found: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders, globs.
    """
    with show_errors(json):
        from tokpack_core.commands import litetoken as command
        from tokpack_core.commands import results
        from tokpack_core.commands.opened_tokenizer import open_tokenizer
        from tokpack_core.tokenizers.residues.residues import ResidueLimits

        limits = ResidueLimits(max_residue_ratio, max_neighbor_entropy, min_count)
        reading = read.open(files)
        opened = open_tokenizer(tokenizer, pretokenizer=pretokenizer)
        results.show_run(command.litetoken(opened, limits, reading, output, json), json)


@app.command()
@with_read_options()
def supertokens(
    files: Files,
    tokenizer: TokenizerPath,
    output: OutputFolder,
    top_k: Annotated[int, typer.Option(min=1, max=10**6, help="Tokens to append.")] = 250,
    min_frequency: Annotated[int, typer.Option(min=1, help="Fewest occurrences of a token.")] = 2,
    max_words: Annotated[
        int | None, typer.Option(min=2, help="Most words of a token.", show_default="no limit")
    ] = None,
    read: ReadOptions = AS_USUAL,
    json: AsJson = False,
) -> None:
    """Append frequent phrases of reasoning traces to a tokenizer.json: DIR, with what new embeddings start from.

    FILE: the traces: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders and globs too.
    """
    with show_errors(json):
        from tokpack_core.commands import results
        from tokpack_core.commands import supertokens as command
        from tokpack_core.commands.tokenizer_of_prefix import open_to_decode
        from tokpack_core.tokenizers.supertokens import ExtensionLimits

        limits = ExtensionLimits(top_k, min_frequency, max_words)
        reading = read.open(files)
        results.show_run(command.supertokens(open_to_decode(tokenizer), limits, reading, output, json), json)


@app.command()
def subset(
    tokenizer: Annotated[
        Path, typer.Argument(metavar="TOKENIZER", help="A folder with a modular tokenizer.", show_default=False)
    ],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder.", show_default=False)],
    languages: Annotated[str, typer.Option(metavar="A,B,...", help="Languages that stay.", show_default=False)],
    json: AsJson = False,
) -> None:
    """Write the sub-tokenizer of some languages of a modular tokenizer: the folder OUT, with the same ids."""
    with show_errors(json):
        from tokpack_core.commands import results
        from tokpack_core.commands import subset as command
        from tokpack_core.commands.opened_tokenizer import open_tokenizer

        results.show_run(command.subset(open_tokenizer(tokenizer), languages.split(","), output), json)


@app.command()
def minimum_cost(
    tokenizer: TokenizerPath, output: OutputFolder, pretokenizer: RankRegex = None, json: AsJson = False
) -> None:
    """Encode with the fewest tokens of a tokenizer's vocabulary: DIR, in which all ids mean what they meant."""
    with show_errors(json):
        from tokpack_core.commands import minimum_cost as command
        from tokpack_core.commands import results
        from tokpack_core.commands.opened_tokenizer import open_tokenizer

        results.show_run(command.minimum_cost(open_tokenizer(tokenizer, pretokenizer=pretokenizer), output), json)


@app.command()
@with_read_options(images=True)
def prune(
    files: Files,
    tokenizer: TokenizerPath,
    output: OutputFolder,
    below: Annotated[
        int, typer.Option(min=1, help="Entries that occur fewer times in the files are removed.", show_default=False)
    ],
    pretokenizer: RankRegex = None,
    read: ReadOptions = AS_USUAL,
    json: AsJson = False,
) -> None:
    """Remove rare entries from a BPE or Unigram tokenizer: the folder DIR with id_map.parquet (old, new).

    What other entries are merged from, single characters and special tokens stay. The cost in tokens is measured on
    the same files.

    FILE: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders and globs too.
    """
    with show_errors(json):
        from tokpack_core.commands import prune as command
        from tokpack_core.commands import results
        from tokpack_core.commands.opened_tokenizer import open_tokenizer

        reading = read.open(files)
        opened = open_tokenizer(tokenizer, pretokenizer=pretokenizer)
        results.show_run(command.prune(opened, reading, below, output, json), json)
