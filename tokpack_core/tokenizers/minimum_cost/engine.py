"""Our own encoder in the place of Hugging Face's Unigram, where all entries cost the same (see `minimum_cost_model`).

Before it is used, its ids are compared with the library's on strings that are hard for either; one difference, and the
library stays.
"""

from __future__ import annotations

from tokenizers import Tokenizer as Engine

from tokpack_core.bpe.word_memory import WordMemory
from tokpack_core.tokenizers.agreement.equal_by_pretokens import equal_by_pretokens
from tokpack_core.tokenizers.byte_bpe.pretokenizer_steps import pretokenizer_steps
from tokpack_core.tokenizers.encoded import Encode
from tokpack_core.tokenizers.huggingface.tokenizer_json import description_of
from tokpack_core.tokenizers.minimum_cost.encoding import MinimumCostEncoder
from tokpack_core.tokenizers.minimum_cost.model import entries_that_cost_the_same


def equal_minimum_cost_encoder(engine: Engine, by_library: Encode) -> Encode | None:
    """An encoder that gives the library's ids on all hard texts, or None."""
    description = description_of(engine)
    steps = pretokenizer_steps(description["pre_tokenizer"])
    vocabulary = entries_that_cost_the_same(description["model"])
    if steps is None or vocabulary is None:
        return None

    def words() -> WordMemory:
        return WordMemory(MinimumCostEncoder(vocabulary).encode_units)

    return equal_by_pretokens(engine, description, steps, words, by_library)
