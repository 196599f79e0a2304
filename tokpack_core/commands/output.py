"""Output files that appear complete or not at all.

Everything is written in a hidden folder beside the output, synced, and renamed into place in the order of the names;
the manifest is the last name, so where a manifest stands, everything it names stands. Nothing is ever overwritten.
The folder's name depends on the output alone, so the next run finds what a killed one left, and its lock tells whether
another is at work.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tokpack_core.errors import InputError
from tokpack_core.stages.file_errors import WRITING
from tokpack_core.store.files import REMEDIES, fsync_path

MANIFEST_ENDING = ".manifest.json"


@contextmanager
def new_output(output: Path, endings: Sequence[str], resumable: bool = False) -> Iterator[Path]:
    """Gives a draft path to write under instead of `output`; afterwards draft + ending becomes output + ending.

    An ending of "" is a folder. When the body raises, nothing is left; if it is `resumable`, the draft folder is, and
    is given again to the next run for the same output. Of a run that was killed, the rest is removed.

    Raises:
        InputError: one of the outputs exists, the folder cannot be written, or another run is at work in it.
    """
    output = Path(os.path.abspath(output))
    draft_folder = unfinished_folder(output) if resumable else output.with_name(f".{output.name}.draft")
    if not draft_folder.exists():
        refuse_existing(output, endings)
    missing = [folder for folder in output.parents if not folder.exists()]
    with locked_folder(draft_folder, output):
        kept = resumable
        try:
            take_back(draft_folder, output, endings)
            refuse_existing(output, endings)
            if not resumable:
                empty(draft_folder)
            with writing_errors(output.parent):
                yield draft_folder / output.name
                move_into_place(draft_folder, output, endings)
            kept = False
        finally:
            if not kept:
                shutil.rmtree(draft_folder, ignore_errors=True)
            for folder in [draft_folder, *missing]:
                with suppress(OSError):  # holds what is kept, the output, or what someone else put there
                    folder.rmdir()


@contextmanager
def locked_folder(folder: Path, output: Path) -> Iterator[None]:
    """Makes a folder, if it is not there, that no other process has locked.

    Raises:
        InputError: it cannot be made, or another run has it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{output.parent}: cannot be written ({error.strerror}); name another --output") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = folder.exists() and os.path.samestat(folder.stat(), os.fstat(descriptor))
        except BlockingIOError:
            ours = False
        if not ours:
            raise InputError(f"{output}: another run is writing it; wait for it, or name another --output")
        yield
    finally:
        os.close(descriptor)


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def unfinished_folder(output: Path) -> Path:
    """Where a run for this output keeps what it has done, if it can go on from there."""
    return output.with_name(f".{output.name}.unfinished")


@contextmanager
def writing_errors(folder: Path) -> Iterator[None]:
    """Turns what only writing gives into a sentence with its remedy.

    Raises:
        InputError: instead of such an OSError.
    """
    try:
        yield
    except OSError as error:
        # numpy raises an OSError without a number when fewer bytes were written than asked.
        if (error.errno or errno.ENOSPC) not in WRITING:
            raise
        reason, remedy = os.strerror(error.errno or errno.ENOSPC), REMEDIES[error.errno or errno.ENOSPC]
        raise InputError(f"{folder}: cannot be written ({reason}); {remedy}, then run again") from error


def take_back(draft_folder: Path, output: Path, endings: Sequence[str]) -> None:
    """Undoes the moves of a run that was killed between its first and its last one."""
    last = output.with_name(f"{output.name}{endings[-1]}")
    if (draft_folder / last.name).exists() and not last.exists():
        for ending in endings[:-1]:
            moved = output.with_name(f"{output.name}{ending}")
            if moved.exists() and not (draft_folder / moved.name).exists():
                os.rename(moved, draft_folder / moved.name)


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
