"""The commands that make indexed datasets, and show them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tokpack_core.cli.options import (
    LARGEST,
    AsJson,
    EngineName,
    OutputPrefix,
    RankRegex,
    RayAddress,
    TokenizerPath,
    Workers,
    cluster_of,
    show_errors,
)
from tokpack_core.cli.read_options import AS_USUAL, Files, ReadOptions, with_read_options
from tokpack_core.errors import InputError

app = typer.Typer(add_completion=False)


@app.command()
@with_read_options(images=True)
def encode(
    files: Files,
    tokenizer: TokenizerPath,
    output: OutputPrefix,
    append_eod: Annotated[bool, typer.Option("--append-eod", help="End each non-empty document in EOD.")] = False,
    eod: Annotated[
        str | None, typer.Option(metavar="STRING", help="The EOD token of a tokenizer whose files name none.")
    ] = None,
    json_keys: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY", help="Encode this key to PREFIX_KEY_document.bin/.idx; several times; not with --text-field."
        ),
    ] = None,
    add_special_tokens: Annotated[
        bool, typer.Option("--add-special-tokens", help="Keep the BOS and EOS of a tokenizer.json's post-processor.")
    ] = False,
    parse_special_tokens: Annotated[
        bool, typer.Option("--parse-special-tokens", help="Text that looks like a special token is one.")
    ] = False,
    by_language: Annotated[
        bool, typer.Option("--by-language", help="Modular: each document by the sub-tokenizer of its language.")
    ] = False,
    workers: Workers = None,
    engine: EngineName = "local",
    ray_address: RayAddress = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep what is done when stopped, and go on from where a run was stopped.")
    ] = False,
    pretokenizer: RankRegex = None,
    read: ReadOptions = AS_USUAL,
    vision: Annotated[
        Literal["vit_patches", "llava_next", "internvl", "qwen2_5_vl", "perceiver", "q_former"] | None,
        typer.Option(help="Scheme that says how many tokens an image becomes."),
    ] = None,
    vision_parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Parameter of the scheme, as max_pixels=1003520; several times."),
    ] = None,
    image_token: Annotated[
        str | None, typer.Option(metavar="STRING", help="The placeholder of images, if the tokenizer names none.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Encode files, as Megatron's preprocess_data does: PREFIX.bin/.idx, one sequence a document.

    In JSON lines, parquet and Arrow, a text may be a list of strings: a document of that many sequences.

    FILE: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders, globs and URLs (s3://...) too.
    """
    with show_errors(json):
        from tokpack_core.commands import encode as command
        from tokpack_core.commands import results
        from tokpack_core.commands.arrow_alone import leave_pandas_out
        from tokpack_core.commands.opened_tokenizer import open_tokenizer
        from tokpack_core.commands.vision_options import vision_config
        from tokpack_core.engine import default_engine

        leave_pandas_out()
        if not by_language and (read.lang_field is not None or read.lang is not None):
            raise InputError("--lang-field and --lang are for --by-language, without which no language is asked for")
        cluster = cluster_of(engine, ray_address, workers)
        reading = read.open(files)
        options = command.EncodeOptions(
            append_eod=append_eod,
            json_keys=tuple(dict.fromkeys(json_keys or ())),
            add_special_tokens=add_special_tokens,
            parse_special_tokens=parse_special_tokens,
            workers=workers or default_engine().workers,
            resume=resume,
            by_language=by_language,
        )
        opened = open_tokenizer(tokenizer, eod, image_token, pretokenizer)
        scheme = vision_config(vision, vision_parameter or [])
        results.show_run(command.encode(opened, reading, output, options, json, scheme, cluster), json)


@app.command()
def merge(
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Path of the files to be.", show_default=False)],
    prefixes: Annotated[list[Path], typer.Argument(metavar="PREFIX...", show_default=False)],
    json: AsJson = False,
) -> None:
    """Join indexed datasets into one: OUT.bin/.idx, in the natural order of their names (shard_2 before shard_10).

    PREFIX: a path of a .bin/.idx pair without ending, one of its files, or a folder of pairs.
    """
    with show_errors(json):
        from tokpack_core.commands import merge as command
        from tokpack_core.commands import results

        results.show_run(command.merge_prefixes(output, prefixes, json), json)


