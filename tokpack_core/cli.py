"""The commands that need no Dagster: their options. What each does is in `commands`, imported when it is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tokpack_core.errors import TokpackError

if TYPE_CHECKING:
    from tokpack_core.commands.reading import Reading

app = typer.Typer(add_completion=False)

Family = Literal["byte_bpe", "sentencepiece_bpe", "sentencepiece_unigram"]
UnicodeForm = Literal["nfc", "nfkc", "none"]
OnError = Literal["error", "skip", "replace"]
LARGEST = 2**31 - 1

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", show_default=False),
]
TextField = Annotated[str, typer.Option(help="Field that holds the text.")]
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
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document for machines.")]


@contextmanager
def show_errors(json: bool = False) -> Iterator[None]:
    """Turns an error of ours into one sentence on stderr and exit code 1; with `json`, into a document on stdout."""
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
        print("stopped; what was finished is kept, nothing is left half-written", file=sys.stderr)
        raise typer.Exit(130) from None


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
        typer.Option(metavar="ROLE=STRING", help="Roles eod, pad, bos, unk, as eod=<|endoftext|>; several times."),
    ] = None,
    unicode: Annotated[UnicodeForm, typer.Option(help="Unicode form that the tokenizer gives all text.")] = "nfc",
    pretokenizer: Annotated[
        Literal["gpt2", "cl100k", "o200k"], typer.Option(help="byte_bpe: regex that splits text before merging.")
    ] = "cl100k",
    text_field: TextField = "text",
    id_field: IdField = None,
    lang_field: LangField = None,
    lang: Lang = None,
    txt_document: TxtDocument = "file",
    on_error: OnErrorOption = "error",
    json: AsJson = False,
) -> None:
    """Train a tokenizer on files, all of their text: the folder DIR and DIR.manifest.json.

    FILE: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders and globs too.
    """
    with show_errors(json):
        from tokpack_core.commands import results
        from tokpack_core.commands import train as command

        config = command.train_config(family, vocab_size, special_token or [], pretokenizer)
        reading = open_files(files, text_field, id_field, lang_field, lang, txt_document, on_error)
        results.show_run(command.train(config, unicode, reading, output, json), json)


@app.command()
def encode(
    files: Files,
    tokenizer: TokenizerPath,
    output: OutputPrefix,
    append_eod: Annotated[bool, typer.Option("--append-eod", help="End each non-empty document in EOD.")] = False,
    eod: Annotated[
        str | None, typer.Option(metavar="STRING", help="The EOD token of a tokenizer whose files name none.")
    ] = None,
    text_field: TextField = "text",
    id_field: IdField = None,
    lang_field: LangField = None,
    lang: Lang = None,
    txt_document: TxtDocument = "file",
    on_error: OnErrorOption = "error",
    json: AsJson = False,
) -> None:
    """Encode files, as Megatron's preprocess_data does: PREFIX.bin/.idx, one sequence a document.

    FILE: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders and globs too.
    """
    with show_errors(json):
        from tokpack_core.commands import encode as command
        from tokpack_core.commands import results
        from tokpack_core.commands.opened_tokenizer import open_tokenizer

        reading = open_files(files, text_field, id_field, lang_field, lang, txt_document, on_error)
        opened = open_tokenizer(tokenizer, eod)
        results.show_run(command.encode(opened, reading, output, append_eod, json), json)


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

    Writes PREFIX.bin/.idx, a sequence a pack, PREFIX_docs.bin/.idx, a sequence a document and a document a pack, and
    PREFIX_plan.parquet, which document stands where, from the documents of other prefixes, as `encode` or
    preprocess_data write them.
    """
    with show_errors(json):
        from tokpack_core.commands import pack as command
        from tokpack_core.commands import results

        config = command.packing_config(
            strategy=strategy,
            sequence_length=sequence_length,
            noise=noise,
            long_documents=long_documents,
            documents_per_pack=documents_per_pack,
            align=align,
            min_chunk=min_chunk,
            short_chunks=short_chunks,
        )
        packing = command.Packing(config, eod, append_eod, seed)
        results.show_run(command.pack(prefixes, output, packing, json), json)


@app.command()
def report(
    files: Files,
    tokenizer: TokenizerPath,
    output: OutputFolder,
    text_field: TextField = "text",
    id_field: IdField = None,
    lang_field: LangField = None,
    lang: Lang = None,
    txt_document: TxtDocument = "file",
    on_error: OnErrorOption = "error",
    json: AsJson = False,
) -> None:
    """Show how a tokenizer's vocabulary is used by files: DIR/report.json and DIR/report.html.

    FILE: jsonl, csv, tsv, txt (each also .gz, .zst), parquet, Arrow; folders and globs too.
    """
    with show_errors(json):
        from tokpack_core.commands import report as command
        from tokpack_core.commands import results
        from tokpack_core.commands.opened_tokenizer import open_tokenizer

        reading = open_files(files, text_field, id_field, lang_field, lang, txt_document, on_error)
        results.show_run(command.report(open_tokenizer(tokenizer), reading, output, json), json)


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


@app.command()
def verify(
    target: Annotated[
        str,
        typer.Argument(show_default=False),
    ],
    vocab_size: Annotated[
        int | None, typer.Option(min=1, max=LARGEST, help="Of a prefix: its ids, added tokens included.")
    ] = None,
    eod: Annotated[int | None, typer.Option(metavar="ID", min=0, help="Of a prefix: what ends its documents.")] = None,
    sequence_length: Annotated[int | None, typer.Option(min=1, help="Of a prefix: tokens of each sequence.")] = None,
    json: AsJson = False,
) -> None:
    """Recompute digests and structure; each fault is one sentence, and the exit code is 1. Notes are advice.

    TARGET: a prefix, a store, a digest, the folder of an object or of an output, or an asset key. What a manifest says
    of a prefix need not be given.
    """
    with show_errors(json):
        from tokpack_core.commands.verify import Known, verify_and_show

        if not verify_and_show(target, json, Known(vocab_size, eod, sequence_length)):
            raise typer.Exit(1)


