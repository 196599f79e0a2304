"""The stand-alone commands: one step on plain files, without Dagster and without a store."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tokpack_core.commands import interrupts
from tokpack_core.errors import TokpackError

if TYPE_CHECKING:
    from tokpack_core.commands.reading import Reading

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
]
UnicodeForm = Literal["nfc", "nfkc", "none"]
OnError = Literal["error", "skip", "replace"]
LARGEST = 2**31 - 1

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", show_default=False),
]
TextField = Annotated[str, typer.Option(help="Field that holds the text.")]
ContentField = Annotated[
    str | None, typer.Option(help="jsonl: field that holds a list of text and image blocks, in the place of the text.")
]
IdField = Annotated[str | None, typer.Option(help="Field that holds a document's id; then each must have one.")]
LangField = Annotated[str | None, typer.Option(help="Field that holds a document's language.")]
Lang = Annotated[str | None, typer.Option(help="Language of documents that name none.")]
TxtDocument = Annotated[Literal["file", "line"], typer.Option(help="What one document is in a .txt file.")]
OnErrorOption = Annotated[
    OnError,
    typer.Option(help="What happens to a document that cannot be read; `replace` mends undecodable bytes only."),
]
TokenizerPath = Annotated[
    Path, typer.Option(help="A folder with one, a tokenizer.json, x.model or x.tiktoken.", show_default=False)
]
OutputFolder = Annotated[Path, typer.Option(metavar="DIR", help="A new folder.", show_default=False)]
OutputPrefix = Annotated[Path, typer.Option(metavar="PREFIX", help="Path of the files to be, without ending.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Default: TOKPACK_WORKERS, else all cores.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document for machines.")]


@contextmanager
def show_errors(json: bool = False) -> Iterator[None]:
    """Turns an error of ours into one sentence on stderr and exit code 1; with `json`, into a document on stdout."""
    with interrupts.raised():
        try:
            yield
        except (TokpackError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(1) from None
            sentence = sentence_of(error)
            if json:
                import orjson

                sys.stdout.buffer.write(orjson.dumps({"error": sentence}) + b"\n")
            print(f"error: {sentence}", file=sys.stderr)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            print(interrupts.SENTENCE, file=sys.stderr)
            raise typer.Exit(interrupts.CODE) from None


def sentence_of(error: TokpackError | OSError) -> str:
    """What went wrong, as valid Unicode: a path may hold any bytes."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return os.fsencode(text).decode(errors="backslashreplace")


@app.command()
def train(
    files: Files,
    family: Annotated[Family, typer.Option(help="Kind of tokenizer.", show_default=False)],
    vocab_size: Annotated[int, typer.Option(min=1, max=LARGEST, help="Special tokens included.", show_default=False)],
    output: OutputFolder,
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
            help="byte_bpe, word, superbpe, boundless_bpe: regex that splits text: gpt2, cl100k, o200k, superbpe, "
            "qwen2, llama3, deepseek_v3 or regex:PATTERN.",
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
        int | None, typer.Option(min=2, help="byte_bpe: tokens have fewer bytes.", show_default="no limit")
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
        typer.Option(help="sentencepiece: characters that get a piece however rare.", show_default="none"),
    ] = None,
    wordpiece_criterion: Annotated[
        Literal["likelihood", "frequency"] | None,
        typer.Option(help="wordpiece: how pairs are chosen.", show_default="frequency"),
    ] = None,
    delete_threshold: Annotated[
        float | None,
        typer.Option(min=0.5, max=1, help="byte_bpe: deletes tokens that merges use up.", show_default="none"),
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
        typer.Option(help="boundless_bpe: our file, or a stock one that is nearly the same.", show_default="exact"),
    ] = None,
    seed_vocabulary: Annotated[
        Path | None, typer.Option(help="sentencepiece_unigram: a file of entries, one a line, to start from.")
    ] = None,
    text_field: TextField = "text",
    content_field: ContentField = None,
    id_field: IdField = None,
    lang_field: LangField = None,
    lang: Lang = None,
    txt_document: TxtDocument = "file",
    on_error: OnErrorOption = "error",
    json: AsJson = False,
) -> None:
    """Train a tokenizer on files, all of their text: the folder DIR and DIR.manifest.json.

    FILE: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders, globs and URLs (s3://...) too.
    """
    with show_errors(json):
        from tokpack_core.commands import results
        from tokpack_core.commands import train as command

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
            "wordpiece_criterion": wordpiece_criterion,
            "delete_threshold": delete_threshold,
            "transition_size": transition_size,
            "joins": joins,
            "mergeable": mergeable,
            "script_aware": script_aware,
            "tie_winner": tie_winner,
            "max_words": max_words,
            "export": export,
            "seed_vocabulary": None if seed_vocabulary is None else str(seed_vocabulary),
        }
        config = command.train_config(family, vocab_size, special_token or [], options)
        reading = open_files(files, text_field, content_field, id_field, lang_field, lang, txt_document, on_error)
        results.show_run(command.train(config, unicode, reading, output, json), json)


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
    min_count: Annotated[int, typer.Option(min=1, help="Fewest occurrences, final and consumed.")] = 100,
    text_field: TextField = "text",
    id_field: IdField = None,
    lang_field: LangField = None,
    lang: Lang = None,
    txt_document: TxtDocument = "file",
    on_error: OnErrorOption = "error",
    json: AsJson = False,
) -> None:
    """Take the residues out of a byte-level BPE (LiteToken): DIR, in which all other ids stay.

    FILE: text on which residues are found: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders, globs.
    """
    with show_errors(json):
        from tokpack_core.commands import litetoken as command
        from tokpack_core.commands import results
        from tokpack_core.commands.opened_tokenizer import open_tokenizer
        from tokpack_core.tokenizers.residues import ResidueLimits

        limits = ResidueLimits(max_residue_ratio, max_neighbor_entropy, min_count)
        reading = open_files(files, text_field, None, id_field, lang_field, lang, txt_document, on_error)
        results.show_run(command.litetoken(open_tokenizer(tokenizer), limits, reading, output, json), json)


