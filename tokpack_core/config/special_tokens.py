"""Special tokens by role."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import model_validator

from tokpack_core.config.values import NO_TEXT, Model, is_text

BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")
Role = Literal["eod", "pad", "bos", "unk", "image"]


class SpecialTokens(Model):
    """Strings by role. Text that looks like one of them is encoded as ordinary text."""

    eod: str | None = None
    """Ends every document."""
    pad: str | None = None
    """Reserved for padding by trainers."""
    bos: str | None = None
    """Begins every document where `bos: true` says so."""
    unk: str | None = None
    """What stands for text that the vocabulary lacks."""
    image: str | None = None
    """Stands at every position of an image."""

    @model_validator(mode="after")
    def strings_are_distinct(self) -> SpecialTokens:
        strings = list(self.by_role().values())
        if "" in strings or len(set(strings)) < len(strings):
            raise ValueError("special tokens must be distinct, non-empty strings")
        if not all(map(is_text, strings)):
            raise ValueError(f"a special token {NO_TEXT}")
        return self

    def by_role(self) -> dict[str, str]:
        return {role: text for role, text in self.model_dump().items() if text is not None}


def refuse_for_sentencepiece(special_tokens: dict[str, str]) -> None:
    """`special_tokens`: by role. Raises ValueError for one that SentencePiece's trainer cannot take."""
    for role, text in special_tokens.items():
        if "\0" in text:
            raise ValueError(
                f"the special token {text!r} ({role}) holds a NUL, which SentencePiece takes for its end: name another"
            )
        if BYTE_PIECE.fullmatch(text):
            raise ValueError(
                f"the special token {text!r} ({role}) is what SentencePiece calls its piece for that byte: name another"
            )


MEGATRON_ROLES = {"eod": "</s>", "pad": "<pad>", "bos": "<s>", "unk": "<unk>"}
"""Of Megatron's TikTokenizer, which takes no others."""
