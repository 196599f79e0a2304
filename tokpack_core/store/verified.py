"""Which published files were compared with their sha256 and have not been touched since.

    verified/<stage>/<digest>.json    inode of the object's folder, and of each file its inode, size and ctime

The kernel sets a file's ctime to the present whenever content, size, mode, times or links change, and gives nobody a
way to set it back (POSIX, `stat`; git's index trusts it likewise). So a file with the inode, size and ctime that it had
when its content was compared is unaltered, though a program put size, modification time and mode back. That costs one
small file without fsync, where hashing every input again would cost as much as publishing. A record that is lost, cut
or old makes its files be read and compared once more, nothing else. What a failing disk changes below the file system
changes no ctime: `tokpack verify` reads everything.

In another place (a moved or restored store) the folder has another inode and the record says nothing.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from functools import lru_cache
from pathlib import Path

import orjson

from tokpack_core.store.files import WRITE_BITS, sha256_of
from tokpack_core.store.store import Store

Seen = tuple[int, int, int]
"""Inode, size and ctime in nanoseconds."""


def path_of(store: Store, stage: str, digest: str) -> Path:
    return store.verified / stage / f"{digest}.json"


def seen(status: os.stat_result) -> Seen:
    return status.st_ino, status.st_size, status.st_ctime_ns


def load(record: Path, folder: Path) -> dict[str, Seen]:
    """What is noted about the files of the object at `folder`, by path; nothing if it was noted in another place."""
    try:
        document = orjson.loads(record.read_bytes())
        if document["folder"] != folder.stat().st_ino:
            return {}
        return {path: (inode, size, ctime) for path, (inode, size, ctime) in document["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def note(store: Store, record: Path, folder: Path, files: dict[str, Seen]) -> None:
    """Adds files of the object at `folder` as they were when they held what they must, by path.

    Where nothing can be written, they are compared again when they are read again.
    """
    draft = store.tmp / uuid.uuid4().hex
    try:
        noted = {"folder": folder.stat().st_ino, "files": load(record, folder) | files}
        record.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(orjson.dumps(noted))
        draft.replace(record)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def forget(record: Path) -> None:
    """Removes what is noted about an object that goes."""
    with contextlib.suppress(OSError):
        record.unlink(missing_ok=True)


def looks_altered(status: os.stat_result, noted: Seen | None, manifest_written: int) -> bool:
    """Whether a file was touched since it was noted; of one that never was, whether its mode or time says so."""
    if noted is not None:
        return seen(status) != noted
    return bool(status.st_mode & WRITE_BITS) or status.st_mtime_ns > manifest_written


def holds(path: Path, sha256: str) -> bool:
    """Whether a file has that content; read once in a process as long as it is not touched."""
    return sha256_when(path, seen(path.stat())) == sha256


@lru_cache(maxsize=4096)
def sha256_when(path: Path, now: Seen) -> str:
    digest = sha256_of(path)
    return digest if seen(path.stat()) == now else ""