@app.command()
def supertokens(
    files: Files,
    tokenizer: TokenizerPath,
    output: OutputFolder,
    top_k: Annotated[int, typer.Option(min=1, max=10**6, help="Tokens to append.")] = 250,
    min_frequency: Annotated[int, typer.Option(min=1, help="Fewest occurrences of a token.")] = 2,
    max_words: Annotated[
        int | None, typer.Option(min=2, help="Most words of a token.", show_default="no limit")
    ] = None,
    text_field: TextField = "text",
    id_field: IdField = None,
    lang_field: LangField = None,
    lang: Lang = None,
    txt_document: TxtDocument = "file",
    on_error: OnErrorOption = "error",
    json: AsJson = False,
) -> None:
    """Append frequent phrases of reasoning traces to a tokenizer.json: DIR, with what new embeddings start from.

    FILE: the traces: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders and globs too.
    """
    with show_errors(json):
        from tokpack_core.commands import results
        from tokpack_core.commands import supertokens as command
        from tokpack_core.commands.opened_tokenizer import open_tokenizer
        from tokpack_core.tokenizers.supertokens import ExtensionLimits

        limits = ExtensionLimits(top_k, min_frequency, max_words)
        reading = open_files(files, text_field, None, id_field, lang_field, lang, txt_document, on_error)
        results.show_run(command.supertokens(open_tokenizer(tokenizer), limits, reading, output, json), json)


@app.command()
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
    workers: Workers = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep what is done when stopped, and go on from where a run was stopped.")
    ] = False,
    text_field: TextField = "text",
    content_field: ContentField = None,
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
    id_field: IdField = None,
    lang_field: LangField = None,
    lang: Lang = None,
    txt_document: TxtDocument = "file",
    on_error: OnErrorOption = "error",
    json: AsJson = False,
) -> None:
    """Encode files, as Megatron's preprocess_data does: PREFIX.bin/.idx, one sequence a document.

    FILE: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders, globs and URLs (s3://...) too.
    """
    with show_errors(json):
        from tokpack_core.commands import encode as command
        from tokpack_core.commands import results
        from tokpack_core.commands.opened_tokenizer import open_tokenizer
        from tokpack_core.engine import default_engine

        reading = open_files(files, text_field, content_field, id_field, lang_field, lang, txt_document, on_error)
        options = command.EncodeOptions(
            append_eod=append_eod,
            json_keys=tuple(dict.fromkeys(json_keys or ())),
            add_special_tokens=add_special_tokens,
            parse_special_tokens=parse_special_tokens,
            workers=workers or default_engine().workers,
            resume=resume,
        )
        opened = open_tokenizer(tokenizer, eod, image_token)
        scheme = command.vision_config(vision, vision_parameter or [])
        results.show_run(command.encode(opened, reading, output, options, json, scheme), json)


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
    text_field: TextField = "text",
    content_field: ContentField = None,
    id_field: IdField = None,
    lang_field: LangField = None,
    lang: Lang = None,
    txt_document: TxtDocument = "file",
    on_error: OnErrorOption = "error",
    json: AsJson = False,
) -> None:
    """Show how a tokenizer's vocabulary is used by files: DIR/report.json and DIR/report.html.

    FILE: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders, globs and URLs (s3://...) too.
    """
    with show_errors(json):
        from tokpack_core.commands import report as command
        from tokpack_core.commands import results
        from tokpack_core.commands.opened_tokenizer import open_tokenizer

        reading = open_files(files, text_field, content_field, id_field, lang_field, lang, txt_document, on_error)
        options = command.Options(parallel, command.model_shape(parameters, d_model))
        results.show_run(command.report(open_tokenizer(tokenizer), reading, options, output, json), json)


@app.command()
def prune(
    files: Files,
    tokenizer: TokenizerPath,
    output: OutputFolder,
    below: Annotated[
        int, typer.Option(min=1, help="Entries that occur fewer times in the files are removed.", show_default=False)
    ],
    text_field: TextField = "text",
    content_field: ContentField = None,
    id_field: IdField = None,
    lang_field: LangField = None,
    lang: Lang = None,
    txt_document: TxtDocument = "file",
    on_error: OnErrorOption = "error",
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

        reading = open_files(files, text_field, content_field, id_field, lang_field, lang, txt_document, on_error)
        results.show_run(command.prune(open_tokenizer(tokenizer), reading, below, output, json), json)


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


def open_files(
    files: list[str],
    text_field: str,
    content_field: str | None,
    id_field: str | None,
    lang_field: str | None,
    lang: str | None,
    txt_document: Literal["file", "line"],
    on_error: OnError,
) -> Reading:
    from tokpack_core.commands.reading import open_reading
    from tokpack_core.config import ReadConfig

    options = ReadConfig(
        text_field=text_field,
        content_field=content_field,
        id_field=id_field,
        lang_field=lang_field,
        txt_document=txt_document,
        on_error=on_error,
    )
    return open_reading(files, options, lang)
