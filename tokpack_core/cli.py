"""The commands that need no Dagster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from tokpack_core.errors import TokpackError

app = typer.Typer(add_completion=False)


@contextmanager
def show_errors(json: bool = False) -> Iterator[None]:
    """Turns an error of ours into one sentence on stderr and exit code 1; with `json`, into a document on stdout."""
    try:
        yield
    except TokpackError as error:
        if json:
            import orjson

            sys.stdout.buffer.write(orjson.dumps({"error": str(error)}) + b"\n")
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print("stopped; finished units are kept", file=sys.stderr)
        raise typer.Exit(130) from None
