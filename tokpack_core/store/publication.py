"""Publication: a staged folder becomes an object, in the order that `files.py` gives.

Everything is hashed once, here or as it was written; with the object's name its files are noted as compared (see
verified.py).
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tokpack_core.store import verified
from tokpack_core.store.files import publish_folder, remove_folder, store_errors
from tokpack_core.store.objects import (
    MANIFEST,
    NONE_HASHED,
    FileEntry,
    Manifest,
    ObjectRef,
    digest_of,
    folder_of,
    list_files,
    manifest_json,
    read_manifest,
)
from tokpack_core.store.store import Store


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


def publish(
    store: Store,
    stage: str,
    folder: Path,
    counts: dict[str, Any],
    claim: Callable[[ObjectRef], None] | None = None,
    hashed: Mapping[str, str] = NONE_HASHED,
) -> ObjectRef:
    """Makes the staged `folder` an object; the same content published twice is one object.

    Args:
        claim: called with the object's name before anything relies on it, to keep it from garbage collection.
        hashed: sha256 of files that were hashed as they were written, by path in the folder.

    Raises:
        StoreError: the disk is full or refuses to be written, or an object of that name is there and was altered.
    """
    with store_errors(store.root, f"publish {stage}"):
        files = list_files(folder, hashed)
        ref = ObjectRef(stage, digest_of(files))
        (folder / MANIFEST).write_bytes(manifest_json(Manifest(ref, files, counts)))
        if claim is not None:
            claim(ref)
        if publish_folder(folder, folder_of(store, ref)):
            note_published(store, ref, files)
        else:
            read_manifest(store, ref)
    return ref


def note_published(store: Store, ref: ObjectRef, files: Iterable[FileEntry]) -> None:
    """Notes that the files hold what was just hashed, as they are since their write bits went."""
    folder = folder_of(store, ref)
    seen = {file.path: verified.seen((folder / file.path).stat()) for file in files}
    verified.note(store, verified.path_of(store, ref.stage, ref.digest), folder, seen)
