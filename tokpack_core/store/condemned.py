"""What a running garbage collection is about to remove: `leases/<name>.collection`, with its holder and the objects.

Whoever wants an object waits while it stands in such a file; see leases.py for why that is enough.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import orjson

from tokpack_core.store.files import make_folder, store_errors
from tokpack_core.store.holders import Holder, holder_of, is_live
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store

EXPIRES_SECONDS = 600
"""A collection touches its file with each object, so one of another host that is older has died."""
POLL_SECONDS = 0.05


@contextmanager
def collecting(store: Store, refs: Sequence[ObjectRef]) -> Iterator[Path]:
    """Announces that a garbage collection is about to remove `refs`; the file given is to be touched as it goes on."""
    path = store.leases / f"{uuid.uuid4().hex}.collection"
    document = {"holder": holder_of(os.getpid()).to_json(), "refs": [str(ref) for ref in refs]}
    with store_errors(store.root, "write in the store"):
        make_folder(store.leases)
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    try:
        # On a full disk the file stays empty or cut, which readers take for a collection of everything.
        with open(descriptor, "wb") as file, contextlib.suppress(OSError):
            file.write(orjson.dumps(document))
            file.flush()
        yield path
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def wait_for_collections(store: Store, refs: Sequence[ObjectRef]) -> None:
    """Waits while a running collection may remove one of `refs`."""
    names = {str(ref) for ref in refs}
    for path in store.leases.glob("*.collection"):
        while condemns(path, names):
            time.sleep(POLL_SECONDS)


def condemns(path: Path, names: set[str]) -> bool:
    try:
        touched_at = path.stat().st_mtime
        document = orjson.loads(path.read_bytes())
        holders, refs = [Holder(**document["holder"])], document["refs"]
    except FileNotFoundError:
        return False
    except (ValueError, KeyError, TypeError):
        holders, refs = [], names
    return not names.isdisjoint(refs) and is_live(holders, touched_at, EXPIRES_SECONDS)
