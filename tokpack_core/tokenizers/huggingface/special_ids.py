"""Ids of special tokens in a tokenizer.json, which ordinary text must not give."""

from __future__ import annotations

from tokenizers import AddedToken
from tokenizers import Tokenizer as Engine

from tokpack_core.errors import InputError

AROUND = ("lstrip", "rstrip", "single_word")


def special_id(engine: Engine, role: str, text: str, source: str) -> int:
    """The id of a special token, which is appended if it is new and marked as special so that text never matches it.

    What a file says of the white space around it stays.
    """
    # A copy of a vocabulary of 262,144 entries takes 0.4 s.
    taken = set() if engine.token_to_id(text) is not None else set(engine.get_vocab().values())
    known = [token for token in engine.get_added_tokens_decoder().values() if token.content == text]
    if not any(token.special for token in known):
        around = {flag: getattr(known[0], flag) for flag in AROUND} if known else {}
        engine.add_special_tokens([AddedToken(text, special=True, normalized=False, **around)])
    found = engine.token_to_id(text)
    assert found is not None
    if found in taken:
        raise InputError(
            f"{source}: its ids have holes, so that {text!r} ({role}) would share id {found}: name a token that it has"
        )
    in_context = f"{text}{text} {text}\n{text}x{text}"
    if role != "unk" and found in engine.encode(in_context, add_special_tokens=False).ids:
        raise InputError(
            f"{source}: ordinary text gives the id of special token {text!r} ({role}): name one that text does not "
            'hold, such as "<|endoftext|>"; what the vocabulary lacks is appended'
        )
    return found


def may_have_role(engine: Engine, role: str, text: str, source: str) -> bool:
    """Whether a special token can be what its publisher calls it.

    Some conversions of SentencePiece models have merges that lead to the BOS, which nobody needs unlike an EOD.
    """
    try:
        special_id(engine, role, text, source)
    except InputError:
        if role == "eod":
            raise
        return False
    return True
