"""Objects: folders of files named by the digest of their content, written once and read-only from then on.

The digest of an object is the sha256 over the sorted lines `<sha256>  <relative path>\\n` of its files; the manifest
is not part of it. `manifest.json` = stage, digest, files (path, size, sha256, `same_as` for a second name of equal
content) and counts.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.errors import StoreError
from tokpack_core.store.files import publish_folder, remove_folder, sha256_of
from tokpack_core.store.store import Store

MANIFEST = "manifest.json"


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
    """A fresh folder in the store's `tmp/`, removed unless it was published."""
    folder = store.tmp / uuid.uuid4().hex
    try:
        folder.mkdir()
    except OSError as error:
        raise StoreError(f"{store.root}: the store cannot be written ({error.strerror})") from error
    try:
        yield folder
    finally:
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)


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


def publish(store: Store, stage: str, folder: Path, counts: dict[str, Any]) -> ObjectRef:
    """Makes the staged `folder` an object; the same content published twice is one object.

    Raises:
        StoreError: the disk is full or refuses to be written.
    """
    try:
        files = list_files(folder)
        ref = ObjectRef(stage, digest_of(files))
        (folder / MANIFEST).write_bytes(manifest_json(Manifest(ref, files, counts)))
        publish_folder(folder, folder_of(store, ref))
    except OSError as error:
        raise StoreError(f"{store.root}: cannot publish {stage} ({error.strerror}); nothing was changed") from error
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
    """The manifest of an object whose files have the sizes that it states.

    Raises:
        StoreError: the object is missing, or a file was removed, cut or grown.
    """
    folder = folder_of(store, ref)
    try:
        document = orjson.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise StoreError(f"{folder}: the object {ref} is not in this store") from None
    except orjson.JSONDecodeError:
        raise StoreError(f"{folder / MANIFEST}: the manifest was altered; remove the object and build again") from None
    files = tuple(FileEntry(f["path"], f["size"], f["sha256"], f.get("same_as")) for f in document["files"])
    for file in files:
        path = folder / file.path
        size = path.stat().st_size if path.exists() else None
        if size != file.size:
            found = "missing" if size is None else f"{size} bytes long"
            raise StoreError(f"{path}: {found}, not {file.size} bytes; remove the object {ref} and build again")
    return Manifest(ref, files, document["counts"])


def verify_object(store: Store, ref: ObjectRef) -> list[str]:
    """Faults of an object, one sentence each: recomputes every sha256 and the digest, and lists strange files."""
    folder = folder_of(store, ref)
    try:
        manifest = read_manifest(store, ref)
    except StoreError as error:
        return [str(error)]
    faults = []
    found = list_files(folder)
    stated = {file.path: file for file in manifest.files}
    for file in found:
        if file.path not in stated:
            faults.append(f"{folder / file.path}: not part of the object")
        elif stated[file.path].sha256 != file.sha256:
            faults.append(f"{folder / file.path}: content differs from its sha256; the object was altered")
    if not faults and digest_of(found) != ref.digest:
        faults.append(f"{folder}: the digest of its files is not its name")
    return faults


def remove_object(store: Store, ref: ObjectRef) -> None:
    remove_folder(folder_of(store, ref))


def list_objects(store: Store) -> Iterator[ObjectRef]:
    """Every object, by stage and digest."""
    for stage in sorted(os.listdir(store.objects)):
        for digest in sorted(os.listdir(store.objects / stage)):
            yield ObjectRef(stage, digest)
