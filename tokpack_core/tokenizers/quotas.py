"""Entries of a vocabulary by domain, whatever the family: whose turn it is, what each got, and the texts of each.

The domain that is furthest behind its quota is the next to give one of its entries (of equal ones the first by name),
so that every beginning of the vocabulary is shared out like the whole. An entry that another domain gave already is
kept once and counts for that one, and the domain goes on to its next: the total is exact. The 256 bytes, which no
domain has to itself, count for all, by the shares of their quotas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from tokpack_core.bpe.text_spool import IN_MEMORY, TextSpool, text_spool
from tokpack_core.config import TrainConfig
from tokpack_core.errors import InputError

BYTES = 256
LABELS_SHOWN = 8
Entry = TypeVar("Entry", bytes, str)
EntryTaken = TypeVar("EntryTaken", bytes, str, contravariant=True)


@dataclass
class Share:
    """What a domain asked for and got."""

    quota: int
    documents: int = 0
    bytes: int = 0
    entries: int = 0
    """That it gave, its part of the bytes included."""
    share: float = 0.0
    """Of all entries that are not special."""
    shared: int = 0
    """More of the vocabulary that it would have alone with its quota: what other domains gave."""
    passed_over: int = 0
    """Of its entries no text could give these."""


class Vocabulary(Protocol[EntryTaken]):
    """What grows entry by entry."""

    def __contains__(self, entry: EntryTaken, /) -> bool: ...

    def add(self, entry: EntryTaken, count: int, /) -> bool:
        """Whether it was added; not if no text could give it. `count`: how often it was learned from."""
        ...


def take_turns(
    shares: Mapping[str, Share], learned: Mapping[str, Iterator[tuple[Entry, int]]], vocabulary: Vocabulary[Entry]
) -> dict[str, set[Entry]]:
    """Adds to the vocabulary until all quotas are full or nothing is left; returns what each gave.

    Fills in `entries` of the shares, bytes included, and what was passed over.
    `learned`: the entries of each domain and their counts, in the order in which it gives them.
    """
    for name, count in share_out(BYTES, {name: share.quota for name, share in shares.items()}).items():
        shares[name].entries = count
    waiting = dict(learned)
    given: dict[str, set[Entry]] = {name: set() for name in shares}
    while waiting:
        name = min(waiting, key=lambda name: ((shares[name].entries + 1) / shares[name].quota, name))
        share = shares[name]
        if share.entries == share.quota:
            del waiting[name]
            continue
        for entry, count in waiting[name]:
            if entry in vocabulary:
                continue
            if vocabulary.add(entry, count):
                share.entries += 1
                given[name].add(entry)
                break
            share.passed_over += 1
        else:
            del waiting[name]
    return given


def share_out(number: int, quotas: Mapping[str, int]) -> dict[str, int]:
    """By the shares of the quotas, in whole numbers: the largest remainders are rounded up, of equal ones the first."""
    total = sum(quotas.values())
    parts = {name: number * quota // total for name, quota in quotas.items()}
    behind = sorted(quotas, key=lambda name: (-(number * quotas[name] % total), name))
    for name in behind[: number - sum(parts.values())]:
        parts[name] += 1
    return parts


@contextmanager
def domain_texts(
    domains: Collection[str], texts: Iterator[tuple[str, pa.Array]]
) -> Iterator[tuple[dict[str, TextSpool], Counter[str]]]:
    """The texts of each domain, which come mixed and are kept in temporary files, and documents by label.

    Raises InputError for a domain without a document.
    """
    labels: Counter[str] = Counter()
    with ExitStack() as spools:
        kept = {name: spools.enter_context(text_spool(IN_MEMORY // len(domains))) for name in domains}
        for label, array in texts:
            labels[label] += len(array)
            if label in kept:
                kept[label].keep(array)
        refuse_absent(domains, labels)
        for spool in kept.values():
            spool.close()
        yield kept, labels


def as_strings(spool: TextSpool) -> Iterator[pa.Array]:
    return (array.cast(pa.large_string()) for array in spool.again())


def refuse_empty(name: str, size: int) -> None:
    if not size:
        raise InputError(f"all documents of the domain {name!r} of `allocation` are empty: give it text")


def refuse_absent(domains: Collection[str], found: Collection[str]) -> None:
    absent = [domain for domain in domains if domain not in found]
    if absent:
        listed = ", ".join(sorted(filter(None, found))[:LABELS_SHOWN]) or "nothing"
        raise InputError(
            f"`allocation` has entries for {absent[0]!r}, and no document is of it: the training text has {listed}; "
            "name corpora or the languages that documents carry (`lang`, `lang_field`)"
        )


def told(config: TrainConfig, shares: Mapping[str, Share], labels: Counter[str]) -> dict[str, Any]:
    """What the training figures say of an allocation."""
    by_name = {name: asdict(share) for name, share in shares.items()}
    figures: dict[str, Any] = {"allocation": by_name | {"reserved": config.reserved()}}
    outside = labels.total() - sum(share.documents for share in shares.values())
    return figures | ({"documents_of_no_domain": outside} if outside else {})


def reserved_tokens(config: TrainConfig, special: int) -> list[str]:
    """Those beside so many special tokens."""
    return [f"<|reserved_{number}|>" for number in range(config.reserved() - special)]
