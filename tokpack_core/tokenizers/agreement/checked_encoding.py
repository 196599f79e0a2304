"""Encoding that names the document with which an encoder fails, or to which it gives an id outside the vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tokpack_core.errors import InputError, TokpackError
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.encoding_errors import EncodingError

Documents = TypeVar("Documents", bound=Any)
Result = TypeVar("Result")


def encode_checked(
    encode: Callable[[Documents], Result],
    documents: Documents,
    tokens: Callable[[Result], Encoded],
    vocab_size: int,
    name: Callable[[int], str],
) -> Result:
    """What `encode` gives for documents (an array or a record batch), whose tokens `tokens` finds in it.

    `name` says what an error calls the document of a number.

    Raises:
        InputError: a document cannot be encoded.
    """
    try:
        result = encode(documents)
    except Exception as error:  # what an encoder raises has no common base
        if isinstance(error, TokpackError) and not isinstance(error, EncodingError):
            raise
        for number in range(len(documents)):
            try:
                encode(documents.slice(number, 1))
            except Exception as one:
                raise cannot_encode(name(number), one.reason if isinstance(one, EncodingError) else str(one)) from error
        raise
    encoded = tokens(result)
    ids = encoded.ids
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < vocab_size:
        bad = int(np.argmax((ids < 0) | (ids >= vocab_size)))
        number = int(np.searchsorted(encoded.offsets, bad, side="right")) - 1
        raise cannot_encode(name(number), f"token id {int(ids[bad])} is outside the vocabulary of {vocab_size}")
    return result


def cannot_encode(name: str, reason: str) -> InputError:
    said = " ".join(reason.split())[:300]
    return InputError(f"{name} cannot be encoded ({said}); leave it out of the corpus, or check the tokenizer")
