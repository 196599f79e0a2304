"""How documents stand in the files a command reads: one declaration for all commands that read files."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

if TYPE_CHECKING:
    from tokpack_core.commands.reading import Reading

Files = Annotated[list[str], typer.Argument(metavar="FILE...", show_default=False)]


def size(written: str | int) -> int:
    """Bytes, written as in the configuration. Raises typer.BadParameter for what is no size."""
    from tokpack_core.config import parse_bytes

    try:
        found = parse_bytes(written)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if not isinstance(found, int) or not 1 <= found < 2**63:
        raise typer.BadParameter(f"{written!r} is not a size: write bytes as 2GB, 512MiB or 1000000")
    return found


@dataclass(frozen=True)
class ReadOptions:
    text_field: Annotated[str, typer.Option(help="Field that holds the text.")] = "text"
    content_field: Annotated[
        str | None,
        typer.Option(help="jsonl: field that holds a list of text and image blocks, in the place of the text."),
    ] = None
    id_field: Annotated[str | None, typer.Option(help="Field that holds a document's id; then each must have one.")] = (
        None
    )
    lang_field: Annotated[str | None, typer.Option(help="Field that holds a document's language.")] = None
    lang: Annotated[str | None, typer.Option(help="Language of documents that name none.")] = None
    txt_document: Annotated[Literal["file", "line"], typer.Option(help="What one document is in a .txt file.")] = "file"
    on_error: Annotated[
        Literal["error", "skip", "replace"],
        typer.Option(help="What happens to a document that cannot be read; `replace` mends undecodable bytes only."),
    ] = "error"
    max_document_bytes: Annotated[
        int,
        typer.Option(parser=size, metavar="SIZE", show_default="1GiB", help="A longer document cannot be read."),
    ] = 2**30

    def open(self, files: list[str]) -> Reading:
        """What `files` (paths, folders, globs, URLs) name; raises InputError where they name nothing."""
        from tokpack_core.commands.reading import open_reading
        from tokpack_core.config import ReadConfig

        keys = ReadConfig.model_fields.keys() & {field.name for field in fields(self)}
        return open_reading(files, ReadConfig(**{key: getattr(self, key) for key in keys}), self.lang)


AS_USUAL = ReadOptions()


def with_read_options(images: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of ReadOptions on the command line in the place of its parameter `read`.

    `images`: whether it reads documents of text and images too, so that it has `--content-field`.
    """
    hints = get_type_hints(ReadOptions, include_extras=True)
    flags = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(ReadOptions)
        if images or field.name != "content_field"
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def called(**given: Any) -> None:
            read = ReadOptions(**{flag.name: given.pop(flag.name) for flag in flags})
            command(read=read, **given)

        own = [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(command, eval_str=True).parameters.values()]
        place = [p.name for p in own].index("read")
        parameters = own[:place] + flags + own[place + 1 :]
        called.__annotations__ = {p.name: p.annotation for p in parameters}
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return called

    return decorate
