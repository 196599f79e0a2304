"""Text whose special-token look-alikes are special tokens (`parse_special_tokens`); elsewhere they are ordinary text.

A tokenizer.json is left to its library, which knows how each token of the file matches. In every other family the text
is cut at its special tokens, of two that begin at one place at the longer one, and what stands between them is encoded
as texts of their own, which is what tiktoken does.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.tokenizers.encoded import Encoded, concatenate, encode_apart
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.protocol import Tokenizer


def encode_with_special_tokens(tokenizer: Tokenizer, texts: pa.Array) -> Encoded:
    """Ids of a string array without nulls, as `Tokenizer.encode`, but special tokens in text are matched."""
    if isinstance(tokenizer, HuggingFaceTokenizer):
        return tokenizer.encode_with_special_tokens(texts)
    ids = special_token_ids(tokenizer)
    if not ids:
        return tokenizer.encode(texts)
    pattern = re.compile("|".join(re.escape(text) for text in sorted(ids, key=len, reverse=True)))
    holds = pc.match_substring_regex(texts, pattern.pattern).to_numpy(zero_copy_only=False)

    def in_parts(some: pa.Array) -> Encoded:
        return concatenate(encode_in_parts(tokenizer, text.as_py(), pattern, ids) for text in some)

    return encode_apart(texts, [holds], in_parts, tokenizer.encode)


def special_token_ids(tokenizer: Tokenizer) -> dict[str, int]:
    vocabulary = tokenizer.vocabulary()
    special = vocabulary.filter(vocabulary["special"])
    named = zip(special["token"].to_pylist(), special["id"].to_pylist(), strict=True)
    return {token.decode(): token_id for token, token_id in named if token}


def encode_in_parts(tokenizer: Tokenizer, text: str, pattern: re.Pattern[str], ids: dict[str, int]) -> Encoded:
    """One document that holds special tokens."""
    found = list(pattern.finditer(text))
    edges = [0, *(edge for match in found for edge in match.span()), len(text)]
    between = tokenizer.encode(pa.array([text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)], pa.string()))
    special = np.array([ids[match[0]] for match in found], np.int32)
    merged = np.insert(between.ids, between.offsets[1:-1], special)
    return Encoded(merged, np.array([0, merged.size], np.int64))
