"""A pretokenizer that leaves runs of words together, made of one that splits them: for stock files of superword models.

A published pretokenizer is one regex of alternatives. Those that match a letter, repeated, are the first alternative of
the new one; the others follow as they are.
"""

from __future__ import annotations

import regex

from tokpack_core.errors import InputError

WORDS = ("a", "A", "Ab", " a", " Ab", "é", "你", "'s", "_a")


ONE_REGEX = "give a tokenizer whose pretokenizer is one regex, as that of Llama 3, Qwen and GPT-4o is"


def run_splits(splits: tuple[str, ...], letters: str | None, remedy: str = ONE_REGEX) -> tuple[str, ...]:
    """`letters`: the first stage of `splits`, whose matches are words too.

    Raises InputError for other stages, with this `remedy`.
    """
    *stages, last = splits
    if stages != ([] if letters is None else [letters]):
        raise InputError(f"a pretokenizer of several regexes has no stock form with superwords: {remedy}")
    choices = alternatives(last)
    words = [choice for choice in choices if any(regex.fullmatch(choice, word) for word in WORDS)]
    others = [choice for choice in choices if choice not in words]
    return ("|".join([f"(?:{'|'.join([*stages, *words])})+", *others]),)


def alternatives(pattern: str) -> list[str]:
    """The alternatives of a regex, split where no group or set is open."""
    parts, start = [], 0
    depth, in_set, escaped = 0, False, False
    for place, character in enumerate(pattern):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif in_set:
            in_set = character != "]"
        elif character == "[":
            in_set = True
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and not depth:
            parts.append(pattern[start:place])
            start = place + 1
    return [*parts, pattern[start:]]
