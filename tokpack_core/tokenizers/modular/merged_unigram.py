"""Merged Unigram over languages: `modular_unigram` (arXiv 2609.15528).

Each language has a Unigram of its own of `vocab_size` entries, trained as `sentencepiece_unigram` is. The whole is the
union of their pieces, each once, with probabilities fitted on the text of all languages (see `unigram_em`). A
sub-tokenizer has the pieces of its languages with these probabilities.

Scores, the logarithms of probabilities, are rounded, so that their sums are exact in all libraries (`exact_scores`).

Ids: special tokens, 256 byte pieces, then pieces by falling probability, of equal ones by their bytes. Which ids a
language has is its entry in `lang_to_ids.json`. A language whose text gives fewer pieces gets as many as there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from tokpack_core.config import TrainConfig, UnicodeForm
from tokpack_core.tokenizers.byteification.token_bytes import META_SPACE
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.modular.language_texts import LabelledTexts, LanguageTexts, by_language
from tokpack_core.tokenizers.sentencepiece.exact_scores import on_grid
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer
from tokpack_core.tokenizers.sentencepiece.proto import NORMAL, pieces, with_new_pieces
from tokpack_core.tokenizers.sentencepiece.training import VocabularyTooLarge, VocabularyTooSmall, train_sentencepiece
from tokpack_core.tokenizers.sentencepiece.unigram_em import fit
from tokpack_core.tokenizers.sentencepiece.words import SeenText, count_words
from tokpack_core.tokenizers.training_text import IN_TEXT

SUMMED = ("documents", "bytes", "bytes_dropped", "reserved_characters")
SETTINGS = ("vocab_size", "character_coverage", "required_characters")


def train_modular_unigram(
    config: TrainConfig, texts: Iterator[LabelledTexts], unicode: UnicodeForm
) -> SentencePieceTokenizer:
    """Train on texts and their languages, which are read once and kept in temporary files.

    Raises InputError for an empty corpus or language, a document without a language, and a vocabulary smaller than the
    characters of a language need.
    """
    with by_language(texts, config.languages) as read:
        alone = {module: trained(config, read, module, unicode) for module in read.modules}
        every = chain.from_iterable(map(read.texts, read.modules))
        words = count_words(every, SeenText()).counted
    first = next(iter(alone.values()))
    own = {module: ordinary(tokenizer) for module, tokenizer in alone.items()}
    union = sorted(set(chain.from_iterable(own.values())))
    fitted = fit([piece.replace(META_SPACE, " ") for piece in union], words)
    scores = on_grid(fitted.log_p)
    order = np.argsort(-scores, kind="stable").tolist()
    fixed = [entry for entry in pieces(first.model) if entry[2] != NORMAL[0]]
    found = [(union[place], float(scores[place]), NORMAL[0]) for place in order]
    ids = {piece: len(fixed) + rank for rank, (piece, _, _) in enumerate(found)}
    always = list(range(len(fixed)))
    languages = {
        language: np.array(always + sorted(map(ids.__getitem__, own[module])), np.int32)
        for module in own
        for language in module
    }
    training = {name: sum(tokenizer.training[name] for tokenizer in alone.values()) for name in SUMMED}
    look_alikes = sum(tokenizer.training.get(IN_TEXT, 0) for tokenizer in alone.values())
    training |= {IN_TEXT: look_alikes} if look_alikes else {}
    training |= {"languages": len(languages), "vocab_size": len(fixed) + len(found), "rounds": fitted.rounds}
    settings = {name: getattr(config, name) for name in SETTINGS}
    special = dict(first.metadata.special_tokens)
    metadata = Metadata("modular_unigram", unicode, special, settings, training, languages=languages)
    return SentencePieceTokenizer(with_new_pieces(first.model, [*fixed, *found]), metadata, "the trained tokenizer")


def trained(
    config: TrainConfig, read: LanguageTexts, module: tuple[str, ...], unicode: UnicodeForm
) -> SentencePieceTokenizer:
    """The Unigram of one module, smaller if its text gives no more."""
    alone = config.model_copy(update={"family": "sentencepiece_unigram", "languages": None})
    try:
        return train_sentencepiece(alone, read.texts(module), unicode)
    except VocabularyTooLarge as error:
        smaller = alone.model_copy(update={"vocab_size": error.possible})
        return train_sentencepiece(smaller, read.texts(module), unicode)
    except VocabularyTooSmall as error:
        raise VocabularyTooSmall(alone.vocab_size, error.needed, f"language {', '.join(module)}") from None


def ordinary(tokenizer: SentencePieceTokenizer) -> list[str]:
    """The pieces that are neither special tokens nor bytes, as they stand in the model."""
    return [text for text, _, kind in pieces(tokenizer.model) if kind == NORMAL[0]]
