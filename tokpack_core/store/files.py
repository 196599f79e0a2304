"""Durable file operations: what has a name is complete, and stays as it is.

Order of a publication: write in a temporary folder, fsync the files, drop their write bits, rename the folder, drop
its write bit, fsync both parents. Renaming a read-only folder fails for everyone but root, hence the order. A crash
between the rename and the last chmod leaves a complete folder that can be written; publishing it again seals it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tokpack_core.errors import StoreError

READ_ONLY_FILE = 0o444
READ_ONLY_FOLDER = 0o555
WRITE_BITS = 0o222

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)
"""What `link` says on file systems without hard links."""
REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space or raise the quota",
    errno.EFBIG: "raise the limit on file sizes",
    errno.EROFS: "mount it writable or name another store",
    errno.EACCES: "check the rights of the folder and who owns it",
    errno.EPERM: "check the rights of the folder and who owns it",
    errno.EIO: "check the disk",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
}


@contextmanager
def store_errors(root: Path, what: str) -> Iterator[None]:
    """Turns an error of the file system into one sentence: the store, what was being done, why not, and the remedy.

    Raises:
        StoreError: instead of every OSError.
    """
    try:
        yield
    except OSError as error:
        raise store_error(root, what, error) from error


def store_error(root: Path, what: str, error: OSError) -> StoreError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    where = f" at {error.filename}" if names_a_place(root, error.filename) else ""
    # Libraries raise an OSError without a number when fewer bytes were written than asked: the disk is full.
    remedy = REMEDIES.get(error.errno or errno.ENOSPC, "check the disk, its space and its rights")
    return StoreError(f"{root}: cannot {what}{where} ({reason}); {remedy}, then run again; finished units are kept")


def names_a_place(root: Path, filename: object) -> bool:
    """Whether a file tells the user more than the store does: work in progress has random names."""
    path = Path(filename) if isinstance(filename, str) else root
    return path != root and not path.is_relative_to(root / "tmp")


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


def make_folder(path: Path) -> None:
    """Creates a folder and its parents, each to survive a power cut."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    fsync_path(path.parent)


@contextmanager
def complete_draft(content: bytes, tmp: Path) -> Iterator[Path]:
    """A read-only file with `content` in `tmp`, safe on disk; removed in the end unless it was renamed."""
    draft = tmp / uuid.uuid4().hex
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(READ_ONLY_FILE)
        yield draft
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def create_exclusively(path: Path, content: bytes, tmp: Path) -> bool:
    """Creates `path` with all of `content`, or leaves an existing file alone; True if this call created it.

    A hard link fails when the name exists, on every file system that has links and also between hosts, and never shows
    a partial file. Without links the name is first reserved by an exclusively created empty file, which only its
    creator replaces: readers take an empty file for none, and after a crash it stays an unused name.
    """
    make_folder(path.parent)
    with complete_draft(content, tmp) as draft:
        try:
            os.link(draft, path)
        except FileExistsError:
            # A client of a network file system may have repeated a request that had succeeded.
            return draft.stat().st_nlink == 2
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            if not reserve(path):
                return False
            os.replace(draft, path)
        fsync_path(path.parent)
    return True


def reserve(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, READ_ONLY_FILE))
    except FileExistsError:
        return False
    return True


def replace_file(path: Path, content: bytes, tmp: Path) -> None:
    """Puts `content` under the name `path` at once, whatever stood there."""
    make_folder(path.parent)
    with complete_draft(content, tmp) as draft:
        os.replace(draft, path)
        fsync_path(path.parent)


def publish_folder(draft: Path, final: Path) -> bool:
    """Moves a complete folder to its final name; False when that name was published before, by whomever."""
    for folder, _, files in os.walk(draft, topdown=False):
        for name in files:
            file = Path(folder, name)
            file.chmod(READ_ONLY_FILE)
            fsync_path(file)
        fsync_path(Path(folder))
        if folder != str(draft):
            os.chmod(folder, READ_ONLY_FOLDER)
    make_folder(final.parent)
    try:
        os.rename(draft, final)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        remove_folder(draft)
        seal(final)
        return False
    seal(final)
    fsync_path(final.parent)
    fsync_path(draft.parent)
    return True


def seal(folder: Path) -> None:
    """Takes the write bit of a complete folder, the last step of its publication."""
    # Another user's object is sealed by its owner; it may also be gone by now.
    with contextlib.suppress(PermissionError, FileNotFoundError):
        if folder.stat().st_mode & WRITE_BITS:
            folder.chmod(READ_ONLY_FOLDER)


def remove_folder(folder: Path) -> None:
    """Removes a folder of ours, read-only or not."""
    for parent, _, _ in os.walk(folder):
        os.chmod(parent, 0o755)
    shutil.rmtree(folder)
