"""Output files that appear complete or not at all.

Everything is written in a hidden folder beside the output, synced, and renamed into place in the order of the names;
the manifest is the last name, so where a manifest stands, everything it names stands. Nothing is ever overwritten.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tokpack_core.errors import InputError
from tokpack_core.store.files import fsync_path

MANIFEST_ENDING = ".manifest.json"


@contextmanager
def new_output(output: Path, endings: Sequence[str]) -> Iterator[Path]:
    """Gives a draft path to write under instead of `output`; afterwards draft + ending becomes output + ending.

    An ending of "" is a folder. When the body raises, nothing is left.

    Raises:
        InputError: one of the outputs exists, or the folder cannot be written.
    """
    output = Path(os.path.abspath(output))
    refuse_existing(output, endings)
    draft_folder = output.parent / f".{output.name}.{uuid.uuid4().hex[:12]}.tmp"
    missing = [folder for folder in output.parents if not folder.exists()]
    try:
        draft_folder.mkdir(parents=True)
    except OSError as error:
        raise InputError(f"{output.parent}: cannot be written ({error.strerror}); name another --output") from None
    try:
        yield draft_folder / output.name
        move_into_place(draft_folder, output, endings)
    finally:
        shutil.rmtree(draft_folder, ignore_errors=True)
        for folder in missing:
            with suppress(OSError):  # holds the output, or what someone else put there
                folder.rmdir()


def refuse_existing(output: Path, endings: Sequence[str]) -> None:
    for ending in endings:
        path = output.with_name(f"{output.name}{ending}") if output.name else output
        empty_folder = ending == "" and path.is_dir() and not any(path.iterdir())
        if os.path.lexists(path) and not empty_folder:
            raise InputError(f"{path} exists already: remove it or name another --output")


def move_into_place(draft_folder: Path, output: Path, endings: Sequence[str]) -> None:
    for folder, _, files in os.walk(draft_folder):
        for name in files:
            fsync_path(Path(folder, name))
        fsync_path(Path(folder))
    refuse_existing(output, endings)
    moved: list[Path] = []
    try:
        for ending in endings:
            target = output.with_name(f"{output.name}{ending}")
            os.rename(draft_folder / target.name, target)
            moved.append(target)
    except BaseException:
        for path in moved:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        raise
    fsync_path(output.parent)
