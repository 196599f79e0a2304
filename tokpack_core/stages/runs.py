"""Cuts a sorted list into runs where the hash of an item says so.

The borders depend on each item alone and not on its neighbours, so an inserted or removed item changes the run it
falls in, or splits or joins two, and leaves every other run as it was (content-defined chunking, as in rsync and
restic, over whole items).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def cut_runs(
    items: Sequence[Item],
    name: Callable[[Item], str],
    weight: Callable[[Item], int],
    target: int,
    longest: int,
    limit: int,
) -> Iterator[list[Item]]:
    """Runs of about `target` weight.

    A run ends after an item with probability weight / target, at least 1 / longest, drawn from the hash of the item's
    name; and before an item that would take a run of two or more above `limit`.
    """
    run: list[Item] = []
    total = 0
    for item in items:
        if run and total + weight(item) > limit:
            yield run
            run, total = [], 0
        run.append(item)
        total += weight(item)
        if hash_fraction(name(item)) < max(weight(item) / target, 1 / longest):
            yield run
            run, total = [], 0
    if run:
        yield run


def hash_fraction(name: str) -> float:
    """A number in [0, 1) that depends on the name alone."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big") / 2**48
