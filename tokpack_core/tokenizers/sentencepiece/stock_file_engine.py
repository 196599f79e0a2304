"""gigatoken in the place of Hugging Face's library, for a tokenizer.json of BPE in SentencePiece's manner.

So are the files of Llama 2, Mistral 7B, Gemma, Yi, Baichuan and InternLM: spaces are written as U+2581, no regex splits
the text, and characters without a piece are those of their bytes. gigatoken is given the file without its special
tokens, which it would match in text; added tokens that are not special match in both. Before it is used, its ids are
compared with the library's on hard and on random texts.

What is met once takes gigatoken 22 bytes a byte, and the library 50, so long documents are encoded by our own encoder
(see `stock_long_texts`), which is made when the first one comes; what it does not serve stays with the library.
"""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer as Engine

from tokpack_core.allocator import give_back_freed_memory
from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.tokenizers.agreement.encoder_choice import EncoderChoice
from tokpack_core.tokenizers.byte_bpe.gigatoken_engine import LONG, OTHER_IDS, LearningEngines, without_special_tokens
from tokpack_core.tokenizers.encoded import Encode, Encoded, concatenate, encode_apart, same_ids
from tokpack_core.tokenizers.huggingface.tokenizer_json import description_and_model, with_model
from tokpack_core.tokenizers.sentencepiece.stock_long_texts import equal_stock_long_encoder, texts_to_compare


class StockFileEngine:
    """`encode` gives the library's ids in any number of threads."""

    def __init__(self, engine: Engine, by_library: Encode) -> None:
        self._engine = engine
        self._by_library = self._short = by_library
        self._long: Encode | None = None
        self._tried = False
        self._loading = threading.Lock()

    def encode(self, texts: pa.Array) -> Encoded:
        """`texts`: string array without nulls."""
        _, offsets = text_buffers(texts)
        return encode_apart(texts, [np.diff(offsets) >= LONG], self._encode_long, self._short)

    def choose(self) -> EncoderChoice:
        """Takes gigatoken for short texts if it gives the same ids, and says so."""
        description, model = description_and_model(self._engine)
        compared = texts_to_compare(description)
        description["added_tokens"] = without_special_tokens(description)
        try:
            engines = LearningEngines(with_model(description, model))
        except RuntimeError:
            return EncoderChoice("tokenizers")
        if not same_ids(engines.encode(compared), self._by_library(compared)):
            return EncoderChoice("tokenizers", (OTHER_IDS,))
        self._short = engines.encode
        return EncoderChoice("gigatoken")

    def _encode_long(self, texts: pa.Array) -> Encoded:
        with self._loading:
            if not self._tried:
                self._long = equal_stock_long_encoder(self._engine, self._by_library)
                give_back_freed_memory()
                self._tried = True
        encode = self._long or self._by_library
        return concatenate(encode(texts.slice(row, 1)) for row in range(len(texts)))
