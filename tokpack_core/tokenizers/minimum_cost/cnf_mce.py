"""The family `cnf_mce`: a counted vocabulary (see `counted_vocabulary`), encoded in the fewest tokens.

Constraint units, over whose borders no token goes, are what the pretokenizer's regex leaves together: words with a
published one, several words or whole lines with one of one's own. Ids: special tokens, the 256 bytes, then the entries
that save the most tokens first. The tokenizer.json is a Unigram model that gives the same ids (see
`minimum_cost_model`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from tokpack_core.bpe.training import OTHER_PRETOKENIZER
from tokpack_core.config import TrainConfig, UnicodeForm
from tokpack_core.tokenizers.agreement.pretokenizer import agreeing
from tokpack_core.tokenizers.byte_bpe.training import refuse_all_learnable, refuse_learned, refuse_small
from tokpack_core.tokenizers.byteification.token_bytes import byte_level_name
from tokpack_core.tokenizers.counted_text import counted_text
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.minimum_cost.counted_vocabulary import counted_vocabulary
from tokpack_core.tokenizers.minimum_cost.model import minimum_cost_engine
from tokpack_core.tokenizers.pretokenizers import splits_of
from tokpack_core.tokenizers.training_text import LookAlikes

LONGEST_TOKEN = 32
"""Bytes of a token, if the configuration names no other limit."""
SETTINGS = ("vocab_size", "pretokenizer", "digits", "min_frequency", "max_token_length", "refills", "refill_share")


def train_cnf_mce(config: TrainConfig, texts: Iterator[pa.Array], unicode: UnicodeForm) -> HuggingFaceTokenizer:
    """Train on an iterator of string arrays, which is read once.

    Raises InputError for an empty corpus, a vocabulary too small, a special token that ordinary text could become, and
    text that the regex hardly splits.
    """
    special = config.special_tokens.by_role()
    refuse_small(config, bytes_needed=256)
    splits = splits_of(config.pretokenizer, config.digits)
    refuse_all_learnable(config)
    look_alikes = LookAlikes(special.values())
    found = counted_text(agreeing(look_alikes.counting(texts), config.pretokenizer, splits), splits, OTHER_PRETOKENIZER)
    size = (config.vocab_size or 0) - len(special)
    longest = LONGEST_TOKEN if config.max_token_length is None else config.max_token_length - 1
    vocabulary = counted_vocabulary(
        found.words, size, config.min_frequency, longest, config.refills, config.refill_share
    )
    refuse_learned(special.values(), vocabulary.tokens)
    training = {
        "documents": found.seen.documents,
        "bytes": found.seen.bytes,
        "bytes_dropped": 0,
        "refills": vocabulary.refills,
    }
    missing = size - len(vocabulary.tokens)
    training |= ({"entries_missing": missing} if missing > 0 else {}) | look_alikes.figures()
    settings = {name: getattr(config, name) for name in SETTINGS}
    names = [*special.values(), *map(byte_level_name, vocabulary.tokens)]
    engine = minimum_cost_engine(names, list(special.values()), splits, unicode)
    return HuggingFaceTokenizer(
        engine, Metadata("cnf_mce", unicode, special, settings, training), "the trained tokenizer"
    )
