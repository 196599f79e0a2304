"""Minimum-cost encoding in a stock tokenizer.json: a Unigram model in which every entry costs the same.

Unigram takes the segmentation of the greatest sum of scores. With a score of -1 for each entry that is the one of the
fewest entries, exactly: sums of ones are exact in floating point. Of equal sums the library keeps the one whose last
entry is longest, as our encoder does. A special token stands in the list for its id, with a score that is worse than
its bytes one by one, so that text never gives it.

Entries are written in the byte-level alphabet, and each of the 256 bytes has one, so nothing is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Engine

from tokpack_core.config import UnicodeForm
from tokpack_core.tokenizers.byteification.token_bytes import BYTE_TO_CHARACTER, byte_level_bytes, vocabulary_table
from tokpack_core.tokenizers.huggingface.tokenizer_json import as_special, normalizer_of

EACH = -1.0
"""Score of an entry."""


def unigram_entries(names: Sequence[str], special: frozenset[str]) -> list[tuple[str, float]]:
    """What the model lists, by id; `names`: entries in the byte-level alphabet, special tokens as they are written."""
    return [(name, EACH * (len(name.encode()) + 1) if name in special else EACH) for name in names]


def minimum_cost_engine(
    names: Sequence[str], special: Sequence[str], splits: tuple[str, ...], unicode: UnicodeForm
) -> Engine:
    """The library's tokenizer that gives the fewest entries for each piece that `splits` leave."""
    engine = Engine(models.Unigram(unigram_entries(names, frozenset(special)), None, False))
    engine.normalizer = normalizer_of(unicode)
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [
            *(pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in splits),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    engine.decoder = decoders.ByteLevel()
    engine.add_special_tokens(as_special(special))
    return engine


def entries_that_cost_the_same(model: dict[str, Any]) -> pa.Table | None:
    """The vocabulary of a Unigram model of this kind, as `Tokenizer.vocabulary` gives it; None for any other model.

    What costs more than its bytes one by one is special.
    """
    if model["type"] != "Unigram" or model.get("byte_fallback"):
        return None
    names = [name for name, _ in model["vocab"]]
    special = [score <= EACH * (len(name.encode()) + 1) for name, score in model["vocab"]]
    if any(score != EACH for (_, score), apart in zip(model["vocab"], special, strict=True) if not apart):
        return None
    tokens = [name.encode() if apart else byte_level_bytes(name) for name, apart in zip(names, special, strict=True)]
    known = {name for name, apart in zip(names, special, strict=True) if not apart}
    if None in tokens or len(set(names)) < len(names) or not known.issuperset(BYTE_TO_CHARACTER.values()):
        return None
    return vocabulary_table(range(len(names)), [token or b"" for token in tokens], special, [False] * len(names))
