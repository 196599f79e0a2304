"""gigatoken in the place of Hugging Face's library, for a tokenizer.json of BPE in SentencePiece's manner.

So are the files of Llama 2, Mistral 7B, Gemma, Yi, Baichuan and InternLM: spaces are written as U+2581, no regex splits
the text, and characters without a piece are those of their bytes. gigatoken is given the file without its special
tokens, which it would match in text; added tokens that are not special match in both. Before it is used, its ids are
compared with the library's on hard and on random texts. Long documents stay with the library, since what is met once
takes gigatoken 22 bytes a byte.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow as pa
from tokenizers import Tokenizer as Engine

from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.tokenizers.agreement.encoder_choice import EncoderChoice
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts, random_texts
from tokpack_core.tokenizers.byte_bpe.gigatoken_engine import LONG, OTHER_IDS, LearningEngines, without_special_tokens
from tokpack_core.tokenizers.byteification.token_bytes import META_SPACE
from tokpack_core.tokenizers.encoded import Encode, Encoded, encode_apart, same_ids
from tokpack_core.tokenizers.huggingface.tokenizer_json import description_of

SPACES = [
    *(
        " " * left + text + " " * right
        for text in ("", "a", "a  b", "\n", "你 好")
        for left in range(4)
        for right in range(3)
    ),
    *(f"{left}{META_SPACE}{right}" for left in ("", " ", "a", META_SPACE) for right in ("", " ", "b", "\n")),
]


@dataclass(frozen=True)
class StockFileEngine:
    """`encode` gives the library's ids in any number of threads."""

    by_library: Encode
    engines: LearningEngines

    def encode(self, texts: pa.Array) -> Encoded:
        """`texts`: string array without nulls."""
        _, offsets = text_buffers(texts)
        return encode_apart(texts, [np.diff(offsets) >= LONG], self.by_library, self.engines.encode)


def choose_for_stock_file(engine: Engine, by_library: Encode) -> tuple[StockFileEngine | None, EncoderChoice]:
    """The engine of a BPE with byte pieces, if there is one with the same ids, and what to say of it."""
    description = description_of(engine)
    added = [token["content"] for token in description["added_tokens"]]
    description["added_tokens"] = without_special_tokens(description)
    try:
        found = StockFileEngine(by_library, LearningEngines(orjson.dumps(description)))
    except RuntimeError:
        return None, EncoderChoice("tokenizers")
    compared = pa.array([*hard_texts(added), *random_texts(), *SPACES], pa.string())
    if same_ids(found.encode(compared), by_library(compared)):
        return found, EncoderChoice("gigatoken")
    return None, EncoderChoice("tokenizers", (OTHER_IDS,))
