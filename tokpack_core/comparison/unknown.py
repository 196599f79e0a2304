"""Text that a tokenizer has no tokens for, told by the special tokens that ordinary text gives: its `unk`.

A tokenizer that writes one token for a word that it does not know seems short there, and has lost the word.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.protocol import Tokenizer

TOLERATED = 0.001
"""From this share of unknown tokens on, numbers of tokens do not compare."""


def special_flags(tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """[vocab_size]: which ids are special."""
    rows = tokenizer.vocabulary()
    flags = np.zeros(tokenizer.vocab_size, np.bool_)
    flags[rows["id"].to_numpy()] = rows["special"].to_numpy()
    return flags


def unknown_tokens(encoded: Encoded, special: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Special tokens of each document: int64 [documents]."""
    before = np.concatenate([[0], np.cumsum(special[encoded.ids])])
    return np.diff(before[encoded.offsets])


def unknown_share(unknown: NDArray[np.int64], tokens: NDArray[np.int64]) -> float:
    """Of all tokens of some documents."""
    return float(unknown.sum() / max(int(tokens.sum()), 1))
