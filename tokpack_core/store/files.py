"""Durable file operations: what has a name is complete, and stays as it is.

Order of a publication: write in a temporary folder, fsync the files, drop their write bits, rename the folder, drop
its write bit, fsync both parents. Renaming a read-only folder fails for everyone but root, hence the order.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import uuid
from pathlib import Path

READ_ONLY_FILE = 0o444
READ_ONLY_FOLDER = 0o555


def sha256_of(path: Path) -> str:
    """Hex sha256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fsync_path(path: Path) -> None:
    """Makes a file's content, or a folder's entries, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_exclusively(path: Path, content: bytes, tmp: Path) -> bool:
    """Creates `path` with all of `content`, or leaves an existing file alone; True if this call created it.

    A link is used because it fails when the name exists, on every POSIX file system, and never shows a partial file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = tmp / f"{uuid.uuid4().hex}.json"
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(READ_ONLY_FILE)
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        fsync_path(path.parent)
        return True
    finally:
        draft.unlink(missing_ok=True)


def replace_file(path: Path, content: bytes, tmp: Path) -> None:
    """Puts `content` under the name `path` at once, whatever stood there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = tmp / f"{uuid.uuid4().hex}.json"
    with draft.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.chmod(READ_ONLY_FILE)
    os.replace(draft, path)
    fsync_path(path.parent)


def publish_folder(draft: Path, final: Path) -> bool:
    """Moves a complete folder to its final name; False when that name was published by someone else before."""
    for folder, _, files in os.walk(draft):
        for name in files:
            file = Path(folder, name)
            file.chmod(READ_ONLY_FILE)
            fsync_path(file)
        fsync_path(Path(folder))
        if folder != str(draft):
            os.chmod(folder, READ_ONLY_FOLDER)
    final.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.rename(draft, final)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        remove_folder(draft)
        return False
    final.chmod(READ_ONLY_FOLDER)
    fsync_path(final.parent)
    fsync_path(draft.parent)
    return True


def remove_folder(folder: Path) -> None:
    """Removes a folder of ours, read-only or not."""
    for parent, _, _ in os.walk(folder):
        os.chmod(parent, 0o755)
    shutil.rmtree(folder)
