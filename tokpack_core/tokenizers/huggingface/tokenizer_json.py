"""A tokenizer.json: its content, and the parts of it that do not depend on the family."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from tokenizers import AddedToken, normalizers
from tokenizers import Tokenizer as Engine

from tokpack_core.config import UnicodeForm

MODEL = b',"model":'


def description_of(engine: Engine) -> dict[str, Any]:
    """The content, read from bytes: a string with letters of many scripts takes four bytes a character."""
    content: dict[str, Any] = orjson.loads(engine.__getstate__())
    return content


def description_and_model(engine: Engine) -> tuple[dict[str, Any], bytes]:
    """The content without the model, and the model as it is written.

    Its merges, hundreds of thousands of small lists, would take ten times the memory.
    """
    file: bytes = engine.__getstate__()
    model = file.index(MODEL)  # the last key; within a string its quotes would be escaped
    content: dict[str, Any] = orjson.loads(file[:model] + b"}")
    return content, file[model + len(MODEL) : -1]


def steps_before_model(engine: Engine) -> dict[str, Any]:
    """Of the content what is done to text before the model: normalizer, pre_tokenizer and added_tokens.

    The model, nearly all of the content, is not written out.
    """
    steps = {"normalizer": engine.normalizer, "pre_tokenizer": engine.pre_tokenizer}
    content = {name: None if step is None else orjson.loads(step.__getstate__()) for name, step in steps.items()}
    added = engine.get_added_tokens_decoder().items()
    return content | {"added_tokens": [as_listed(number, token) for number, token in added]}


def as_listed(number: int, token: AddedToken) -> dict[str, Any]:
    """An added token as a tokenizer.json lists it."""
    listed = {"id": number, "content": token.content, "special": token.special, "normalized": token.normalized}
    return listed | {"lstrip": token.lstrip, "rstrip": token.rstrip, "single_word": token.single_word}


def with_model(description: dict[str, Any], model: bytes) -> bytes:
    """The file of both, as `description_and_model` parts them."""
    return b"".join([orjson.dumps(description)[:-1], MODEL, model, b"}"])


def normalizer_of(unicode: UnicodeForm) -> normalizers.Normalizer | None:
    if unicode == "none":
        return None
    return normalizers.NFC() if unicode == "nfc" else normalizers.NFKC()


def as_special(strings: Iterable[str]) -> list[AddedToken]:
    """Special tokens as the library takes them: matched as they stand, never normalized."""
    return [AddedToken(text, special=True, normalized=False) for text in strings]