@app.command()
def pack(
    prefixes: Annotated[list[Path], typer.Argument(metavar="PREFIX...", show_default=False)],
    sequence_length: Annotated[int, typer.Option(min=1, max=LARGEST, help="Tokens a pack.", show_default=False)],
    eod: Annotated[int, typer.Option(metavar="ID", min=0, help="Ends documents and fills tails.", show_default=False)],
    output: OutputPrefix,
    strategy: Annotated[
        Literal["best_fit", "first_fit_decreasing", "first_fit", "concat", "naive"],
        typer.Option(help="How packs are filled."),
    ] = "best_fit",
    noise: Annotated[
        float, typer.Option(min=0, max=4, help="best_fit: mixes lengths; 0.2 costs few packs.", show_default="none")
    ] = 0.0,
    long_documents: Annotated[
        Literal["chunk", "drop", "error"], typer.Option(help="What happens to documents longer than a pack.")
    ] = "chunk",
    documents_per_pack: Annotated[
        int | None, typer.Option(min=1, help="Most documents in a pack.", show_default="no limit")
    ] = None,
    images_per_pack: Annotated[
        int | None, typer.Option(min=1, max=10**6, help="Most images in a pack.", show_default="no limit")
    ] = None,
    large_images: Annotated[
        Literal["error", "drop"], typer.Option(help="What happens to images of more tokens than a pack.")
    ] = "error",
    image_attention: Annotated[
        Literal["causal", "isolate_images", "isolate_modalities"],
        typer.Option(help="What an image sees, besides itself, of what precedes it in its document."),
    ] = "causal",
    align: Annotated[
        int, typer.Option(min=1, help="Multiple at which documents start: 2 x the context-parallel size.")
    ] = 1,
    min_chunk: Annotated[int, typer.Option(min=1, help="Fewest tokens of the last piece of a cut document.")] = 1,
    short_chunks: Annotated[
        Literal["balance", "drop"], typer.Option(help="What happens to a shorter last piece: evened out, or dropped.")
    ] = "balance",
    append_eod: Annotated[
        bool, typer.Option("--append-eod", help="Add EOD where a document does not end in it.")
    ] = False,
    seed: Annotated[int, typer.Option(min=-(2**63), max=2**63 - 1, help="Keys the order of packs.")] = 0,
    json: AsJson = False,
) -> None:
    """Pack encoded documents, so that each sample of Megatron's GPTDataset is one pack.

    Writes PREFIX.bin/.idx, a sequence a pack, PREFIX_docs.bin/.idx, a sequence a document and a document a pack,
    PREFIX_docs.segments.npy, what masks stand on, and PREFIX_plan.parquet, which document stands where, from the
    documents of other prefixes, as `encode` or preprocess_data write them.
    """
    with show_errors(json):
        from tokpack_core.commands import pack as command
        from tokpack_core.commands import results
        from tokpack_core.training.segments import ImageAttention

        config = command.packing_config(
            strategy=strategy,
            sequence_length=sequence_length,
            noise=noise,
            long_documents=long_documents,
            documents_per_pack=documents_per_pack,
            images_per_pack=images_per_pack,
            large_images=large_images,
            align=align,
            min_chunk=min_chunk,
            short_chunks=short_chunks,
        )
        packing = command.Packing(config, eod, append_eod, seed, ImageAttention[image_attention.upper()])
        results.show_run(command.pack(prefixes, output, packing, json), json)


@app.command()
def byteify(
    prefix: Annotated[Path, typer.Argument(metavar="PREFIX", show_default=False)],
    output: Annotated[Path, typer.Option(metavar="OUT", help="Path of the files to be.", show_default=False)],
    tokenizer: Annotated[
        Path | None, typer.Option(help="That of the tokens; default: the one that made them, by store or manifest.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Map the tokens of an indexed dataset to bytes, with the longest entry that ends at each byte (byteification).

    Writes arrays that can be mapped: OUT.bytes.npy, OUT.token_ends.npy, OUT.longest_suffix.npy, a value a byte,
    OUT.token_begins.npy and OUT.sequence_begins.npy.

    PREFIX: path of a .bin/.idx pair, without ending.
    """
    with show_errors(json):
        from tokpack_core.commands import byteify as command
        from tokpack_core.commands import results
        from tokpack_core.commands.tokenizer_of_prefix import open_to_decode

        opened = None if tokenizer is None else open_to_decode(tokenizer)
        results.show_run(command.byteify(prefix, opened, output, json), json)


@app.command()
def inspect(
    prefix: Annotated[Path, typer.Argument(metavar="PREFIX", show_default=False)],
    tokenizer: Annotated[
        Path | None, typer.Option(help="Decodes; default: the one that made it, by store or manifest.")
    ] = None,
    pack: Annotated[int | None, typer.Option(min=0, metavar="N", help="Pack (or document) to show; from 0.")] = None,
    json: AsJson = False,
) -> None:
    """Show what an indexed dataset holds, and one pack decoded, its documents in different colours.

    PREFIX: path of a .bin/.idx pair, without ending.
    """
    with show_errors(json):
        from tokpack_core.commands.inspect_prefix import inspect_and_show

        inspect_and_show(prefix, tokenizer, pack, json)
