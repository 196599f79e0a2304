"""Errors that name the text which a library cannot encode, a panic of a library in Rust among them.

Hugging Face tokenizers and tiktoken panic where they cannot go on, as when a regex backtracks too often on a text, and
Python gets a BaseException that no `except Exception` sees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tokpack_core.errors import InputError

T = TypeVar("T")
SHOWN = 40
"""Characters of a text."""
REMEDY = "give the tokenizer a regex without repetitions of repetitions, such as (a+)+"


class EncodingError(InputError):
    """A text, given by its beginning (None: no text alone), that cannot be encoded; `reason` ends in the remedy."""

    def __init__(self, reason: str, text: str | None) -> None:
        super().__init__(reason, text)
        self.reason = reason
        self._text = text

    def __str__(self) -> str:
        which = "a text" if self._text is None else f"the text that begins {self._text!r}"
        return f"{which} cannot be encoded ({self.reason})"


def lists_or_error(encode: Callable[[list[str]], T], texts: list[str]) -> T:
    """What `encode` gives; raises EncodingError if it panics, for the first text that alone makes it."""
    reason = panic(encode, texts)
    if not isinstance(reason, str):
        return reason[0]
    for text in texts:
        alone = panic(encode, [text])
        if isinstance(alone, str):
            raise EncodingError(alone, text[:SHOWN])
    raise EncodingError(reason, None)


def panic(encode: Callable[[list[str]], T], texts: list[str]) -> tuple[T] | str:
    """The result, or what the library said when it panicked."""
    try:
        return (encode(texts),)
    except BaseException as error:
        # Each library has a class of its own by this name.
        if type(error).__name__ != "PanicException":
            raise
        return f"its library gave up: {' '.join(str(error).split())[:200]}; {REMEDY}"
