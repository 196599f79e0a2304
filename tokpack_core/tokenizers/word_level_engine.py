"""Our own encoder in the place of Hugging Face's WordLevel: a table of words, and unk for all others.

A tokenizer.json qualifies if its pretokenizer is Splits (see `pretokenizer_steps`) whose regexes have an automaton, and
its normalizer is none, NFC or NFKC, as those of the families `word` and `character`. Before it is used, its ids are
compared with the library's on strings that are hard for either; one difference, and the library stays.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tokenizers import Tokenizer as Engine

from tokpack_core.bpe.automaton import compile_splits
from tokpack_core.bpe.pretoken_counts import NO_COUNTS
from tokpack_core.bpe.pretoken_encoder import encode_by_pretokens
from tokpack_core.bpe.regex_syntax import Unsupported
from tokpack_core.bpe.superword_unit_kernels import whole_words
from tokpack_core.bpe.word_table import WordTable
from tokpack_core.bpe.word_table_kernels import VALUE, add_counts
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts, random_texts
from tokpack_core.tokenizers.byte_bpe.engine import MOST_ADDED_TOKENS, form_of
from tokpack_core.tokenizers.byte_bpe.pretokenizer_steps import splitting_steps, steps_of
from tokpack_core.tokenizers.encoded import Encode, Encoded, encode_apart
from tokpack_core.tokenizers.huggingface.tokenizer_json import description_of
from tokpack_core.tokenizers.library_texts import any_of, holding, normalized_by


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
    added = [token["content"] for token in description["added_tokens"]]
    matching = [token["content"] for token in description["added_tokens"] if not token["special"]]
    form = form_of(description["normalizer"])
    if pretokenizer is None or form is None or len(matching) > MOST_ADDED_TOKENS:
        return None
    steps = splitting_steps(steps_of(pretokenizer))
    if steps is None or not steps.patterns or model["unk_token"] not in model["vocab"]:
        return None
    try:
        automaton = compile_splits(steps.patterns, "16.0")
    except Unsupported:
        return None
    words = WordLevelEncoder(model["vocab"], model["vocab"][model["unk_token"]])
    for_library, prepared = any_of(holding(matching), steps.for_library), normalized_by(engine, form)

    def by_words(texts: pa.Array) -> Encoded:
        return encode_by_pretokens(prepared(texts), automaton, words)

    def encode(texts: pa.Array) -> Encoded:
        library = for_library(texts)
        return encode_apart(texts, [] if library is None else [library], by_library, by_words)

    compared = pa.array([*hard_texts(added), *random_texts()], pa.string())
    ours, theirs = encode(compared), by_library(compared)
    return encode if np.array_equal(ours.ids, theirs.ids) and np.array_equal(ours.offsets, theirs.offsets) else None
