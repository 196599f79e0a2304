"""Pins: `pins/<name>.json`, objects that are kept until the pin is removed, with all they were made from."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from tokpack_core.errors import StoreError
from tokpack_core.store import leases
from tokpack_core.store.files import create_exclusively, store_errors
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Pin:
    """Objects kept by name.

    Attributes:
        when: UTC time, ISO 8601.
    """

    name: str
    refs: tuple[ObjectRef, ...]
    when: str


def path_of(store: Store, name: str) -> Path:
    if not NAME.fullmatch(name):
        raise StoreError(f"{name!r} cannot name a pin; use letters, digits, `.`, `_` and `-`")
    return store.pins / f"{name}.json"


def add(store: Store, name: str, refs: Sequence[ObjectRef]) -> Pin:
    """Pins objects; saying the same twice changes nothing.

    Raises:
        StoreError: an object is not there, the name stands for other objects, or the store cannot be written.
    """
    path = path_of(store, name)
    pin = Pin(name, tuple(refs), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    content = orjson.dumps({"refs": [str(ref) for ref in refs], "when": pin.when}, option=orjson.OPT_INDENT_2)
    with leases.hold(store, refs, f"pin {name}"), store_errors(store.root, f"write the pin {name}"):
        if create_exclusively(path, content, store.tmp):
            return pin
    there = read_pin(path)
    if there is None or set(there.refs) != set(refs):
        raise StoreError(f"the pin {name} keeps other objects; remove it first, or choose another name")
    return there


def remove(store: Store, name: str) -> None:
    """Removes a pin; the objects stay until the next garbage collection.

    Raises:
        StoreError: there is no such pin, or the store cannot be written.
    """
    with store_errors(store.root, f"remove the pin {name}"):
        try:
            path_of(store, name).unlink()
        except FileNotFoundError:
            names = ", ".join(pin.name for pin in list_pins(store)) or "none"
            raise StoreError(f"there is no pin {name}; there are: {names}") from None


def list_pins(store: Store) -> list[Pin]:
    """All pins by name.

    Raises:
        StoreError: a pin was altered or cannot be read.
    """
    with store_errors(store.root, "read the pins"):
        found = [read_pin(path) for path in sorted(store.pins.glob("*.json"))]
    return [pin for pin in found if pin is not None]


def read_pin(path: Path) -> Pin | None:
    """A pin; None if it was removed, or its name is reserved and was never used."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    if not content:
        return None
    try:
        document = orjson.loads(content)
        return Pin(path.stem, tuple(map(ObjectRef.parse, document["refs"])), document["when"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StoreError(f"{path}: the pin was altered; remove the file and pin again") from None
