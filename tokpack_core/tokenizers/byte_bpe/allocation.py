"""Byte-level BPE with a quota of entries for each domain: a corpus, a language.

Each domain is trained on its own documents. Its entries are then taken in the order in which it learned them, by turns
(see `quotas`). Each entry's merge is derived from the entries before it, and one that no text could give is passed over
(see `derived_merges`).

`reserved` are special tokens: those that are configured, and `<|reserved_0|>` and so on for the rest, which have the
last ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from tokpack_core.bpe.merge_settings import Merges
from tokpack_core.bpe.training import Seen
from tokpack_core.config import TrainConfig, UnicodeForm
from tokpack_core.tokenizers.byte_bpe.derived_merges import GrownVocabulary
from tokpack_core.tokenizers.byte_bpe.training import as_tokenizer, learn
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.quotas import (
    Share,
    as_strings,
    domain_texts,
    refuse_empty,
    reserved_tokens,
    take_turns,
    told,
)


def train_allocated(config: TrainConfig, texts: Iterator[tuple[str, pa.Array]], unicode: UnicodeForm) -> Tokenizer:
    """Train on string arrays with their domains, which are read once.

    Raises InputError for a domain without text, and as `train_byte_bpe` does.
    """
    quotas = config.quotas()
    shares = {name: Share(quota) for name, quota in sorted(quotas.items())}
    learned: dict[str, Merges] = {}
    seen, look_alikes = Seen(), 0
    with domain_texts(shares, texts) as (kept, labels):
        for name, spool in kept.items():
            learned[name], of_domain, found = learn(config, as_strings(spool), sum(quotas.values()))
            refuse_empty(name, of_domain.bytes)
            shares[name].documents, shares[name].bytes = of_domain.documents, of_domain.bytes
            seen, look_alikes = seen + of_domain, look_alikes + found
    merges = interleaved(learned, shares)
    reserved = reserved_tokens(config, len(config.special_tokens.by_role()))
    return as_tokenizer(config, merges, seen, look_alikes, unicode, told(config, shares, labels), reserved)


def interleaved(learned: Mapping[str, Merges], shares: dict[str, Share]) -> Merges:
    """The merges of all domains in one; fills in what each got."""
    vocabulary = GrownVocabulary()
    given = take_turns(shares, {name: entries_of(merges) for name, merges in learned.items()}, vocabulary)
    merges = vocabulary.merges()
    for name, share in shares.items():
        alone = learned[name].tokens[256 : share.quota]
        share.shared = sum(content in vocabulary and content not in given[name] for content in alone)
        share.share = round(share.entries / len(merges.tokens), 6)
    return merges


def entries_of(merges: Merges) -> Iterator[tuple[bytes, int]]:
    """What a training added to the bytes, with the counts of its merges."""
    return zip(merges.tokens[256:], merges.count.tolist(), strict=True)
