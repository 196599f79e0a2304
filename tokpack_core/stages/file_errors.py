"""Errors of the file system during a stage's work, as one sentence about the store or about a source file."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tokpack_core.errors import InputError
from tokpack_core.store.files import store_error
from tokpack_core.store.store import Store

WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""What only writing gives, and stages write in the store alone."""


@contextmanager
def file_errors(store: Store, what: str) -> Iterator[None]:
    """Turns an OSError into a sentence with its remedy.

    Raises:
        InputError: a file outside the store cannot be read.
        StoreError: anything else went wrong with files.
    """
    try:
        yield
    except OSError as error:
        named = isinstance(error.filename, str) and not Path(error.filename).is_relative_to(store.root)
        if named and error.errno not in WRITING:
            raise InputError(
                f"{error.filename}: cannot be read ({error.strerror}); check the file and its rights and run again"
            ) from error
        raise store_error(store.root, what, error) from error
