"""Byte-level BPE (Sennrich et al. 2016; Radford et al. 2019), trained by our own trainer (`bpe.training`).

Text, which is normalized already, is split by a published regex, written as bytes, and the most frequent neighbouring
pair is merged until the vocabulary is full. Ties: the higher count, then the smaller pair of ids (`tie_break:
hugging_face`), so the merges are those of Hugging Face's trainer, and depend neither on the order of documents nor on
the number of threads.

Ids: special tokens first, in the order eod, pad, bos, unk (those that are configured), so that they do not move
with the vocabulary size; then the 256 bytes; then the merges in order. A corpus that has fewer pairs of
`min_frequency` than asked for gives a smaller tokenizer, and its `vocab_size` says so.

Documents are fed whole, so that merges may hold line ends. Counts are 64-bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Engine

from tokpack_core.bpe.merge_settings import Merges, MergeSettings
from tokpack_core.bpe.regex_splitting import count_words
from tokpack_core.bpe.training import train_merges
from tokpack_core.config import TrainConfig, UnicodeForm
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.huggingface import MERGES_SCHEMA, HuggingFaceTokenizer
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.pretokenizers import SPLITS
from tokpack_core.tokenizers.token_bytes import byte_level_bytes, byte_level_name
from tokpack_core.tokenizers.tokenizer_json import as_special, normalizer_of

MOST_WORKERS = 8
"""Each has a table of pretokens of its own, and the merges, which follow, have one thread."""


def train_byte_bpe(config: TrainConfig, texts: Iterator[pa.Array], unicode: UnicodeForm) -> HuggingFaceTokenizer:
    """Train on an iterator of string arrays, which is read once.

    Raises InputError for an empty corpus, a vocabulary too small for the 256 bytes and the special tokens, and a
    special token that ordinary text could become.
    """
    special_tokens = config.special_tokens.by_role()
    smallest = 256 + len(special_tokens)
    if config.vocab_size is None or config.vocab_size < smallest:
        raise InputError(
            f"`vocab_size` {config.vocab_size} is too small: 256 bytes and {len(special_tokens)} special tokens "
            f"need {smallest}"
        )
    splits = SPLITS[config.pretokenizer]
    for role, text in special_tokens.items():
        refuse_learnable(role, text, splits)
    limits = MergeSettings(config.vocab_size - len(special_tokens), config.min_frequency)
    merges, seen = train_merges(texts, splits, limits, workers=min(os.cpu_count() or 1, MOST_WORKERS))
    if seen.bytes == 0:
        raise InputError("the training sample holds no text: check `train_on` and the train split of its corpora")
    settings = {
        "vocab_size": config.vocab_size,
        "pretokenizer": config.pretokenizer,
        "min_frequency": config.min_frequency,
        "tie_break": limits.tie_break,
    }
    training = {"documents": seen.documents, "bytes": seen.bytes, "bytes_dropped": seen.bytes_dropped}
    metadata = Metadata("byte_bpe", unicode, special_tokens, settings, training)
    engine = as_engine(merges, list(special_tokens.values()), splits, unicode)
    return HuggingFaceTokenizer(
        engine, metadata, "the trained tokenizer", merges_table(merges, first_id=len(special_tokens))
    )


def as_engine(merges: Merges, special_tokens: list[str], splits: tuple[str, ...], unicode: UnicodeForm) -> Engine:
    names = [byte_level_name(token) for token in merges.tokens]
    pairs = [(names[left], names[right]) for left, right in zip(merges.left, merges.right, strict=True)]
    vocabulary = {name: token_id for token_id, name in enumerate([*special_tokens, *names])}
    engine = Engine(models.BPE(vocabulary, pairs))
    engine.normalizer = normalizer_of(unicode)
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [
            *(pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in splits),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    engine.decoder = decoders.ByteLevel()
    engine.add_special_tokens(as_special(special_tokens))
    return engine


def merges_table(merges: Merges, first_id: int) -> pa.Table:
    """Merges in their order, by ids of the tokenizer: see `huggingface.MERGES_SCHEMA`."""
    first_merge = first_id + len(merges.tokens) - merges.count.size
    tokens = np.arange(first_merge, first_merge + merges.count.size, dtype=np.int32)
    columns = [merges.left + np.int32(first_id), merges.right + np.int32(first_id), tokens, merges.count]
    return pa.table(columns, schema=MERGES_SCHEMA)


def refuse_learnable(role: str, text: str, splits: tuple[str, ...]) -> None:
    """A special token that is one pretoken could be merged from text, and text would then give its id."""
    content = byte_level_bytes(text)
    if content is not None and count_words([content.decode("utf-8", "replace")], splits).total() == 1:
        raise InputError(
            f"special token {text!r} ({role}) could be learned as an ordinary word: "
            'choose a string that the pretokenizer splits, such as "<|endoftext|>"'
        )
