"""Copies files out of a store to a folder or an object store, each read back and compared with its sha256.

A name at the target is a complete file: in a folder a file is written beside its name and renamed, in an object store
it appears when its upload ends. So a copy that was cut short goes on where it stopped, and files that are there and
equal are kept. Nothing at the target is ever overwritten.

A second name of equal content is a hard link in a folder that has links, and an object of its own elsewhere.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from tokpack_core.errors import InputError, StoreError
from tokpack_core.store.files import READ_ONLY_FILE, fsync_path, make_folder, sha256_of

PARTIAL = ".partial"
READ_BLOCK = 8 << 20


@dataclass(frozen=True)
class FileToCopy:
    """A file with what it must hold.

    Attributes:
        path: at the target, relative.
        source: where its bytes are, or they themselves.
        same_as: path of an earlier file of equal content.
    """

    path: str
    source: Path | bytes
    size: int
    sha256: str
    same_as: str | None = None


@dataclass(frozen=True)
class Target:
    """A folder of a file system that fsspec knows.

    Attributes:
        name: as the user gave it.
        root: the folder in the file system's own notation.
    """

    filesystem: Any
    root: str
    name: str

    @property
    def local(self) -> bool:
        return isinstance(self.filesystem, LocalFileSystem)

    def place(self, path: str) -> str:
        return f"{self.root}/{path}"

    def shown(self, path: str) -> str:
        """A file as the user named its folder."""
        return f"{self.name.rstrip('/')}/{path}".rstrip("/")


def bytes_to_copy(path: str, content: bytes) -> FileToCopy:
    return FileToCopy(path, content, len(content), hashlib.sha256(content).hexdigest())


def open_target(name: str) -> Target:
    """Raises InputError when no installed file system takes such a URL."""
    try:
        filesystem, root = fsspec.url_to_fs(name)
    except (ImportError, ValueError) as error:
        protocol = name.partition("://")[0]
        remedy = (
            "pip install 'tokpack[s3]'" if protocol in ("s3", "s3a") else f"install what fsspec needs for {protocol}"
        )
        raise InputError(f"{name}: cannot be opened ({error}); {remedy}, or name a folder") from error
    return Target(filesystem, root.rstrip("/"), name)


@contextmanager
def target_errors(target: Target) -> Iterator[None]:
    """Turns whatever a file system's client raises into one sentence.

    Raises:
        StoreError: instead of every other error.
    """
    try:
        yield
    except (InputError, StoreError):
        raise
    # Each client has errors of its own, with no base in common.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise StoreError(
            f"{target.name}: cannot copy ({reason}); check address, rights and space, then run again; "
            "finished files are kept"
        ) from error


def list_target(target: Target) -> dict[str, int]:
    """Size by relative path of every file at the target."""
    with target_errors(target):
        target.filesystem.invalidate_cache()
        found = target.filesystem.find(target.root, detail=True)
    return {name.removeprefix(target.root).lstrip("/"): info["size"] for name, info in found.items()}


def is_equal(target: Target, file: FileToCopy, size: int) -> bool:
    """Whether the file of `size` bytes at the target is what is to be copied; reads it."""
    with target_errors(target):
        return size == file.size and digest_at(target, file.path) == file.sha256


def digest_at(target: Target, path: str) -> str:
    if target.local:
        return sha256_of(Path(target.place(path)))
    with target.filesystem.open(target.place(path), "rb", block_size=READ_BLOCK) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy_file(target: Target, file: FileToCopy) -> None:
    """Writes a file that is not there, and reads it back.

    Raises:
        StoreError: it cannot be written, or what was read back is not what the store states.
    """
    with target_errors(target):
        if target.local:
            copy_into_folder(target, file)
        else:
            upload(target, file)


def copy_into_folder(target: Target, file: FileToCopy) -> None:
    final = Path(target.place(file.path))
    make_folder(final.parent)
    if file.same_as is not None and linked(Path(target.place(file.same_as)), final):
        return
    draft = final.with_name(final.name + PARTIAL)
    draft.unlink(missing_ok=True)
    write(LocalFileSystem(), str(draft), file)
    fsync_path(draft)
    draft.chmod(READ_ONLY_FILE)
    require_equal(file, sha256_of(draft), str(final))
    os.replace(draft, final)
    fsync_path(final.parent)


def linked(first: Path, second: Path) -> bool:
    """Makes a hard link, where the file system has them."""
    try:
        os.link(first, second)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


def upload(target: Target, file: FileToCopy) -> None:
    place = target.place(file.path)
    target.filesystem.makedirs(place.rpartition("/")[0], exist_ok=True)
    write(target.filesystem, place, file)
    require_equal(file, digest_at(target, file.path), target.shown(file.path))


def write(filesystem: Any, place: str, file: FileToCopy) -> None:
    if isinstance(file.source, Path):
        filesystem.put_file(str(file.source), place)
    else:
        filesystem.pipe_file(place, file.source)


def require_equal(file: FileToCopy, found: str, place: str) -> None:
    if found != file.sha256:
        source = f"{file.source} was altered, or the" if isinstance(file.source, Path) else "the"
        raise StoreError(
            f"{place}: what was read back differs from its sha256; {source} target damaged it: run `tokpack verify` on "
            "the dataset, remove this file and run again"
        )
