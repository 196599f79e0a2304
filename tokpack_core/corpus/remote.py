"""Source files behind URLs that fsspec takes (s3://, gs://, https://, …).

A listing gives sizes and what tells one version of an object from the next: its ETag where the store has one, else the
time of its change. To be read, an object is fetched into a temporary folder, and removed afterwards: readers want to
seek and to prove, before they begin, that a file is the one that was inventoried. So a process that reads takes as much
temporary space (TMPDIR) as the file that it is at. fsspec is loaded when the first URL comes up: most files need none.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tokpack_core.errors import InputError

URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
BLOCK = 2**23
VERSIONS = ("ETag", "etag", "LastModified", "mtime", "updated", "last_modified")
"""What file systems call it, the best first."""


def is_url(path: str) -> bool:
    return URL.match(path) is not None


def list_remote(pattern: str) -> Iterator[tuple[str, int, str]]:
    """URL, size and version of every object that a URL, a folder's URL or a URL with `*`, `?`, `[…]` or `**` names.

    Raises:
        InputError: the store cannot be asked.
    """
    with remote_errors(pattern):
        import fsspec

        filesystem, path = fsspec.core.url_to_fs(pattern)
        filesystem.invalidate_cache()
        if any(character in path for character in "*?["):
            matches = filesystem.glob(path, detail=True)
        elif filesystem.isdir(path):
            matches = {path: filesystem.info(path)}
        else:
            matches = {path: filesystem.info(path)} if filesystem.exists(path) else {}
        for name, facts in sorted(matches.items()):
            found = filesystem.find(name, detail=True) if facts["type"] == "directory" else {name: facts}
            for file, status in found.items():
                if status["type"] == "file":
                    yield filesystem.unstrip_protocol(file), int(status["size"] or 0), version_of(status)


def version_of(status: dict[str, Any]) -> str:
    return next((str(status[name]).strip('"') for name in VERSIONS if status.get(name)), "")


def remote_sha256(url: str) -> str:
    """Hex sha256 of an object, which is streamed."""
    digest = hashlib.sha256()
    with remote_errors(url):
        import fsspec

        with fsspec.open(url, "rb").open() as file:
            while block := file.read(BLOCK):
                digest.update(block)
    return digest.hexdigest()


@contextmanager
def fetched(url: str) -> Iterator[Path]:
    """A local copy of an object, under its own name.

    Raises:
        InputError: it cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="tokpack-") as folder:
        copy = Path(folder) / url.rsplit("/", 1)[1]
        with remote_errors(url):
            import fsspec

            filesystem, path = fsspec.core.url_to_fs(url)
            filesystem.get_file(path, str(copy))
        yield copy


@contextmanager
def remote_errors(url: str) -> Iterator[None]:
    """Turns whatever a file system's library raises into one sentence; they have no common base."""
    try:
        yield
    except ImportError as error:
        raise InputError(
            f"{url}: needs a package that is not installed ({error}); for s3, pip install 'tokpack[s3]'"
        ) from None
    except InputError:
        raise
    except Exception as error:
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise InputError(
            f"{url}: cannot be read ({said}); check the address, the credentials and the network"
        ) from error
