"""Actions: what was run, keyed by everything that shapes its bytes, and the object and counts that came out.

Actions that give the same content share an object, and its manifest tells the counts of the first; the record of each
action has its own, which is what may differ (documents that a packing policy dropped, or that were tried).
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.errors import StoreError
from tokpack_core.store.files import replace_file, store_errors
from tokpack_core.store.objects import ObjectRef, exists, read_manifest
from tokpack_core.store.store import Store

COUNTS = "counts"


@dataclass(frozen=True)
class Action:
    """One piece of work.

    Attributes:
        stage: name of the stage, which is also the folder of its objects.
        code_version: the stage's own number, raised when its output for the same input changes.
        parameters: JSON-able settings that shape the bytes.
        inputs: JSON-able names of what is read, by content.
        libraries: versions of the libraries that shape the bytes.
    """

    stage: str
    code_version: int
    parameters: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    libraries: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return json_digest(asdict(self))


def json_digest(value: Any) -> str:
    """Hex sha256 of a JSON-able value, whatever the order of its keys."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def library_versions(*names: str) -> dict[str, str]:
    return {name: version(name) for name in names}


def path_of(store: Store, stage: str, key: str) -> Path:
    return store.actions / stage / f"{key}.json"


def lookup(store: Store, action: Action) -> ObjectRef | None:
    """The object this action gave before, if it is still there; a record that cannot be understood counts as none.

    Raises:
        StoreError: the record cannot be read.
    """
    with store_errors(store.root, "read an action"):
        try:
            _, ref = load_record(path_of(store, action.stage, action.key))
        except (FileNotFoundError, StoreError):
            return None
        return ref if exists(store, ref) else None


def record(store: Store, action: Action, ref: ObjectRef, counts: dict[str, Any]) -> None:
    """Records what an action gave; call it when the object is published, not before.

    Raises:
        StoreError: the store cannot be written.
    """
    document = asdict(action) | {"object": str(ref), COUNTS: counts}
    content = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    with store_errors(store.root, f"record {action.stage}"):
        replace_file(path_of(store, action.stage, action.key), content, store.tmp)


def read_action(store: Store, stage: str, key: str) -> Action:
    """A recorded action.

    Raises:
        StoreError: there is no such record, or it was altered.
    """
    path = path_of(store, stage, key)
    with store_errors(store.root, "read an action"):
        try:
            return load_record(path)[0]
        except FileNotFoundError:
            raise StoreError(f"{path}: the action is not in this store; build the asset again") from None


def counts_of(store: Store, ref: ObjectRef, key: str) -> dict[str, Any]:
    """The counts of the action `key` that gave `ref`; of one recorded without, those of the object's manifest.

    Raises:
        StoreError: the object is missing or was altered, or the record cannot be read.
    """
    manifest = read_manifest(store, ref)
    with store_errors(store.root, "read an action"), contextlib.suppress(FileNotFoundError, ValueError, AttributeError):
        document = orjson.loads(path_of(store, ref.stage, key).read_bytes())
        if document.get("object") == str(ref):
            counts: dict[str, Any] = document.get(COUNTS, manifest.counts)
            return counts
    return manifest.counts


def load_record(path: Path) -> tuple[Action, ObjectRef]:
    """The action and object that a file records.

    Raises:
        StoreError: the file was altered.
    """
    try:
        document = orjson.loads(path.read_bytes())
        ref = ObjectRef.parse(document.pop("object"))
        document.pop(COUNTS, None)
        return Action(**document), ref
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StoreError(f"{path}: the record was altered; remove the file and build again") from None


def list_actions(store: Store) -> Iterator[tuple[Action, ObjectRef]]:
    """Every recorded action with its object, by stage and key; records that cannot be understood are left out."""
    for path in list_records(store):
        with contextlib.suppress(FileNotFoundError, StoreError):
            yield load_record(path)


def list_records(store: Store) -> list[Path]:
    return sorted(store.actions.glob("*/*.json"))
