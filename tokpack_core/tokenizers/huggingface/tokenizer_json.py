"""A tokenizer.json: its content, and the parts of it that do not depend on the family."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from tokenizers import AddedToken, normalizers
from tokenizers import Tokenizer as Engine

from tokpack_core.config import UnicodeForm


def description_of(engine: Engine) -> dict[str, Any]:
    """The content, read from bytes: a string with letters of many scripts takes four bytes a character."""
    content: dict[str, Any] = orjson.loads(engine.__getstate__())
    return content


def normalizer_of(unicode: UnicodeForm) -> normalizers.Normalizer | None:
    if unicode == "none":
        return None
    return normalizers.NFC() if unicode == "nfc" else normalizers.NFKC()


def as_special(strings: Iterable[str]) -> list[AddedToken]:
    """Special tokens as the library takes them: matched as they stand, never normalized."""
    return [AddedToken(text, special=True, normalized=False) for text in strings]
