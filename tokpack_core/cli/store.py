"""The commands that ask a store, or keep what is in it."""

from __future__ import annotations

from typing import Annotated

import typer

from tokpack_core.cli.options import LARGEST, AsJson, show_errors

app = typer.Typer(add_completion=False)


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
