"""Objects: folders of files named by the digest of their content, written once and read-only from then on.

The digest of an object is the sha256 over the sorted lines `<sha256>  <relative path>\\n` of its files; the manifest
is not part of it. `manifest.json` = stage, digest, files (path, size, sha256, `same_as` for a second name of equal
content) and counts.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.errors import StoreError
from tokpack_core.store import verified
from tokpack_core.store.files import (
    fsync_path,
    remove_folder,
    sha256_of,
    store_errors,
)
from tokpack_core.store.store import Store

MANIFEST = "manifest.json"
NONE_HASHED: Mapping[str, str] = {}
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
class ObjectFile:
    """A file of an object, or all of its files."""

    ref: ObjectRef
    path: str | None = None


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


def digest_of(files: tuple[FileEntry, ...]) -> str:
    lines = sorted(f"{file.sha256}  {file.path}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


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

    Each file has the size that is stated. One that was touched since it was compared with its sha256, or of which
    nothing is noted and that can be written or is newer than the manifest, is read and compared; `require_files`
    trusts only what is noted, and `verify_object` reads them all.

    Raises:
        StoreError: the object is missing, or a file was removed, cut, grown or altered.
    """
    manifest = stated_manifest(store, ref)
    require_unaltered(store, manifest, manifest.files, unknown_too=False)
    return manifest


def stated_manifest(store: Store, ref: ObjectRef) -> Manifest:
    """What the manifest of an object says, whatever became of its files.

    Raises:
        StoreError: the object is missing, or the manifest was altered.
    """
    folder = folder_of(store, ref)
    with store_errors(store.root, f"read {ref}"):
        try:
            return parse_manifest((folder / MANIFEST).read_bytes(), ref)
        except FileNotFoundError:
            raise StoreError(f"{folder}: the object {ref} is not in this store; build again") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise StoreError(f"{folder / MANIFEST}: the manifest was altered; {removal(store, ref)}") from None


def parse_manifest(content: bytes, ref: ObjectRef) -> Manifest:
    document = orjson.loads(content)
    files = tuple(FileEntry(f["path"], f["size"], f["sha256"], f.get("same_as")) for f in document["files"])
    if digest_of(files) != ref.digest:
        raise ValueError("the manifest is of another object")
    return Manifest(ref, files, document["counts"])


def require_unaltered(store: Store, manifest: Manifest, files: Sequence[FileEntry], unknown_too: bool) -> None:
    """Compares the files that were touched since they were compared; with `unknown_too` also those never noted.

    Raises:
        StoreError: a file is not what it must be.
    """
    ref, folder = manifest.ref, folder_of(store, manifest.ref)
    record = verified.path_of(store, ref.stage, ref.digest)
    noted = verified.load(record, folder)
    compared: dict[str, verified.Seen] = {}
    with store_errors(store.root, f"read {ref}"):
        written = (folder / MANIFEST).stat().st_mtime_ns
        for file in files:
            path = folder / file.path
            status = require_size(store, ref, file)
            unknown = unknown_too and file.path not in noted
            if unknown or verified.looks_altered(status, noted.get(file.path), written):
                if not verified.holds(path, file.sha256):
                    raise StoreError(f"{path}: content differs from its sha256; {removal(store, ref)}")
                compared[file.path] = verified.seen(status)
    if compared:
        verified.note(store, record, folder, compared)


def require_size(store: Store, ref: ObjectRef, file: FileEntry) -> os.stat_result:
    path = folder_of(store, ref) / file.path
    try:
        status = path.stat()
    except FileNotFoundError:
        raise StoreError(f"{path}: missing, not {file.size} bytes long; {removal(store, ref)}") from None
    if status.st_size != file.size:
        raise StoreError(f"{path}: {status.st_size} bytes long, not {file.size} bytes; {removal(store, ref)}")
    return status


