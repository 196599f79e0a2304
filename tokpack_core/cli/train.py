"""`tokpack train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tokpack_core.cli.options import (
    LARGEST,
    AsJson,
    OutputFolder,
    show_errors,
)
from tokpack_core.cli.read_options import AS_USUAL, Files, ReadOptions, with_read_options

app = typer.Typer(add_completion=False)

Family = Literal[
    "byte_bpe",
    "sentencepiece_bpe",
    "sentencepiece_unigram",
    "wordpiece",
    "character",
    "word",
    "superbpe",
    "boundless_bpe",
    "modular_bpe",
    "modular_unigram",
    "cnf_mce",
]
UnicodeForm = Literal["nfc", "nfkc", "none"]


@app.command()
@with_read_options(images=True)
def train(
    files: Files,
    family: Annotated[Family, typer.Option(help="Kind of tokenizer.", show_default=False)],
    output: OutputFolder,
    vocab_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=LARGEST,
            help="Special tokens included; modular: by language.",
            show_default="the sum of --allocation",
        ),
    ] = None,
    special_token: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE=STRING", help="Roles eod, pad, bos, unk, image, as eod=<|endoftext|>; several times."
        ),
    ] = None,
    unicode: Annotated[UnicodeForm, typer.Option(help="Unicode form that the tokenizer gives all text.")] = "nfc",
    pretokenizer: Annotated[
        str | None,
        typer.Option(
            help="byte_bpe, modular_bpe, word, superbpe, boundless_bpe, cnf_mce: regex that splits text: gpt2, cl100k, "
            "o200k, superbpe, qwen2, llama3, deepseek_v3 or regex:PATTERN.",
            show_default="cl100k",
        ),
    ] = None,
    digits: Annotated[
        Literal["free", "single", "groups_left", "groups_right"] | None,
        typer.Option(
            help="How runs of digits are split.",
            show_default="as the pretokenizer does",
        ),
    ] = None,
    min_frequency: Annotated[
        int | None,
        typer.Option(min=1, help="All but sentencepiece: least count.", show_default="2"),
    ] = None,
    tie_break: Annotated[
        Literal["hugging_face", "lexicographic_greatest", "lexicographic_smallest"] | None,
        typer.Option(
            help="BPE: which of the most frequent pairs is merged.",
            show_default="hugging_face",
        ),
    ] = None,
    max_token_length: Annotated[
        int | None, typer.Option(min=2, help="byte_bpe, cnf_mce: tokens have fewer bytes.", show_default="no limit, 33")
    ] = None,
    max_pretoken_bytes: Annotated[
        int | None, typer.Option(min=1, help="byte_bpe: longer pretokens are left out.", show_default="no limit")
    ] = None,
    alphabet: Annotated[
        Literal["all_bytes", "seen_bytes"] | None,
        typer.Option(help="byte_bpe: bytes that have an id.", show_default="all_bytes"),
    ] = None,
    character_coverage: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="sentencepiece, wordpiece: characters with a piece.", show_default="0.9995"),
    ] = None,
    required_characters: Annotated[
        Literal["gb2312_level_1"] | None,
        typer.Option(help="byte_bpe, sentencepiece: characters that get an entry however rare.", show_default="none"),
    ] = None,
    allocation: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DOMAIN=ENTRIES",
            help="byte_bpe, sentencepiece: entries for the documents of a language, a file or a folder, or for "
            "`reserved` special tokens; several times.",
        ),
    ] = None,
    id_layout: Annotated[
        Literal["hugging_face", "megatron_tiktoken"] | None,
        typer.Option(help="byte_bpe: order of ids; the other is that of Megatron's.", show_default="hugging_face"),
    ] = None,
    wordpiece_criterion: Annotated[
        Literal["likelihood", "frequency"] | None,
        typer.Option(help="wordpiece: how pairs are chosen.", show_default="frequency"),
    ] = None,
    delete_threshold: Annotated[
        float | None,
        typer.Option(
            help="byte_bpe, boundless_bpe: deletes tokens that merges use up; above 0.5, at most 1.",
            show_default="none",
        ),
    ] = None,
    transition_size: Annotated[
        str | None, typer.Option(help="superbpe: vocabulary of the first stage, or auto.", show_default="auto")
    ] = None,
    joins: Annotated[
        Literal["pieces", "words"] | None,
        typer.Option(help="superbpe: what the second stage joins.", show_default="pieces"),
    ] = None,
    mergeable: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX", help="superbpe, boundless_bpe: found in words that may join.", show_default=r"\p{L}"
        ),
    ] = None,
    script_aware: Annotated[
        bool | None,
        typer.Option("--script-aware", help="superbpe, boundless_bpe: letters of scripts without spaces are words."),
    ] = None,
    tie_winner: Annotated[
        Literal["word", "superword"] | None,
        typer.Option(help="superbpe, boundless_bpe: what comes first of equal counts.", show_default="word"),
    ] = None,
    max_words: Annotated[
        int | None, typer.Option(min=1, help="superbpe, boundless_bpe: most words in a token.", show_default="4, any")
    ] = None,
    export: Annotated[
        Literal["exact", "hf"] | None,
        typer.Option(
            help="boundless_bpe, superbpe of words: our file, or a stock one, nearly the same.", show_default="exact"
        ),
    ] = None,
    refills: Annotated[
        int | None, typer.Option(min=0, help="cnf_mce: rounds of filtering and refilling.", show_default="8")
    ] = None,
    refill_share: Annotated[
        float | None,
        typer.Option(help="cnf_mce: filtered out in the first round; between 0 and 1.", show_default="0.3"),
    ] = None,
    seed_vocabulary: Annotated[
        Path | None, typer.Option(help="sentencepiece_unigram: a file of entries, one a line, to start from.")
    ] = None,
    languages: Annotated[
        str | None,
        typer.Option(
            metavar="A,B+C,*",
            help="Modular: languages in the order of training; + joins some, * is all others.",
            show_default="all, most non-ASCII first",
        ),
    ] = None,
    check_transformers: Annotated[
        bool | None,
        typer.Option(
            "--check-transformers/--no-check-transformers",
            help="AutoTokenizer must read the same from the files.",
            show_default="from 2 MiB of text on",
        ),
    ] = None,
    read: ReadOptions = AS_USUAL,
    json: AsJson = False,
) -> None:
    """Train a tokenizer on files, all of their text: the folder DIR and DIR.manifest.json.

    FILE: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders, globs and URLs (s3://...) too.
    """
    with show_errors(json):
        from tokpack_core.commands import results
        from tokpack_core.commands import train as command
        from tokpack_core.commands.arrow_alone import leave_pandas_out

        leave_pandas_out()
        options = {
            "pretokenizer": pretokenizer,
            "digits": digits,
            "min_frequency": min_frequency,
            "tie_break": tie_break,
            "max_token_length": max_token_length,
            "max_pretoken_bytes": max_pretoken_bytes,
            "alphabet": alphabet,
            "character_coverage": character_coverage,
            "required_characters": required_characters,
            "id_layout": id_layout,
            "allocation": command.parse_allocation(allocation or []),
            "wordpiece_criterion": wordpiece_criterion,
            "delete_threshold": delete_threshold,
            "transition_size": transition_size,
            "joins": joins,
            "mergeable": mergeable,
            "script_aware": script_aware,
            "tie_winner": tie_winner,
            "max_words": max_words,
            "export": export,
            "refills": refills,
            "refill_share": refill_share,
            "languages": command.named_languages(languages),
            "seed_vocabulary": None if seed_vocabulary is None else str(seed_vocabulary),
        }
        config = command.train_config(family, vocab_size, special_token or [], options)
        reading = read.open(files)
        results.show_run(command.train(config, unicode, reading, output, json, check_transformers), json)
