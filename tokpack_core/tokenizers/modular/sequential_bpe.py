"""Sequential BPE over languages: `modular_bpe` (arXiv 2609.15528).

One byte-level BPE in which each language has a sub-tokenizer of `vocab_size` entries. Languages are trained one after
the other, each by going on from the merges of those before it (see `bpe.continued_merges`): merges that it would have
spent places on anyway are shared, with all that they are made of, and only the rest is new. So the tokenizer of all
languages has fewer entries than theirs together, and the ids of a sub-tokenizer are ids of the whole.

Ids: special tokens, the 256 bytes, then what the merges make, in the order in which it was first made. A token that
another language makes of other parts has the same id, and then two merges make it. Which ids a language has is its
entry in `lang_to_ids.json`; its merges are those of which both parts and the product are among them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.continued_merges import BYTES, ContinuedMerges, EarlierMerges, continue_merges
from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, Merges, MergeSettings
from tokpack_core.bpe.pretoken_counting import count_parts
from tokpack_core.bpe.training import OTHER_PRETOKENIZER, Seen, counting, limit_length
from tokpack_core.config import REGEX, TrainConfig, UnicodeForm
from tokpack_core.tokenizers.agreement.pretokenizer import agreeing
from tokpack_core.tokenizers.byte_bpe.training import (
    MOST_WORKERS,
    as_engine,
    figures,
    refuse_all_learnable,
    refuse_learned,
    refuse_small,
)
from tokpack_core.tokenizers.huggingface.model import MERGES_SCHEMA, HuggingFaceTokenizer
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.modular.language_texts import LabelledTexts, by_language
from tokpack_core.tokenizers.pretokenizers import splits_of
from tokpack_core.tokenizers.training_text import LookAlikes

SETTINGS = ("vocab_size", "pretokenizer", "digits", "min_frequency", "tie_break")


def train_modular_bpe(
    config: TrainConfig, texts: Iterator[LabelledTexts], unicode: UnicodeForm
) -> HuggingFaceTokenizer:
    """Train on texts and their languages, which are read once and kept in temporary files.

    Raises InputError for an empty corpus or language, a document without a language, a vocabulary too small for bytes
    and special tokens, and a special token that ordinary text could become.
    """
    special = config.special_tokens.by_role()
    refuse_small(config, bytes_needed=BYTES)
    splits = splits_of(config.pretokenizer, config.digits)
    refuse_all_learnable(config)
    settings = MergeSettings((config.vocab_size or 0) - len(special), config.min_frequency, config.tie_break)
    workers = min(os.cpu_count() or 1, MOST_WORKERS)
    seen, look_alikes = Seen(), LookAlikes(special.values())
    whole = GrowingBpe()
    with by_language(texts, config.languages) as read:
        for module in read.modules:
            counted = counting(look_alikes.counting(read.texts(module)), seen)
            parts, unmatched = count_parts(agreeing(counted, config.pretokenizer, splits), splits, workers)
            limit_length(parts, None, seen, OTHER_PRETOKENIZER)
            seen.bytes_unmatched += unmatched
            whole.add(module, continue_merges(parts, whole.merges(), settings, workers))
    merges = whole.as_merges()
    refuse_learned(special.values(), merges.tokens)
    first = len(special)
    smallest = min(ids.size for ids in whole.languages.values())
    training = figures(seen, config.pretokenizer.startswith(REGEX), settings.vocab_size - smallest, look_alikes.found)
    training |= {"languages": len(whole.languages), "vocab_size": first + len(merges.tokens)}
    described = {name: getattr(config, name) for name in SETTINGS}
    own = np.arange(first, dtype=np.int32)
    languages = {language: np.concatenate([own, first + ids]) for language, ids in whole.languages.items()}
    metadata = Metadata("modular_bpe", unicode, special, described, training, languages=languages)
    engine = as_engine(merges, list(special.values()), splits, unicode)
    return HuggingFaceTokenizer(engine, metadata, "the trained tokenizer", whole.table(first))


class GrowingBpe:
    """The tokens and merges of all languages so far, by number as in `EarlierMerges`."""

    def __init__(self) -> None:
        self._numbers = {BYTE_LEVEL_ORDER[place : place + 1]: place for place in range(BYTES)}
        self._ranks: dict[tuple[int, int], int] = {}
        self._products: list[int] = []
        self._counts: list[int] = []
        self.languages: dict[str, npt.NDArray[np.int32]] = {}
        """language → the numbers of its tokens, ascending"""

    def merges(self) -> EarlierMerges:
        left, right = np.array(list(self._ranks), np.int32).reshape(-1, 2).T.copy()
        return EarlierMerges(list(self._numbers), left, right, np.array(self._products, np.int32))

    def add(self, module: tuple[str, ...], found: ContinuedMerges) -> None:
        """Appends what is new of these languages: tokens, and pairs that were no merge yet."""
        numbers = [self._numbers.setdefault(token, len(self._numbers)) for token in found.spelled]
        rows = zip(found.left.tolist(), found.right.tolist(), found.count.tolist(), numbers[BYTES:], strict=True)
        for left, right, count, product in rows:
            pair = numbers[left], numbers[right]
            if pair in self._ranks:
                self._counts[self._ranks[pair]] += count
            else:
                self._ranks[pair] = len(self._products)
                self._products.append(product)
                self._counts.append(count)
        self.languages |= dict.fromkeys(module, np.sort(np.array(numbers, np.int32)))

    def as_merges(self) -> Merges:
        earlier = self.merges()
        return Merges(list(self._numbers), earlier.left, earlier.right, np.array(self._counts, np.int64))

    def table(self, first_id: int) -> pa.Table:
        """Merges in their order, by ids of the tokenizer; counts are summed up over the languages that make them."""
        found = self.merges()
        columns = [column + np.int32(first_id) for column in (found.left, found.right, found.product)]
        return pa.table([*columns, np.array(self._counts, np.int64)], schema=MERGES_SCHEMA)
