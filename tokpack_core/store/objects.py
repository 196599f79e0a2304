"""Objects: folders of files named by the digest of their content, written once and read-only from then on.

The digest of an object is the sha256 over the sorted lines `<sha256>  <relative path>\\n` of its files; the manifest
is not part of it. `manifest.json` = stage, digest, files (path, size, sha256, `same_as` for a second name of equal
content) and counts.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.errors import StoreError
from tokpack_core.store.files import (
    WRITE_BITS,
    fsync_path,
    publish_folder,
    remove_folder,
    sha256_of,
    store_errors,
)
from tokpack_core.store.store import Store

MANIFEST = "manifest.json"
DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class ObjectRef:
    """Name of an object; says nothing about whether it exists."""

    stage: str
    digest: str

    def __str__(self) -> str:
        return f"{self.stage}/{self.digest}"

    @staticmethod
    def parse(text: str) -> ObjectRef:
        stage, _, digest = text.partition("/")
        return ObjectRef(stage, digest)


@dataclass(frozen=True)
class FileEntry:
    path: str
    size: int
    sha256: str
    same_as: str | None = None


@dataclass(frozen=True)
class Manifest:
    ref: ObjectRef
    files: tuple[FileEntry, ...]
    counts: dict[str, Any]

    @property
    def size(self) -> int:
        """Bytes on disk; a second name of equal content is counted once."""
        return sum(file.size for file in self.files if file.same_as is None)

    def file(self, path: str) -> FileEntry:
        return next(file for file in self.files if file.path == path)


def folder_of(store: Store, ref: ObjectRef) -> Path:
    return store.objects / ref.stage / ref.digest


@contextmanager
def staging(store: Store) -> Iterator[Path]:
    """A fresh folder in the store's `tmp/`, removed unless it was published.

    Raises:
        StoreError: the store cannot be written.
    """
    folder = store.tmp / uuid.uuid4().hex
    with store_errors(store.root, "write in the store"):
        folder.mkdir()
    try:
        yield folder
    finally:
        # What cannot be removed now is garbage of `tmp/`; the error that led here is the one to show.
        with contextlib.suppress(OSError):
            if folder.exists():
                remove_folder(folder)


def digest_of(files: tuple[FileEntry, ...]) -> str:
    lines = sorted(f"{file.sha256}  {file.path}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def list_files(folder: Path) -> tuple[FileEntry, ...]:
    """Every file below `folder` but the manifest, sorted by path."""
    entries: list[FileEntry] = []
    first: dict[str, str] = {}
    paths = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    inodes: dict[int, str] = {}
    for path in paths:
        if path == MANIFEST:
            continue
        stat = (folder / path).stat()
        digest = inodes.setdefault(stat.st_ino, "") or sha256_of(folder / path)
        inodes[stat.st_ino] = digest
        same_as = first.setdefault(digest, path) if stat.st_size else path
        entries.append(FileEntry(path, stat.st_size, digest, None if same_as == path else same_as))
    return tuple(entries)


def publish(
    store: Store, stage: str, folder: Path, counts: dict[str, Any], claim: Callable[[ObjectRef], None] | None = None
) -> ObjectRef:
    """Makes the staged `folder` an object; the same content published twice is one object.

    Args:
        claim: called with the object's name before anything relies on it, to keep it from garbage collection.

    Raises:
        StoreError: the disk is full or refuses to be written, or an object of that name is there and was altered.
    """
    with store_errors(store.root, f"publish {stage}"):
        files = list_files(folder)
        ref = ObjectRef(stage, digest_of(files))
        (folder / MANIFEST).write_bytes(manifest_json(Manifest(ref, files, counts)))
        if claim is not None:
            claim(ref)
        if not publish_folder(folder, folder_of(store, ref)):
            read_manifest(store, ref)
    return ref


def manifest_json(manifest: Manifest) -> bytes:
    files = [
        {"path": file.path, "size": file.size, "sha256": file.sha256}
        | ({"same_as": file.same_as} if file.same_as else {})
        for file in manifest.files
    ]
    document = {"stage": manifest.ref.stage, "digest": manifest.ref.digest, "files": files, "counts": manifest.counts}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)


def exists(store: Store, ref: ObjectRef) -> bool:
    return (folder_of(store, ref) / MANIFEST).exists()


def read_manifest(store: Store, ref: ObjectRef) -> Manifest:
    """The manifest of an object that shows no sign of having been altered.

    Each file has the size that is stated. One that can be written, or is newer than the manifest, is read and compared
    with its sha256 (so copies of a store that keep no times are right but slow); `verify_object` reads them all.

    Raises:
        StoreError: the object is missing, or a file was removed, cut, grown or altered.
    """
    folder = folder_of(store, ref)
    with store_errors(store.root, f"read {ref}"):
        try:
            written = (folder / MANIFEST).stat().st_mtime_ns
            manifest = parse_manifest((folder / MANIFEST).read_bytes(), ref)
        except FileNotFoundError:
            raise StoreError(f"{folder}: the object {ref} is not in this store; build again") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise StoreError(f"{folder / MANIFEST}: the manifest was altered; {removal(folder)}") from None
        for file in manifest.files:
            require_unaltered(folder, file, written)
    return manifest


def parse_manifest(content: bytes, ref: ObjectRef) -> Manifest:
    document = orjson.loads(content)
    files = tuple(FileEntry(f["path"], f["size"], f["sha256"], f.get("same_as")) for f in document["files"])
    if digest_of(files) != ref.digest:
        raise ValueError("the manifest is of another object")
    return Manifest(ref, files, document["counts"])


def require_unaltered(folder: Path, file: FileEntry, written: int) -> None:
    path = folder / file.path
    try:
        found = path.stat()
    except FileNotFoundError:
        raise StoreError(f"{path}: missing, not {file.size} bytes long; {removal(folder)}") from None
    if found.st_size != file.size:
        raise StoreError(f"{path}: {found.st_size} bytes long, not {file.size} bytes; {removal(folder)}")
    suspect = found.st_mode & WRITE_BITS or found.st_mtime_ns > written
    if suspect and sha256_of(path) != file.sha256:
        raise StoreError(f"{path}: content differs from its sha256; {removal(folder)}")


def removal(folder: Path) -> str:
    """How to be rid of a damaged object."""
    return f"remove the object (chmod -R u+w {folder} && rm -r {folder}) and build again"


def require_object(store: Store, ref: ObjectRef) -> Path:
    """The folder of an object that shows no sign of having been altered.

    Raises:
        StoreError: see `read_manifest`.
    """
    read_manifest(store, ref)
    return folder_of(store, ref)


def verify_object(store: Store, ref: ObjectRef) -> list[str]:
    """Faults of an object, one sentence each: recomputes every sha256 and the digest, and lists strange files."""
    folder = folder_of(store, ref)
    try:
        manifest = read_manifest(store, ref)
        with store_errors(store.root, f"read {ref}"):
            found = list_files(folder)
    except StoreError as error:
        return [str(error)]
    faults = []
    stated = {file.path: file for file in manifest.files}
    for file in found:
        if file.path not in stated:
            faults.append(f"{folder / file.path}: not part of the object")
        elif stated[file.path].sha256 != file.sha256:
            faults.append(f"{folder / file.path}: content differs from its sha256; the object was altered")
    if not faults and digest_of(found) != ref.digest:
        faults.append(f"{folder}: the digest of its files is not its name")
    return faults


def move_to_trash(store: Store, ref: ObjectRef) -> Path:
    """Takes an object's name away at once; the folder in `tmp/` that holds its files can be removed at leisure.

    Raises:
        StoreError: the store cannot be written, or the object belongs to another user.
    """
    folder = folder_of(store, ref)
    trash = store.tmp / uuid.uuid4().hex
    with store_errors(store.root, f"remove {ref}"):
        # A folder is moved to another parent by writing in it. A crash here leaves a complete object.
        folder.chmod(0o755)
        folder.rename(trash)
        fsync_path(folder.parent)
    return trash


def remove_object(store: Store, ref: ObjectRef) -> None:
    with store_errors(store.root, f"remove {ref}"):
        remove_folder(move_to_trash(store, ref))


def list_objects(store: Store) -> Iterator[ObjectRef]:
    """Every object, by stage and digest."""
    for folder in sorted(store.objects.glob("*/*")):
        if DIGEST.fullmatch(folder.name):
            yield ObjectRef(folder.parent.name, folder.name)
