"""Our own encoder in the place of Hugging Face's Unigram, where all entries cost the same (see `minimum_cost_model`).

Before it is used, its ids are compared with the library's on strings that are hard for either; one difference, and the
library stays.
"""

from __future__ import annotations

import pyarrow as pa
from tokenizers import Tokenizer as Engine

from tokpack_core.bpe.automaton import compile_splits
from tokpack_core.bpe.pretoken_encoder import encode_by_pretokens
from tokpack_core.bpe.regex_syntax import Unsupported
from tokpack_core.bpe.word_memory import WordMemory
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts, random_texts
from tokpack_core.tokenizers.byte_bpe.engine import splits_and_form
from tokpack_core.tokenizers.encoded import Encode, Encoded, encode_apart, same_ids
from tokpack_core.tokenizers.huggingface.tokenizer_json import description_of
from tokpack_core.tokenizers.library_texts import normalized_by
from tokpack_core.tokenizers.minimum_cost.encoding import MinimumCostEncoder
from tokpack_core.tokenizers.minimum_cost.model import entries_that_cost_the_same


def equal_minimum_cost_encoder(engine: Engine, by_library: Encode) -> Encode | None:
    """An encoder that gives the library's ids on all hard texts, or None."""
    description = description_of(engine)
    found, vocabulary = splits_and_form(description), entries_that_cost_the_same(description["model"])
    if found is None or vocabulary is None:
        return None
    splits, form, for_library = found
    try:
        automaton = compile_splits(splits, "16.0")
    except Unsupported:
        return None
    words = WordMemory(MinimumCostEncoder(vocabulary).encode_units)
    prepared = normalized_by(engine, form)

    def by_words(texts: pa.Array) -> Encoded:
        return encode_by_pretokens(prepared(texts), automaton, words)

    def encode(texts: pa.Array) -> Encoded:
        library = for_library(texts)
        return encode_apart(texts, [] if library is None else [library], by_library, by_words)

    compared = pa.array(
        [*hard_texts([token["content"] for token in description["added_tokens"]]), *random_texts()], pa.string()
    )
    return encode if same_ids(encode(compared), by_library(compared)) else None
