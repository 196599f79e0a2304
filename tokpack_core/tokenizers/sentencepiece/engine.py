"""gigatoken in the place of SentencePiece's own library, for BPE models with byte pieces where it gives the same ids.

It is given the model as the tokenizer.json that its own converter makes, without control symbols, which match no text,
and, where the model normalizes to a unicode form, without those rules. Two kinds of text stay with the library: those
that the form would change, and those with a string that has to be read apart. Before it is used, its ids are compared
with the library's on hard and on random texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from gigatoken._load.sentencepiece import sentencepiece_to_tokenizer_json

from tokpack_core.config import NormalizeConfig, UnicodeForm
from tokpack_core.corpus.normalization import normalize
from tokpack_core.tokenizers.agreement.encoder_choice import EncoderChoice
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts, random_texts
from tokpack_core.tokenizers.byte_bpe.gigatoken_engine import OTHER_IDS, LearningEngines, without_special_tokens
from tokpack_core.tokenizers.encoded import Bools, Encode, Encoded, encode_apart, same_ids
from tokpack_core.tokenizers.long_documents import encode_bounded


@dataclass(frozen=True)
class SentencePieceEngine:
    """`encode` gives the library's ids in any number of threads."""

    by_library: Encode
    encode_long: Encode
    engines: LearningEngines
    family: str
    unicode: UnicodeForm
    apart: str | None
    """Regex of what the library must read."""

    def encode(self, texts: pa.Array) -> Encoded:
        return encode_apart(texts, self._for_library(texts), self.by_library, self._encode)

    def _encode(self, texts: pa.Array) -> Encoded:
        return encode_bounded(self.engines.encode, texts, self.family, encode_long=self.encode_long)

    def _for_library(self, texts: pa.Array) -> list[Bools]:
        masks = []
        if self.apart is not None:
            masks.append(pc.match_substring_regex(texts, self.apart))
        if self.unicode != "none":
            form = NormalizeConfig(unicode=self.unicode, byte_order_marks="keep")
            masks.append(pc.not_equal(texts, normalize(texts, form)[0]))
        return [mask.to_numpy(zero_copy_only=False) for mask in masks]


def choose_engine(
    model: bytes,
    by_library: Encode,
    encode_long: Encode,
    family: str,
    unicode: UnicodeForm,
    apart: str | None,
    special: list[str],
) -> tuple[SentencePieceEngine | None, EncoderChoice]:
    """The engine, if there is one with the same ids, and what to say of it.

    encode_long: as `encode_bounded` takes it; special: strings of special tokens.
    """
    library = EncoderChoice("sentencepiece")
    try:
        engines = LearningEngines(without_rules(sentencepiece_to_tokenizer_json(model), unicode))
    except (ValueError, RuntimeError):  # another kind of model, or one that it does not load
        return None, library
    engine = SentencePieceEngine(by_library, encode_long, engines, family, unicode, apart)
    for texts in (pa.array(hard_texts(special), pa.string()), pa.array(random_texts(), pa.string())):
        if not same_ids(engine.encode(texts), by_library(texts)):
            return None, EncoderChoice("sentencepiece", (OTHER_IDS,))
    return engine, EncoderChoice("gigatoken")


def without_rules(file: str, unicode: UnicodeForm) -> bytes:
    description: dict[str, Any] = orjson.loads(file)
    description["added_tokens"] = without_special_tokens(description)
    if unicode != "none":
        steps = description["normalizer"]["normalizers"]
        description["normalizer"]["normalizers"] = [step for step in steps if step["type"] != "Precompiled"]
    return orjson.dumps(description)
