"""An encoder of ours that takes each pretoken by itself, in the place of a library whose ids it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from tokenizers import Tokenizer as Engine

from tokpack_core.bpe.automaton import compile_splits
from tokpack_core.bpe.pretoken_encoder import EncodesPretokens, encode_by_pretokens
from tokpack_core.bpe.regex_syntax import Unsupported
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts, random_texts
from tokpack_core.tokenizers.byte_bpe.pretokenizer_steps import PretokenizerSteps
from tokpack_core.tokenizers.encoded import Encode, Encoded, encode_apart, same_ids
from tokpack_core.tokenizers.library_texts import form_and_texts, normalized_by


def equal_by_pretokens(
    engine: Engine,
    description: dict[str, Any],
    steps: PretokenizerSteps,
    encoder: Callable[[], EncodesPretokens],
    by_library: Encode,
) -> Encode | None:
    """None where a hard text has other ids, or the file does more than its steps and a unicode form.

    `description`: content of the engine's tokenizer.json; `encoder` makes what encodes pretokens.
    """
    found = form_and_texts(engine, description, steps.for_library)
    if found is None:
        return None
    try:
        automaton = compile_splits(steps.patterns, "16.0")
    except Unsupported:
        return None
    form, for_library = found
    words, prepared = encoder(), normalized_by(engine, form)

    def by_words(texts: pa.Array) -> Encoded:
        return encode_by_pretokens(prepared(texts), automaton, words)

    def encode(texts: pa.Array) -> Encoded:
        library = for_library(texts)
        return encode_apart(texts, [] if library is None else [library], by_library, by_words)

    added = [token["content"] for token in description["added_tokens"]]
    compared = pa.array([*hard_texts(added), *random_texts()], pa.string())
    return encode if same_ids(encode(compared), by_library(compared)) else None