def removal(store: Store, ref: ObjectRef) -> str:
    """How to be rid of a damaged object."""
    folder = shlex.quote(str(folder_of(store, ref)))
    name = f"{ref.stage}/{ref.digest[:12]}"
    return f"remove the object {name} and build again: chmod -R u+w {folder} && rm -r {folder} && tokpack build"


def require_files(store: Store, files: Iterable[ObjectFile]) -> dict[Path, verified.Seen]:
    """Proves files before they are read: each was compared with its sha256 and not touched since, or is compared now.

    Returns:
        The files as they were, which `still_the_same` takes.

    Raises:
        StoreError: an object is missing, or a file of it was altered.
    """
    named: dict[ObjectRef, set[str | None]] = {}
    for one in files:
        named.setdefault(one.ref, set()).add(one.path)
    found: dict[Path, verified.Seen] = {}
    for ref, paths in named.items():
        manifest = stated_manifest(store, ref)
        chosen = [file for file in manifest.files if None in paths or file.path in paths]
        require_unaltered(store, manifest, chosen, unknown_too=True)
        with store_errors(store.root, f"read {ref}"):
            found |= {path: verified.seen(path.stat()) for path in (folder_of(store, ref) / f.path for f in chosen)}
    return found


def require_object(store: Store, ref: ObjectRef) -> Path:
    """The folder of an object whose files were all proven, see `require_files`.

    Raises:
        StoreError: the object is missing, or a file of it was altered.
    """
    require_files(store, [ObjectFile(ref)])
    return folder_of(store, ref)


def still_the_same(files: dict[Path, verified.Seen]) -> bool:
    """Whether nobody touched files since `require_files`."""
    with contextlib.suppress(OSError):
        return all(verified.seen(path.stat()) == seen for path, seen in files.items())
    return False


def list_files(folder: Path, hashed: Mapping[str, str] = NONE_HASHED) -> tuple[FileEntry, ...]:
    """Every file below `folder` but the manifest, sorted by path; `hashed`: sha256 that are known, by path."""
    entries: list[FileEntry] = []
    first: dict[str, str] = {}
    paths = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    inodes: dict[int, str] = {}
    for path in paths:
        if path == MANIFEST:
            continue
        stat = (folder / path).stat()
        digest = inodes.setdefault(stat.st_ino, "") or hashed.get(path) or sha256_of(folder / path)
        inodes[stat.st_ino] = digest
        same_as = first.setdefault(digest, path) if stat.st_size else path
        entries.append(FileEntry(path, stat.st_size, digest, None if same_as == path else same_as))
    return tuple(entries)


def verify_object(store: Store, ref: ObjectRef) -> list[str]:
    """Faults of an object, one sentence each: recomputes every sha256 and the digest, and lists strange files."""
    folder = folder_of(store, ref)
    try:
        manifest = stated_manifest(store, ref)
        with store_errors(store.root, f"read {ref}"):
            before = {file.path: verified.seen(require_size(store, ref, file)) for file in manifest.files}
            found = list_files(folder)
    except StoreError as error:
        return [str(error)]
    faults = []
    stated = {file.path: file for file in manifest.files}
    for file in found:
        if file.path not in stated:
            faults.append(f"{folder / file.path}: not part of the object")
        elif stated[file.path].sha256 != file.sha256:
            faults.append(f"{folder / file.path}: content differs from its sha256; {removal(store, ref)}")
    if not faults and digest_of(found) != ref.digest:
        faults.append(f"{folder}: the digest of its files is not its name; {removal(store, ref)}")
    if not faults and still_the_same({folder / path: seen for path, seen in before.items()}):
        verified.note(store, verified.path_of(store, ref.stage, ref.digest), folder, before)
    return faults


def move_to_trash(store: Store, ref: ObjectRef) -> Path:
    """Takes an object's name away at once; the folder in `tmp/` that holds its files can be removed at leisure.

    Raises:
        StoreError: the store cannot be written, or the object belongs to another user.
    """
    folder = folder_of(store, ref)
    trash = store.tmp / uuid.uuid4().hex
    verified.forget(verified.path_of(store, ref.stage, ref.digest))
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
