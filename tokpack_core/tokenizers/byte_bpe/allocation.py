"""Byte-level BPE with a quota of entries for each domain: a corpus, a language.

Each domain is trained on its own documents. Its entries are then taken in the order in which it learned them, and the
domain that is furthest behind its quota is the next to give one (of equal ones the first by name), so that every
beginning of the vocabulary is shared out like the whole. An entry that another domain gave already is kept once and
counts for that one, and the domain goes on to its next: the total is exact. Each entry's merge is derived from the
entries before it, and one that no text could give is passed over (see `derived_merges`). The 256 bytes, which no domain
has to itself, come first and count for all, by the shares of their quotas.

`reserved` are special tokens: those that are configured, and `<|reserved_0|>` and so on for the rest, which have the
last ids.

The texts of the domains, which come mixed, are kept in temporary files meanwhile (see `bpe.text_spool`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from tokpack_core.bpe.merge_settings import Merges
from tokpack_core.bpe.text_spool import IN_MEMORY, text_spool
from tokpack_core.bpe.training import Seen
from tokpack_core.config import TrainConfig, UnicodeForm
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byte_bpe.derived_merges import GrownVocabulary
from tokpack_core.tokenizers.byte_bpe.training import as_tokenizer, learn
from tokpack_core.tokenizers.protocol import Tokenizer

LABELS_SHOWN = 8


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


def train_allocated(config: TrainConfig, texts: Iterator[tuple[str, pa.Array]], unicode: UnicodeForm) -> Tokenizer:
    """Train on string arrays with their domains, which are read once.

    Raises InputError for a domain without text, and as `train_byte_bpe` does.
    """
    quotas = config.quotas()
    shares = {name: Share(quota) for name, quota in sorted(quotas.items())}
    found_labels: Counter[str] = Counter()
    entries = sum(quotas.values())
    learned: dict[str, Merges] = {}
    seen, look_alikes = Seen(), 0
    with ExitStack() as spools:
        kept = {name: spools.enter_context(text_spool(IN_MEMORY // len(shares))) for name in shares}
        for label, array in texts:
            found_labels[label] += len(array)
            if label in kept:
                kept[label].keep(array)
        refuse_absent(shares, found_labels)
        for name, spool in kept.items():
            spool.close()
            strings = (array.cast(pa.large_string()) for array in spool.again())
            learned[name], of_domain, found = learn(config, strings, entries)
            if not of_domain.bytes:
                raise InputError(f"all documents of the domain {name!r} of `allocation` are empty: give it text")
            shares[name].documents, shares[name].bytes = of_domain.documents, of_domain.bytes
            seen, look_alikes = seen + of_domain, look_alikes + found
    merges = interleaved(learned, shares)
    told = {name: asdict(share) for name, share in shares.items()}
    figures: dict[str, Any] = {"allocation": told | {"reserved": config.reserved()}}
    outside = found_labels.total() - seen.documents
    if outside:
        figures["documents_of_no_domain"] = outside
    return as_tokenizer(config, merges, seen, look_alikes, unicode, figures, reserved_tokens(config))


def interleaved(learned: Mapping[str, Merges], shares: dict[str, Share]) -> Merges:
    """The merges of all domains in one; fills in what each got."""
    vocabulary = GrownVocabulary()
    owners = share_out(len(vocabulary.tokens), {name: share.quota for name, share in shares.items()})
    for name, count in owners.items():
        shares[name].entries = count
    waiting = {name: entries_of(merges) for name, merges in learned.items()}
    given: dict[str, set[bytes]] = {name: set() for name in shares}
    while waiting:
        name = min(waiting, key=lambda name: ((shares[name].entries + 1) / shares[name].quota, name))
        share = shares[name]
        if share.entries == share.quota:
            del waiting[name]
            continue
        for content, count in waiting[name]:
            if content in vocabulary:
                continue
            if vocabulary.add(content, count):
                share.entries += 1
                given[name].add(content)
                break
            share.passed_over += 1
        else:
            del waiting[name]
    merges = vocabulary.merges()
    for name, share in shares.items():
        alone = learned[name].tokens[256 : share.quota]
        share.shared = sum(content in vocabulary and content not in given[name] for content in alone)
        share.share = round(share.entries / len(merges.tokens), 6)
    return merges


def entries_of(merges: Merges) -> Iterator[tuple[bytes, int]]:
    """What a training added to the bytes, with the counts of its merges."""
    return zip(merges.tokens[256:], merges.count.tolist(), strict=True)


def share_out(number: int, quotas: Mapping[str, int]) -> dict[str, int]:
    """By the shares of the quotas, in whole numbers: the largest remainders are rounded up, of equal ones the first."""
    total = sum(quotas.values())
    parts = {name: number * quota // total for name, quota in quotas.items()}
    behind = sorted(quotas, key=lambda name: (-(number * quotas[name] % total), name))
    for name in behind[: number - sum(parts.values())]:
        parts[name] += 1
    return parts


def reserved_tokens(config: TrainConfig) -> list[str]:
    """Those beside the configured special tokens."""
    return [f"<|reserved_{number}|>" for number in range(config.reserved() - len(config.special_tokens.by_role()))]


def refuse_absent(domains: Collection[str], found: Collection[str]) -> None:
    absent = [domain for domain in domains if domain not in found]
    if absent:
        listed = ", ".join(sorted(filter(None, found))[:LABELS_SHOWN]) or "nothing"
        raise InputError(
            f"`allocation` has entries for {absent[0]!r}, and no document is of it: the training text has {listed}; "
            "name corpora or the languages that documents carry (`lang`, `lang_field`)"
        )
