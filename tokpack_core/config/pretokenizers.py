"""Regexes that split text before it is merged, by name or as a pattern."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated

from pydantic import AfterValidator

from tokpack_core.config.values import NO_TEXT, is_text

PRETOKENIZERS = ("gpt2", "cl100k", "o200k", "superbpe", "qwen2", "llama3", "deepseek_v3")
REGEX = "regex:"
"""Begins a pretokenizer that is a regular expression of one's own."""


def check_pretokenizer(pretokenizer: str) -> str:
    if not pretokenizer.startswith(REGEX):
        if pretokenizer in PRETOKENIZERS:
            return pretokenizer
        near = get_close_matches(pretokenizer, PRETOKENIZERS, 1)
        raise ValueError(
            f"there is no pretokenizer `{pretokenizer}`{f'; did you mean `{near[0]}`?' if near else '.'} "
            f"Known are {', '.join(PRETOKENIZERS)} and {REGEX}PATTERN"
        )
    import regex

    if not is_text(pretokenizer):
        raise ValueError(f"the pretokenizer {NO_TEXT}")
    try:
        compiled = regex.compile(pretokenizer.removeprefix(REGEX))
    except regex.error as error:
        raise ValueError(f"the pretokenizer `{pretokenizer}` is no regular expression ({error}): correct it") from None
    try:
        empty = compiled.fullmatch("")
    except MemoryError:
        raise ValueError(f"the pretokenizer `{pretokenizer}` calls itself without end: correct it") from None
    if empty:
        raise ValueError(
            f"the pretokenizer `{pretokenizer}` matches the empty string: let it match a character or more"
        )
    return pretokenizer


def splits_digits(pretokenizer: str) -> bool:
    """Whether a regex of one's own cuts runs of digits."""
    import regex

    run = "1234567"
    pieces = [match.group() for match in regex.finditer(pretokenizer.removeprefix(REGEX), run) if match.group()]
    return pieces not in ([], [run])


Pretokenizer = Annotated[str, AfterValidator(check_pretokenizer)]
