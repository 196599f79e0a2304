"""Byte-level BPE (Sennrich et al. 2016; Radford et al. 2019), trained by our own trainer (`bpe.training`).

Text, which is normalized already, is split by a published regex or one's own, written as bytes, and the most frequent
neighbouring pair is merged until the vocabulary is full. Ties: the higher count, then `tie_break`, by default the
smaller pair of ids, so the merges are those of Hugging Face's trainer, and depend neither on the order of documents nor
on the number of threads.

Ids: special tokens first, in the order eod, pad, bos, unk (those that are configured), so that they do not move
with the vocabulary size; then the 256 bytes, or those that occur (`alphabet: seen_bytes`; text then gives unk for the
others); then the merges in order. A corpus that has fewer pairs of `min_frequency` than asked for gives a smaller
tokenizer: its `vocab_size` says so, and its figures say how many entries are missing.

Documents are fed whole, so that merges may hold line ends. Counts are 64-bit. What is a special token is ordinary text
where it stands in documents; how often it does is counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Engine

from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, Merges, MergeSettings
from tokpack_core.bpe.regex_splitting import count_words
from tokpack_core.bpe.training import Seen, train_merges
from tokpack_core.config import REGEX, TrainConfig, UnicodeForm
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.agreement.pretokenizer import agreeing
from tokpack_core.tokenizers.byte_bpe.derived_merges import with_required
from tokpack_core.tokenizers.byteification.token_bytes import byte_level_bytes, byte_level_name
from tokpack_core.tokenizers.common_hanzi import level_one_hanzi
from tokpack_core.tokenizers.huggingface.model import MERGES_SCHEMA, HuggingFaceTokenizer
from tokpack_core.tokenizers.huggingface.tokenizer_json import as_special, normalizer_of
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.pretokenizers import splits_of
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.tiktoken.export import MEGATRON_SPECIAL, bytes_by_value
from tokpack_core.tokenizers.training_text import IN_TEXT, NO_TEXT, LookAlikes

OPTIONS = {
    "digits",
    "max_token_length",
    "max_pretoken_bytes",
    "alphabet",
    "required_characters",
    "allocation",
    "id_layout",
}
"""Recorded if they are set."""
MOST_WORKERS = 8
"""Each has a table of pretokens of its own, and merges, which follow, are made in rounds that are soon too small."""


def train_byte_bpe(config: TrainConfig, texts: Iterator[pa.Array], unicode: UnicodeForm) -> Tokenizer:
    """Train on an iterator of string arrays, which is read once.

    Raises InputError for an empty corpus, a vocabulary too small for bytes and special tokens, a special token that
    ordinary text could become, and a regex that the exported file would read otherwise.
    """
    refuse_small(config, bytes_needed=256 if config.alphabet == "all_bytes" else 1)
    if config.delete_threshold is not None:
        # Loads kernels, which training without deletions may do without.
        from tokpack_core.tokenizers.byte_bpe.picky_bpe import train_picky_bpe

        refuse_all_learnable(config)
        splits = splits_of(config.pretokenizer, config.digits)
        return train_picky_bpe(config, texts, unicode, splits, config.delete_threshold)
    entries = (config.vocab_size or 0) - len(special_strings(config))
    merges, seen, look_alikes = learn(config, texts, entries)
    if seen.bytes == 0:
        raise InputError(NO_TEXT)
    refuse_small(config, bytes_needed=len(merges.tokens) - merges.count.size)
    told: dict[str, Any] = {}
    if config.required_characters is not None:
        merges, added = with_required(merges, entries, level_one_hanzi())
        told = {"entries_for_required_characters": added}
    return as_tokenizer(config, merges, seen, look_alikes, unicode, told)


def learn(config: TrainConfig, texts: Iterator[pa.Array], entries: int) -> tuple[Merges, Seen, int]:
    """Merges for so many entries, and how often text looked like a special token."""
    refuse_all_learnable(config)
    splits = splits_of(config.pretokenizer, config.digits)
    limits = MergeSettings(
        entries,
        config.min_frequency,
        config.tie_break,
        config.max_token_length,
        BYTE_LEVEL_ORDER if config.alphabet == "all_bytes" else b"",
        config.max_pretoken_bytes,
    )
    look_alikes = LookAlikes(config.special_tokens.by_role().values())
    compared = agreeing(look_alikes.counting(texts), config.pretokenizer, splits)
    merges, seen = train_merges(compared, splits, limits, workers=min(os.cpu_count() or 1, MOST_WORKERS))
    return merges, seen, look_alikes.found


def as_tokenizer(
    config: TrainConfig,
    merges: Merges,
    seen: Seen,
    look_alikes: int,
    unicode: UnicodeForm,
    told: dict[str, Any],
    reserved: Sequence[str] = (),
) -> HuggingFaceTokenizer:
    """The tokenizer of some merges. `told`: more figures; `reserved`: special tokens without a role, put last."""
    first = special_strings(config)
    refuse_learned([*first, *reserved], merges.tokens)
    always = {name: getattr(config, name) for name in ("vocab_size", "pretokenizer", "min_frequency", "tie_break")}
    settings = config.model_dump(mode="json", include=OPTIONS, exclude_defaults=True) | always
    missing = (config.vocab_size or 0) - len(first) - len(merges.tokens) - len(reserved)
    own_regex = config.pretokenizer.startswith(REGEX)
    training = figures(seen, own_regex, missing, look_alikes) | told
    metadata = Metadata("byte_bpe", unicode, config.special_tokens.by_role(), settings, training)
    splits = splits_of(config.pretokenizer, config.digits)
    if config.id_layout == "megatron_tiktoken":
        merges = bytes_by_value(merges)
    engine = as_engine(merges, first, splits, unicode, config.special_tokens.unk)
    engine.add_special_tokens(as_special(reserved))
    return HuggingFaceTokenizer(engine, metadata, "the trained tokenizer", merges_table(merges, first_id=len(first)))


def special_strings(config: TrainConfig) -> list[str]:
    """The special tokens that have the first ids."""
    return MEGATRON_SPECIAL if config.id_layout == "megatron_tiktoken" else [*config.special_tokens.by_role().values()]


def figures(seen: Seen, own_regex: bool, missing: int, look_alikes: int) -> dict[str, Any]:
    """What the training has to say; of what seldom happens only if it did."""
    seldom = {
        "bytes_unmatched": seen.bytes_unmatched if own_regex else 0,
        "entries_missing": max(missing, 0),
        IN_TEXT: look_alikes,
    }
    always = {"documents": seen.documents, "bytes": seen.bytes, "bytes_dropped": seen.bytes_dropped}
    return always | {name: number for name, number in seldom.items() if number}


def refuse_small(config: TrainConfig, bytes_needed: int) -> None:
    special = len(special_strings(config))
    if config.vocab_size is None or config.vocab_size < bytes_needed + special:
        raise InputError(
            f"`vocab_size` {config.vocab_size} is too small: {bytes_needed} bytes and {special} special tokens "
            f"need {bytes_needed + special}"
        )


def as_engine(
    merges: Merges, special_tokens: list[str], splits: tuple[str, ...], unicode: UnicodeForm, unk: str | None = None
) -> Engine:
    names = [byte_level_name(token) for token in merges.tokens]
    sides = ([names[token] for token in side.tolist()] for side in (merges.left, merges.right))
    pairs = list(zip(*sides, strict=True))
    vocabulary = {name: token_id for token_id, name in enumerate([*special_tokens, *names])}
    unknown = None if len(merges.tokens) - merges.count.size == 256 else unk
    engine = Engine(models.BPE(vocabulary, pairs, unk_token=unknown))
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


def refuse_all_learnable(config: TrainConfig) -> None:
    if not config.pretokenizer.startswith(REGEX):
        for role, text in config.special_tokens.by_role().items():
            refuse_learnable(role, text, splits_of(config.pretokenizer, config.digits))


def refuse_learnable(role: str, text: str, splits: tuple[str, ...]) -> None:
    """A special token that is one pretoken could be merged from text, and text would then give its id."""
    content = byte_level_bytes(text)
    if content is not None and count_words([content.decode("utf-8", "replace")], splits).total() == 1:
        raise InputError(
            f"special token {text!r} ({role}) could be learned as an ordinary word: "
            'choose a string that the pretokenizer splits, such as "<|endoftext|>"'
        )


def refuse_learned(special_tokens: Iterable[str], tokens: list[bytes]) -> None:
    """Under a regex of one's own any string may be one pretoken, but few are frequent enough."""
    contents = {byte_level_bytes(text): text for text in special_tokens}
    learned = next((contents[token] for token in tokens if token in contents), None)
    if learned:
        raise InputError(
            f"special token {learned!r} was learned as an ordinary word: choose a string that the text does not hold, "
            "or a `pretokenizer` that splits it"
        )
