"""Options that commands share, and how their errors are shown."""

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
    from tokpack_core.ray_engine import RayEngine

LARGEST = 2**31 - 1
TokenizerPath = Annotated[
    Path,
    typer.Option(
        help="A folder with one, a tokenizer.json, x.model, x.tiktoken, or GPT-2's vocab.json beside its merges.txt.",
        show_default=False,
    ),
]
RankRegex = Annotated[
    str | None,
    typer.Option(
        "--pretokenizer",
        help="The regex of an x.tiktoken that is not a published one: gpt2, cl100k, o200k, ... or regex:PATTERN.",
        show_default="known by the ranks",
    ),
]
OutputFolder = Annotated[Path, typer.Option(metavar="DIR", help="A new folder.", show_default=False)]
OutputPrefix = Annotated[Path, typer.Option(metavar="PREFIX", help="Path of the files to be, without ending.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Default: TOKPACK_WORKERS, else all cores.")]
EngineName = Annotated[
    Literal["local", "ray"], typer.Option("--engine", help="local: threads here; ray: tasks of a Ray cluster.")
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="The Ray cluster; default: the one that runs on this machine.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document for machines.")]


def cluster_of(engine: str, address: str | None, workers: int | None) -> RayEngine | None:
    """The cluster that the options name, if they do. Raises TokpackError for options that do not go together."""
    from tokpack_core.engine import refuse_of_other_engine

    refuse_of_other_engine(engine, address, workers)
    if engine == "local":
        return None
    from tokpack_core.ray_engine import RayEngine

    return RayEngine(address or "auto")


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
