"""WordPiece as BERT has it (Devlin et al. 2019), without lower-casing: trained here, saved as a tokenizer.json.

Text is split at white space, which is dropped; punctuation and each Han character are words of their own. A word is
encoded from the left by the longest pieces that the vocabulary has; if that fails, or it has more than 100 characters,
all of it is unk. So WordPiece does not give text back: indentation and line ends are lost by its nature, and the round
trip is reported but blocks nothing (see `round_trip`).

Characters get an entry in the order of their counts until they make up `character_coverage` of the text; words with
another one are unk, and nothing is learned from them: `bytes_dropped` are theirs.

Ids: special tokens in the order eod, pad, bos, unk (`[UNK]` if none is configured), characters by code point, the same
with `##`, then what merges made. See `wordpiece_merges` for the two criteria.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Engine

from tokpack_core.bpe.unicode_categories import WHITE_SPACE
from tokpack_core.config import TrainConfig, UnicodeForm
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.counted_text import CountedText, counted_text, room_for_text
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.huggingface.tokenizer_json import as_special, normalizer_of
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.training_text import NO_TEXT, LookAlikes
from tokpack_core.tokenizers.wordpiece.merges import PREFIX, learn_pieces

UNK = "[UNK]"
LONGEST_WORD = 100
NO_BOUNDARIES = "wordpiece needs white space between words; choose another `family`"
FEWER = "; raise it or lower `character_coverage`"
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ebef\U0002f800-\U0002fa1f"
PUNCTUATION = r"\p{P}$+<=>\^`|~"
WORDS = rf"[{HAN}]|[{PUNCTUATION}]|[^\s{PUNCTUATION}{HAN}]+"
"""Splits as the pretokenizer of the file does, but for the Unicode version of \\p{P}."""


def train_wordpiece(config: TrainConfig, texts: Iterator[pa.Array], unicode: UnicodeForm) -> HuggingFaceTokenizer:
    """Train on an iterator of string arrays, which is read once.

    Raises InputError for an empty corpus, a vocabulary too small for the characters that the coverage asks for, and a
    special token that is a word of ordinary text.
    """
    special_tokens = config.special_tokens.by_role()
    special_tokens.setdefault("unk", UNK)
    look_alikes = LookAlikes(special_tokens.values())
    text = counted_text(look_alikes.counting(texts), (WORDS,), NO_BOUNDARIES)
    counts = text.character_counts()
    counts[list(WHITE_SPACE)] = 0
    if not counts.any():
        raise InputError(NO_TEXT.replace("no text", "nothing but white space"))
    characters = covering_characters(counts, config.character_coverage)
    what = f"{len(characters)} characters, each in two forms,"
    size = room_for_text(2 * len(characters), len(special_tokens), what, config.vocab_size, FEWER)
    likelihood = config.wordpiece_criterion == "likelihood"
    pieces = learn_pieces(text.words, characters, size, config.min_frequency, likelihood, LONGEST_WORD)
    settings = {
        "vocab_size": config.vocab_size,
        "wordpiece_criterion": config.wordpiece_criterion,
        "min_frequency": config.min_frequency,
        "character_coverage": config.character_coverage,
        "tie_break": "smaller_ids",
    }
    training = figures(text, characters) | look_alikes.figures()
    engine = as_engine([*special_tokens.values(), *pieces], special_tokens, unicode)
    metadata = Metadata("wordpiece", unicode, special_tokens, settings, training)
    return HuggingFaceTokenizer(engine, metadata, "the trained tokenizer")


def figures(text: CountedText, characters: list[str]) -> dict[str, int]:
    """Words, and those of which nothing was learned since one of their characters has no entry."""
    blank = text.words_of(WHITE_SPACE)
    left_out = ~blank & ~text.words_of([ord(character) for character in characters])
    counts = text.words.counts
    return {
        "documents": text.seen.documents,
        "bytes": text.seen.bytes,
        "bytes_dropped": int((text.lengths * counts)[left_out].sum()),
        "words": int(counts[~blank].sum()),
        "words_dropped": int(counts[left_out].sum()),
        "characters": len(characters),
    }


def covering_characters(counts: npt.NDArray[np.int64], coverage: float) -> list[str]:
    """The fewest characters that make up a share of the text, by code point."""
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    reached = np.cumsum(counts[order])
    needed = int(np.searchsorted(reached, math.ceil(coverage * float(counts.sum())))) + 1
    return sorted(chr(code) for code in order[:needed])


def as_engine(pieces: list[str], special_tokens: dict[str, str], unicode: UnicodeForm) -> Engine:
    ids = {piece: token for token, piece in enumerate(pieces)}
    unk = special_tokens["unk"]
    engine = Engine(
        models.WordPiece(ids, unk_token=unk, max_input_chars_per_word=LONGEST_WORD, continuing_subword_prefix=PREFIX)
    )
    engine.normalizer = normalizer_of(unicode)
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(f"[{HAN}]"), "isolated"), pre_tokenizers.BertPreTokenizer()]
    )
    engine.decoder = decoders.WordPiece(prefix=PREFIX, cleanup=False)
    engine.add_special_tokens(as_special(special_tokens.values()))
    return engine
