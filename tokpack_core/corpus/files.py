"""Source files by name: files, folders and globs, each real file once, in an order that does not depend on the machine.

A pattern is a path relative to a base folder, or absolute. A path that exists is meant literally, whatever glob
characters it has; else `*`, `?`, `[…]` match within one part of the path, and a part `**` matches any number of
folders. A folder, named or matched, gives every file below it.

Inside folders and globs, names that start with a dot are passed over (unless the pattern has the dot), and so are files
of other extensions and what is no regular file (pipes, devices). A file that is named itself must be readable here.
Extensions are compared without case. Symbolic links are followed; a folder is entered once, so loops end. A file
reached on several ways (a link to a file of the set, overlapping patterns) is taken once, under a name without links if
it has one, else under the first by bytes. Hard links are files of their own.

A pattern that is a URL is listed by fsspec (see `remote`); an object's name is its URL.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from tokpack_core.corpus.compression import Codec
from tokpack_core.corpus.remote import fetched, is_url, list_remote
from tokpack_core.errors import InputError

FileKind = Literal["jsonl", "json", "csv", "tsv", "txt", "parquet", "arrow"]
EXTENSIONS: dict[str, FileKind] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "txt",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
CODECS: dict[str, Codec] = {".gz": "gzip", ".zst": "zstd"}
ACCEPTED = ".jsonl .ndjson .json .csv .tsv .txt (each also .gz .zst) .parquet .arrow .feather .ipc"


@dataclass(frozen=True)
class SourceFile:
    name: str
    """Relative to the base folder in POSIX form, absolute outside of it. Always valid UTF-8 and different for
    different paths: a byte that is not UTF-8 is written \\xff, a backslash twice."""
    path: Path
    """Where a local file is; for an object behind a URL, that URL, for messages only."""
    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int = 0
    version: str | None = None
    """ETag or time of an object behind a URL, which is its name; None for a local file."""

    @property
    def fingerprint(self) -> str:
        """What a stat or a listing tells of the content without reading it.

        The ctime is among it, for whoever writes into a file can put its modification time back, as some programs do.
        """
        if self.version is not None:
            return f"{self.size}:{self.version}"
        return f"{self.size}:{self.mtime_ns}:{self.ctime_ns}:{self.inode}"

    @property
    def shown(self) -> str:
        return str(self.path) if self.version is None else self.name

    @contextmanager
    def opened(self) -> Iterator[Path]:
        """A local path of the content, which is proven unchanged when the block ends well.

        Raises:
            InputError: it cannot be read, or changed meanwhile.
        """
        if self.version is not None:
            with fetched(self.name) as path:
                yield path
            return
        yield self.path
        require_unchanged(self.path, (self.size, self.mtime_ns, self.inode))


class _Found(NamedTuple):
    path: str
    real: str
    linked: bool
    """Reached through a symbolic link below what the pattern names."""
    status: os.stat_result


def file_type(filename: str) -> tuple[FileKind, Codec | None] | None:
    """Kind and compression by extension; None for a file that no reader takes."""
    stem, extension = os.path.splitext(filename.lower())
    codec = CODECS.get(extension)
    if codec is not None:
        extension = os.path.splitext(stem)[1]
    kind = EXTENSIONS.get(extension)
    return None if kind is None or (codec and kind in ("parquet", "arrow")) else (kind, codec)


def find_files(patterns: Sequence[str], base: Path) -> list[SourceFile]:
    """The source files that the patterns name, ordered by the bytes of their names.

    Raises InputError, which names the pattern or file, when a pattern gives no file, or when a file of it cannot be
    read, is a dangling link, or (named itself) is of another type.
    """
    folder = os.path.abspath(base)
    by_real_path: dict[str, tuple[bool, bytes, SourceFile]] = {}
    for pattern in patterns:
        empty = True
        if is_url(pattern):
            for source in _remote_files(pattern):
                empty = False
                by_real_path[source.name] = (False, source.name.encode(), source)
            if empty:
                raise InputError(f"{pattern}: gives no object to read, by name, folder or glob; accepted: {ACCEPTED}")
            continue
        for found in _match(pattern, folder):
            empty = False
            status = found.status
            name = source_name(found.path, folder)
            stated = (status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns)
            source = SourceFile(name, Path(found.path), *stated)
            candidate = (found.linked, name.encode(), source)
            by_real_path[found.real] = min(by_real_path.get(found.real, candidate), candidate, key=lambda c: c[:2])
        if empty:
            raise InputError(f"{shown(pattern)}: gives no file to read{why_empty(pattern, folder)}")
    return [source for _, _, source in sorted(by_real_path.values(), key=lambda c: c[1])]


def why_empty(pattern: str, folder: str) -> str:
    """The first folder or file of the pattern that does not exist, else which files would be read."""
    path = "/" if os.path.isabs(pattern) else folder
    for part in (part for part in pattern.split("/") if part):
        path = os.path.join(path, part)
        if is_glob(part):
            break
        if not os.path.lexists(path):
            return f", for there is no {shown(path)}; restore it, or correct the path"
    return f", by name, folder or glob; accepted: {ACCEPTED}"


def is_glob(part: str) -> bool:
    return any(character in part for character in "*?[")


def _remote_files(pattern: str) -> Iterator[SourceFile]:
    for url, size, version in list_remote(pattern):
        name = url.rsplit("/", 1)[1]
        if file_type(name) and not name.startswith("."):
            yield SourceFile(url, Path(url), size, 0, 0, version=version)
        elif url == pattern:
            raise InputError(f"{url}: its extension is none of {ACCEPTED}; rename or convert the object")


def source_name(path: str, folder: str) -> str:
    """The name of a path as `SourceFile.name` has it; `folder` is the absolute base."""
    path = os.path.abspath(path)
    prefix = folder.rstrip("/") + "/"
    relative = path.removeprefix(prefix)
    return os.fsencode(relative.replace("\\", "\\\\")).decode(errors="backslashreplace")


def source_path(name: str, folder: Path) -> Path:
    """The path that `source_name` names, from the absolute base `folder`."""
    raw = re.sub(rb"\\(?:\\|x([0-9a-f]{2}))", unescaped, name.encode())
    return Path(os.path.join(folder, os.fsdecode(raw)))


def unescaped(escape: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escape[1].decode()) if escape[1] else b"\\"


Identity = tuple[int, int, int]
"""Size, modification time in nanoseconds, inode: what tells that a file was changed or replaced."""


def identity(path: Path) -> Identity:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def require_unchanged(path: Path, before: Identity) -> None:
    """Raises InputError when a source file is not the one that it was before it was read, or is gone."""
    with named_if_gone(path):
        now = identity(path)
    if now != before:
        raise InputError(f"{path}: the file changed while it was read; run again when it is complete")


@contextmanager
def named_if_gone(path: Path) -> Iterator[None]:
    """Raises InputError instead of what the system says of a source file that can no longer be read."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path}: the file can no longer be read ({error.strerror}); restore it and run again"
        ) from error


