"""Our own encoder in the place of Hugging Face's WordLevel: a table of words, and unk for all others.

A tokenizer.json qualifies if its pretokenizer is Splits (see `pretokenizer_steps`) whose regexes have an automaton, and
its normalizer is none, NFC or NFKC, as those of the families `word` and `character`. Before it is used, its ids are
compared with the library's on strings that are hard for either; one difference, and the library stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer as Engine

from tokpack_core.bpe.pretoken_counts import NO_COUNTS
from tokpack_core.bpe.superword_unit_kernels import whole_words
from tokpack_core.bpe.word_table import WordTable
from tokpack_core.bpe.word_table_kernels import VALUE, add_counts
from tokpack_core.tokenizers.agreement.equal_by_pretokens import equal_by_pretokens
from tokpack_core.tokenizers.byte_bpe.pretokenizer_steps import splitting_steps, steps_of
from tokpack_core.tokenizers.encoded import Encode
from tokpack_core.tokenizers.huggingface.tokenizer_json import description_of


class WordLevelEncoder:
    def __init__(self, ids: Mapping[str, int], unk: int) -> None:
        words = [word.encode() for word in ids if word]
        ends = np.cumsum([len(word) for word in words], dtype=np.int64)
        self._unk = unk
        self._table = table = WordTable()
        table.reserve(len(words), int(ends[-1]))
        data = np.frombuffer(b"".join(words), np.uint8)
        table.used, table.filled = add_counts(
            data, 0, ends, NO_COUNTS, table.slots, table.entries, table.arena, table.used, table.filled
        )
        # Each word has an entry of its own, in this order.
        table.entries[: table.used, VALUE] = np.array([ids[word.decode()] for word in words], np.uint64)

    def encode_pretokens(
        self, data: npt.NDArray[np.uint8], begin: int, ends: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The id of each pretoken, and [pretokens + 1] how many stand before each."""
        table = self._table
        ids = np.empty(ends.size, np.int32)
        whole_words(data, begin, ends, table.slots, table.entries, table.arena, ids)
        ids[ids < 0] = self._unk
        return ids, np.arange(ends.size + 1)


def equal_word_level_encoder(engine: Engine, by_library: Encode) -> Encode | None:
    """An encoder that gives the library's ids on all hard texts, or None."""
    description = description_of(engine)
    model, pretokenizer = description["model"], description["pre_tokenizer"]
    steps = None if pretokenizer is None else splitting_steps(steps_of(pretokenizer))
    if steps is None or not steps.patterns or model["unk_token"] not in model["vocab"]:
        return None
    words = partial(WordLevelEncoder, model["vocab"], model["vocab"][model["unk_token"]])
    return equal_by_pretokens(engine, description, steps, words, by_library)