@app.command()
def lineage(
    target: Annotated[
        str,
        typer.Argument(show_default=False),
    ],
    document: Annotated[
        str | None, typer.Option(help="Of a dataset: where the document with this id is, from source to packs.")
    ] = None,
    pack: Annotated[
        str | None, typer.Option(help="Of a dataset: the documents of a pack, like en/train_4096:0.")
    ] = None,
    openlineage: Annotated[
        bool, typer.Option("--openlineage", help="Print OpenLineage run events, one JSON line each.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show what something was made from, up to tokenizer and source files, and what was made from it.

    TARGET: an asset key, a digest, or a path: in or copied from a store, of a corpus, or beside a manifest.
    """
    if openlineage and (document is not None or pack is not None):
        raise typer.BadParameter("--openlineage tells of a whole chain: leave --document and --pack out")
    with show_errors(json):
        if document is not None or pack is not None:
            from tokpack_core.commands.trace import trace_and_show

            trace_and_show(target, document, pack, json)
        elif openlineage:
            from tokpack_core.commands.openlineage import print_openlineage

            print_openlineage(target)
        else:
            from tokpack_core.commands.lineage import lineage_and_show

            lineage_and_show(target, json)


@app.command()
def copy(
    dataset: Annotated[str, typer.Argument(show_default=False)],
    destination: Annotated[str, typer.Argument(metavar="DEST", show_default=False)],
    json: AsJson = False,
) -> None:
    """Copy DATASET, its tokenizer and its lineage out of the store, each file read back and compared.

    DEST: a folder, or a URL like s3://bucket/folder. What is there and equal is kept, anything else is refused.
    """
    with show_errors(json):
        from tokpack_core.commands.copy import copy_and_show

        copy_and_show(dataset, destination, json)


@app.command()
def audit(
    target: Annotated[str, typer.Argument(show_default=False)],
    documents: Annotated[int, typer.Option(min=1, help="About how many documents are compared.")] = 2000,
    every: Annotated[bool, typer.Option("--all", help="Compare every document.")] = False,
    seed: Annotated[int, typer.Option(min=-(2**63), max=2**63 - 1, help="Another seed draws other documents.")] = 0,
    json: AsJson = False,
) -> None:
    """Encode documents again with the recorded tokenizer; compare with shards, packs and .bin, token by token.

    TARGET: a dataset, by asset key or digest.
    """
    with show_errors(json):
        from tokpack_core.commands.audit import audit_and_show

        audit_and_show(target, None if every else documents, seed, json)


@app.command()
def gc(
    keep: Annotated[int, typer.Option(min=1, help="Newest versions of each asset that are kept.")] = 3,
    min_age_hours: Annotated[float, typer.Option(min=0, help="Anything younger is kept.")] = 24.0,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without asking.")] = False,
    json: AsJson = False,
) -> None:
    """Show what no kept version, pin or running job needs, and remove it when told."""
    with show_errors(json):
        from tokpack_core.commands.gc import gc_and_show

        gc_and_show(keep, min_age_hours, yes, json)


@app.command()
def pin(
    name: Annotated[str | None, typer.Argument(show_default=False)] = None,
    targets: Annotated[list[str] | None, typer.Argument(show_default=False)] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the pin NAME.")] = False,
    json: AsJson = False,
) -> None:
    """Keep objects from garbage collection under a name; without a name, list the pins.

    TARGETS: asset keys, digests or paths.
    """
    with show_errors(json):
        from tokpack_core.commands.keep import pin_and_show

        pin_and_show(name, targets or [], remove, json)


@app.command()
def lease(
    target: Annotated[str, typer.Argument(show_default=False)],
    command: Annotated[list[str] | None, typer.Argument(show_default=False)] = None,
) -> None:
    """Run a command, such as a training job, while TARGET is kept: tokpack lease TARGET -- COMMAND.

    TARGET: an asset key, a digest or a path.
    """
    with show_errors():
        from tokpack_core.commands.keep import lease_and_run

        code = lease_and_run(target, command or [])
    raise typer.Exit(code)


@app.command()
def history(
    asset: Annotated[str, typer.Argument(show_default=False)],
    json: AsJson = False,
) -> None:
    """List every version of ASSET, newest first."""
    with show_errors(json):
        from tokpack_core.commands.keep import history_and_show

        history_and_show(asset, json)


@app.command()
def diff(
    dataset: Annotated[str, typer.Argument(show_default=False)],
    old: Annotated[int | None, typer.Option(help="Number of the older version; default: the one before NEW.")] = None,
    new: Annotated[int | None, typer.Option(help="Number of the newer version; default: the newest.")] = None,
    json: AsJson = False,
) -> None:
    """What changed between two versions of DATASET: files, tokenizer, configuration, documents, tokens."""
    with show_errors(json):
        from tokpack_core.commands.diff import diff_and_show

        diff_and_show(dataset, old, new, json)


@app.command()
def path(
    target: Annotated[str, typer.Argument(show_default=False)],
    json: AsJson = False,
) -> None:
    """Print the folder of an asset's newest version, or of the object that a digest names.

    TARGET: an asset key or a digest.
    """
    with show_errors(json):
        from tokpack_core.commands.store_access import show_folder

        show_folder(target, json)


def open_files(
    files: list[str],
    text_field: str,
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
        id_field=id_field,
        lang_field=lang_field,
        txt_document=txt_document,
        on_error=on_error,
    )
    return open_reading(files, options, lang)