def shown(path: str) -> str:
    """A path as valid UTF-8, for messages."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _match(pattern: str, folder: str) -> Iterator[_Found]:
    path = os.path.join(folder, pattern)
    if os.path.isdir(path):
        yield from _walk([(path, os.path.islink(path))])
    elif os.path.lexists(path):
        yield _named_file(path)
    else:
        folders = []
        start = "/" if os.path.isabs(pattern) else folder
        for match, linked in _expand(start, [part for part in pattern.split("/") if part]):
            if os.path.isdir(match):
                folders.append((match, linked))
            elif file_type(os.path.basename(match)):
                yield from _regular_file(match, linked)
        yield from _walk(folders)


def _named_file(path: str) -> _Found:
    if not file_type(os.path.basename(path)):
        raise InputError(f"{shown(path)}: its extension is none of {ACCEPTED}; rename or convert the file")
    for found in _regular_file(path, os.path.islink(path)):
        return found
    raise InputError(f"{shown(path)}: is not a regular file; name a file or a folder")


def _regular_file(path: str, linked: bool, real: str | None = None) -> Iterator[_Found]:
    """The file, or nothing if it is no regular file. Raises InputError when it is dangling or unreadable."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise InputError(f"{shown(path)}: cannot be read ({error.strerror}); mend or remove it") from None
    if stat.S_ISREG(status.st_mode):
        if not os.access(path, os.R_OK):
            raise InputError(f"{shown(path)}: cannot be read (permission denied); change its permissions")
        yield _Found(path, real or os.path.realpath(path), linked, status)


def _walk(roots: Sequence[tuple[str, bool]]) -> Iterator[_Found]:
    """Files below folders, each given with whether a link led to it.

    Links wait until all else has been seen, so that a folder is entered on a way without links if there is one.
    """
    waiting = [path for path, linked in roots if not linked]
    links = deque(path for path, linked in roots if linked)
    entered: set[str] = set()
    linked = False
    while waiting or links:
        linked = linked or not waiting
        folder = waiting.pop() if waiting else links.popleft()
        real = os.path.realpath(folder)
        if real in entered:
            continue
        entered.add(real)
        for entry in _listed(folder):
            if entry.name.startswith("."):
                continue
            if _is_folder(entry):
                (links if entry.is_symlink() else waiting).append(entry.path)
            elif file_type(entry.name):
                link = entry.is_symlink()
                yield from _regular_file(entry.path, linked or link, None if link else os.path.join(real, entry.name))


def _expand(start: str, parts: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Paths below `start` that match the parts of a glob, each with whether a link led to it; links last, as above."""
    waiting = [(start, 0)]
    links: deque[tuple[str, int]] = deque()
    seen: set[tuple[str, int]] = set()
    linked = False
    while waiting or links:
        linked = linked or not waiting
        path, matched = waiting.pop() if waiting else links.popleft()
        state = (os.path.realpath(path), matched)
        if state in seen:
            continue
        seen.add(state)
        if matched == len(parts):
            yield path, linked
            continue
        for following, now_matched in _steps(path, parts, matched):
            link = following != path and os.path.islink(following)
            (links if link else waiting).append((following, now_matched))


def _steps(path: str, parts: Sequence[str], matched: int) -> Iterator[tuple[str, int]]:
    """Where a glob of which `matched` parts led to `path` can go on."""
    part = parts[matched]
    if not is_glob(part):
        following = os.path.join(path, part)
        if os.path.lexists(following):
            yield following, matched + 1
    elif os.path.isdir(path):
        if part == "**":
            yield path, matched + 1
        for entry in _listed(path):
            hidden = entry.name.startswith(".") and not part.startswith(".")
            if part == "**" and not hidden and _is_folder(entry):
                yield entry.path, matched
            elif part != "**" and not hidden and fnmatch.fnmatchcase(entry.name, part):
                yield entry.path, matched + 1


def _listed(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        raise InputError(f"{shown(folder)}: cannot be listed ({error.strerror}); change its permissions") from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False
