"""Parts of a tokenizer.json that do not depend on the family."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import AddedToken, normalizers

from tokpack_core.config import UnicodeForm


def normalizer_of(unicode: UnicodeForm) -> normalizers.Normalizer | None:
    if unicode == "none":
        return None
    return normalizers.NFC() if unicode == "nfc" else normalizers.NFKC()


def as_special(strings: Iterable[str]) -> list[AddedToken]:
    """Special tokens as the library takes them: matched as they stand, never normalized."""
    return [AddedToken(text, special=True, normalized=False) for text in strings]
