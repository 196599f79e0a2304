"""BoundlessBPE (arXiv 2504.00178) and SuperBPE (arXiv 2503.13423): byte-level BPE whose merges go on across words.

Both learn words first, as `byte_bpe` does. `boundless_bpe` lets merges of whole neighbouring words compete with word
merges for the vocabulary; `superbpe` takes `transition_size` word tokens and fills the rest with merges across words.

A superword model of whole words is exact in our own format only (`export: exact`). `export: hf` writes a stock
tokenizer.json in which runs of words are one pretoken: its ids are not quite the same, and how many tokens it has more
or fewer is measured on the first GAP_BYTES of the training text and stands among the figures of the training. SuperBPE
of pieces (`joins: pieces`) has a stock tokenizer.json that is exact.

Ids: special tokens, the 256 bytes, merges in the order in which they were made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.bpe.merge_settings import Merges, MergeSettings
from tokpack_core.bpe.regex_splitting import compiled, pretokens
from tokpack_core.bpe.superword_deletions import train_boundless_with_deletions
from tokpack_core.bpe.superword_merges import SupermergeSettings
from tokpack_core.bpe.superwords import BYTES, Superwords, train_boundless, train_superbpe
from tokpack_core.bpe.training import Seen
from tokpack_core.config import TrainConfig, UnicodeForm
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.agreement.normalization import differing_documents
from tokpack_core.tokenizers.byte_bpe.training import MOST_WORKERS, as_engine, merges_table, refuse_learnable
from tokpack_core.tokenizers.event_model import event_model
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.huggingface.run_regex import run_splits
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.pretokenizers import SPACELESS_LETTER, SUPERBPE_PIECES, splits_of
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.superwords.file import SuperwordModel
from tokpack_core.tokenizers.superwords.model import SuperwordTokenizer, eligibility, refuse_slow
from tokpack_core.tokenizers.training_text import NO_TEXT, LookAlikes

GAP_BYTES = 2**23
SUPERBPE_MOST_WORDS = 4
COMMON_SETTINGS = (
    *("vocab_size", "pretokenizer", "digits", "min_frequency", "tie_break", "mergeable", "script_aware", "max_words"),
    "export",
)
BOUNDLESS_SETTINGS = ("tie_winner",)
SUPERBPE_SETTINGS = ("tie_winner", "transition_size", "joins")


def train_superwords(config: TrainConfig, texts: Iterator[pa.Array], unicode: UnicodeForm) -> Tokenizer:
    """Train on an iterator of string arrays, which is read once.

    Raises InputError for an empty corpus, a vocabulary too small, and a special token that text could become.
    """
    special = config.special_tokens.by_role()
    refuse_sizes(config, len(special))
    letters = SPACELESS_LETTER if config.script_aware else None
    words = splits_of(config.pretokenizer, config.digits)
    splits = (letters, *words) if letters else words
    refuse_slow(config.pretokenizer, splits)
    as_runs = run_splits(splits, letters, "use `export: exact`") if config.export == "hf" else ()
    eligible = eligibility(config.mergeable, letters)
    for role, text in special.items():
        refuse_learnable(role, text, splits)
        refuse_one_piece(role, text, SUPERBPE_PIECES if in_pieces(config) else splits)
        if not in_pieces(config):
            refuse_joinable(role, text, splits, eligible)
    if config.delete_threshold is not None:
        return with_deletions(config, texts, splits, eligible, letters, unicode)
    kept: list[pa.Array] = []
    look_alikes = LookAlikes(special.values())
    found = learned(config, beginning(look_alikes.counting(texts), kept), splits, eligible)
    refuse_no_text(found.seen)
    merges = Merges(found.tokens, found.left, found.right, found.count)
    metadata = described(config, unicode, found, look_alikes)
    strings, table = list(special.values()), merges_table(merges, first_id=len(special))
    if in_pieces(config):
        engine = as_engine(merges, strings, SUPERBPE_PIECES, unicode)
        return HuggingFaceTokenizer(engine, metadata, "the trained tokenizer", table)
    model = as_model(found, table, tuple(strings), splits, config.mergeable, letters)
    exact = SuperwordTokenizer(model, metadata, table)
    if config.export == "exact":
        return exact
    engine = as_engine(merges, strings, as_runs, unicode)
    stock = HuggingFaceTokenizer(engine, metadata, "the trained tokenizer", table)
    training = dict(metadata.training) | gap(exact, stock, kept)
    return HuggingFaceTokenizer(engine, replace(metadata, training=training), "the trained tokenizer", table)


def with_deletions(
    config: TrainConfig,
    texts: Iterator[pa.Array],
    splits: tuple[str, ...],
    eligible: Callable[[bytes], bool],
    letters: str | None,
    unicode: UnicodeForm,
) -> SuperwordTokenizer:
    special = config.special_tokens.by_role()
    words, limits = merge_limits(config)
    threshold, workers = config.delete_threshold or 1.0, min(os.cpu_count() or 1, MOST_WORKERS)
    look_alikes = LookAlikes(special.values())
    events, supermerges, seen = train_boundless_with_deletions(
        look_alikes.counting(texts), splits, words, threshold, limits, eligible, workers
    )
    refuse_no_text(seen)
    model = event_model(events, tuple(special.values()), splits, supermerges, config.mergeable, letters)
    settings = {name: getattr(config, name) for name in (*COMMON_SETTINGS, *BOUNDLESS_SETTINGS, "delete_threshold")}
    training = {
        "documents": seen.documents,
        "bytes": seen.bytes,
        "bytes_dropped": seen.bytes_dropped,
        "superwords": len(supermerges.tokens),
        "transition_size": len(special) + len(model.tokens) - len(supermerges.tokens),
        "tokens_deleted": len(model.deleted),
        "deletions": len(model.parts),
        **look_alikes.figures(),
    }
    return SuperwordTokenizer(model, Metadata(config.family, unicode, special, settings, training))


def refuse_no_text(seen: Seen) -> None:
    if seen.bytes == 0:
        raise InputError(NO_TEXT)


def in_pieces(config: TrainConfig) -> bool:
    return config.family == "superbpe" and config.joins == "pieces"


def refuse_sizes(config: TrainConfig, special: int) -> None:
    smallest = BYTES + special
    if config.vocab_size is None or config.vocab_size < smallest:
        raise InputError(
            f"`vocab_size` {config.vocab_size} is too small: 256 bytes and {special} special tokens need {smallest}"
        )
    transition = config.transition_size
    if isinstance(transition, int) and not smallest <= transition <= config.vocab_size:
        raise InputError(
            f"`transition_size` {transition} is not between {smallest} (256 bytes and {special} special tokens) and "
            f"`vocab_size` {config.vocab_size}: correct it"
        )


def refuse_one_piece(role: str, text: str, splits: tuple[str, ...]) -> None:
    """A special token that is one piece of text could be merged from it, and text would then give its id."""
    if len(pretokens(text, compiled(splits))) == 1:
        raise InputError(
            f"special token {text!r} ({role}) could be learned as a superword: choose a string that the pretokenizer "
            'splits, such as "<|endoftext|>"'
        )


def refuse_joinable(role: str, text: str, splits: tuple[str, ...], eligible: Callable[[bytes], bool]) -> None:
    """So could one of words that may all join."""
    words = pretokens(text, compiled(splits))
    if all(eligible(word.encode()) for word in words):
        raise InputError(
            f"special token {text!r} ({role}) could be learned as a superword, for `mergeable` is found in each of its "
            f"parts ({', '.join(map(repr, words))}): choose a string with a part that it is not found in, or another "
            "`mergeable`"
        )


def beginning(texts: Iterator[pa.Array], kept: list[pa.Array]) -> Iterator[pa.Array]:
    """The same arrays; documents from the start, up to GAP_BYTES, are kept."""
    room = GAP_BYTES
    for array in texts:
        if room > 0:
            sizes = np.cumsum(pc.binary_length(array).to_numpy(zero_copy_only=False).astype(np.int64))
            kept.append(array.slice(0, int(np.searchsorted(sizes, room)) + 1))
            room -= int(sizes[-1]) if sizes.size else 0
        yield array


def learned(
    config: TrainConfig, texts: Iterator[pa.Array], splits: tuple[str, ...], eligible: Callable[[bytes], bool]
) -> Superwords:
    special = len(config.special_tokens.by_role())
    words, limits = merge_limits(config)
    workers = min(os.cpu_count() or 1, MOST_WORKERS)
    if config.family == "boundless_bpe":
        return train_boundless(texts, splits, words, limits, eligible, workers)
    transition = None if config.transition_size == "auto" else config.transition_size - special
    pieces = SUPERBPE_PIECES if config.joins == "pieces" else None
    return train_superbpe(texts, splits, pieces, words, transition, limits, eligible, workers)


def merge_limits(config: TrainConfig) -> tuple[MergeSettings, SupermergeSettings]:
    special = len(config.special_tokens.by_role())
    words = MergeSettings((config.vocab_size or 0) - special, config.min_frequency, config.tie_break)
    superbpe = config.family == "superbpe"
    most_words = SUPERBPE_MOST_WORDS if superbpe and config.max_words is None else config.max_words
    return words, SupermergeSettings(
        config.min_frequency, words.tie_break, config.tie_winner, most_words, forbid_colon=superbpe
    )


def described(config: TrainConfig, unicode: UnicodeForm, found: Superwords, look_alikes: LookAlikes) -> Metadata:
    special = config.special_tokens.by_role()
    named = [*COMMON_SETTINGS, *(SUPERBPE_SETTINGS if config.family == "superbpe" else BOUNDLESS_SETTINGS)]
    settings = {name: getattr(config, name) for name in named}
    superwords = int(np.count_nonzero(found.is_superword))
    training = {
        "documents": found.seen.documents,
        "bytes": found.seen.bytes,
        "bytes_dropped": found.seen.bytes_dropped,
        "superwords": superwords,
        "transition_size": len(special) + len(found.tokens) - superwords,
        **look_alikes.figures(),
    }
    return Metadata(config.family, unicode, special, settings, training)


def as_model(
    found: Superwords,
    table: pa.Table,
    special: tuple[str, ...],
    splits: tuple[str, ...],
    mergeable: str,
    letters: str | None,
) -> SuperwordModel:
    rows = np.stack([table[name].to_numpy() for name in ("left", "right", "token")], axis=1)
    words, superwords = rows[~found.is_superword], rows[found.is_superword]
    return SuperwordModel(splits, mergeable, letters, special, found.tokens, words, superwords)


def gap(exact: Tokenizer, stock: Tokenizer, texts: list[pa.Array]) -> dict[str, int]:
    """What the stock file costs on a sample: tokens by the model itself and by the file, documents that differ."""
    sizes = {
        "gap_bytes": 0,
        "gap_tokens_exact": 0,
        "gap_tokens_hf": 0,
        "gap_documents": 0,
        "gap_documents_differing": 0,
    }
    for array in texts:
        ours, theirs = exact.encode(array), stock.encode(array)
        sizes["gap_bytes"] += pc.sum(pc.binary_length(array)).as_py() or 0
        sizes["gap_tokens_exact"] += ours.ids.size
        sizes["gap_tokens_hf"] += theirs.ids.size
        sizes["gap_documents"] += len(array)
        sizes["gap_documents_differing"] += len(differing_documents(ours, theirs))
    return sizes
