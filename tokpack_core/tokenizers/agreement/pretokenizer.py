"""A regex of one's own must split alike in training (`regex`) and in the exported file (Oniguruma).

The two engines read some syntax differently: possessive quantifiers behind `{1,3}`, `$` and `^` (ends of lines to
Oniguruma), some classes. So the pieces of both are compared, on strings that are hard for pretokenizers and on the
first of the training text; one difference, and the regex is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from tokenizers import Regex, pre_tokenizers

from tokpack_core.bpe.regex_splitting import compiled, pretokens
from tokpack_core.config import REGEX
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts
from tokpack_core.tokenizers.encoding_errors import lists_or_error

COMPARED = 100_000
"""Characters of training text."""


def agreeing(texts: Iterator[pa.Array], pretokenizer: str, splits: tuple[str, ...]) -> Iterator[pa.Array]:
    """`texts` themselves, the first of them compared if it is a regex of one's own.

    Raises InputError at the first difference.
    """
    if not pretokenizer.startswith(REGEX):
        yield from texts
        return
    engine = exported(splits)
    left = COMPARED
    compare(engine, splits, hard_texts([]))
    for array in texts:
        for text in array if left > 0 else ():
            compare(engine, splits, [text.as_py()[:left]])
            left -= len(text.as_py())
            if left <= 0:
                break
        yield array


def exported(splits: tuple[str, ...]) -> pre_tokenizers.Sequence:
    try:
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in splits])
    except Exception as error:  # the library raises plain Exception for a pattern that it cannot read
        raise InputError(
            f"the pretokenizer `{splits[-1]}` cannot be exported, for Hugging Face's engine (Oniguruma) does not read "
            f"it: {error}"
        ) from None


def compare(engine: pre_tokenizers.Sequence, splits: tuple[str, ...], texts: list[str]) -> None:
    patterns = compiled(splits)

    def pieces_of_each(some: list[str]) -> list[list[str]]:
        return [[piece for piece, _ in engine.pre_tokenize_str(text)] for text in some]

    for text in texts:
        # Oniguruma gives up on a text that takes it too long, so it comes first.
        (theirs,) = lists_or_error(pieces_of_each, [text])
        ours = pretokens(text, patterns)
        if ours != theirs:
            one, other = next(pair for pair in zip([*ours, ""], [*theirs, ""], strict=False) if pair[0] != pair[1])
            raise InputError(
                f"the pretokenizer `{splits[-1]}` means {one[:40]!r} to Python's regex and {other[:40]!r} to Hugging "
                "Face's engine (Oniguruma): write it without what they read differently, such as \\w, "
                "possessive quantifiers, ^ and $"
            )
