"""Two baselines with an entry for each character, or for each word, and unk for what has none.

`character`: the most frequent characters, white space among them. `word`: the most frequent words of a published
regex (`pretokenizer`), which takes the space before a word into it; digits, punctuation and line ends are words too.
Ties go by code point or by bytes. What occurs fewer than `min_frequency` times gets no entry, so a small corpus gives
a smaller tokenizer, and its `vocab_size` says so.

Text comes back from its ids except for what is unk; the training figures say how much that was in the training sample
(`out_of_vocabulary` of `units`), and how long units are (`bytes` / `units`, and the longest with an entry).

Saved as a tokenizer.json with the model WordLevel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Engine

from tokpack_core.bpe.training import OTHER_PRETOKENIZER
from tokpack_core.config import TrainConfig, UnicodeForm
from tokpack_core.tokenizers.agreement.pretokenizer import agreeing
from tokpack_core.tokenizers.counted_text import character_counts, counted_text, room_for_text
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.huggingface.tokenizer_json import as_special, normalizer_of
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.pretokenizers import splits_of
from tokpack_core.tokenizers.training_text import LookAlikes

UNK = "<unk>"
CHARACTER = (r"[\s\S]",)


def train_word_level(config: TrainConfig, texts: Iterator[pa.Array], unicode: UnicodeForm) -> HuggingFaceTokenizer:
    """Train `character` or `word` on an iterator of string arrays, which is read once.

    Raises InputError for an empty corpus, a vocabulary without room, and a special token that is ordinary text.
    """
    special_tokens = config.special_tokens.by_role()
    special_tokens.setdefault("unk", UNK)
    by_word = config.family == "word"
    size = room_for_text(1, len(special_tokens), "one entry", config.vocab_size)
    look_alikes = LookAlikes(special_tokens.values())
    counted = look_alikes.counting(texts)
    if by_word:
        splits = splits_of(config.pretokenizer, config.digits)
        text = counted_text(agreeing(counted, config.pretokenizer, splits), splits, OTHER_PRETOKENIZER)
        units, counts, seen = text.strings(), text.words.counts, text.seen
    else:
        splits = CHARACTER
        totals, seen = character_counts(counted)
        codes = np.flatnonzero(totals)
        units, counts = [chr(code) for code in codes], totals[codes]
    chosen = most_frequent(units, counts, size, config.min_frequency)
    taken = set(special_tokens.values())
    entries = [units[place] for place in chosen if units[place] not in taken]
    settings: dict[str, Any] = {"vocab_size": config.vocab_size, "min_frequency": config.min_frequency}
    settings |= {"pretokenizer": config.pretokenizer} if by_word else {}
    settings |= {"digits": config.digits} if config.digits else {}
    training = {
        "documents": seen.documents,
        "bytes": seen.bytes,
        "bytes_dropped": 0,
        "units": int(counts.sum()),
        "different_units": counts.size,
        "out_of_vocabulary": int(counts.sum() - counts[chosen].sum()),
        "longest_entry_bytes": max((len(entry.encode()) for entry in entries), default=0),
        **look_alikes.figures(),
    }
    engine = as_engine([*special_tokens.values(), *entries], special_tokens, unicode)
    engine.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated") for regex in splits])
    metadata = Metadata(config.family, unicode, special_tokens, settings, training)
    return HuggingFaceTokenizer(engine, metadata, "the trained tokenizer")


def most_frequent(
    units: list[str], counts: npt.NDArray[np.int64], size: int, min_frequency: int
) -> npt.NDArray[np.int64]:
    """Places of at most `size` units, the most frequent first, ties by code point."""
    frequent = np.flatnonzero(counts >= min_frequency)
    ordered = sorted(frequent.tolist(), key=lambda place: (-counts[place], units[place]))
    return np.array(ordered[:size], np.int64)


def as_engine(entries: list[str], special_tokens: dict[str, str], unicode: UnicodeForm) -> Engine:
    ids = {entry: token for token, entry in enumerate(entries)}
    engine = Engine(models.WordLevel(ids, unk_token=special_tokens["unk"]))
    engine.normalizer = normalizer_of(unicode)
    engine.decoder = decoders.Fuse()
    engine.add_special_tokens(as_special(special_tokens.values()))
    return engine
