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
    from tokpack_core.commands.reading import Reading

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
