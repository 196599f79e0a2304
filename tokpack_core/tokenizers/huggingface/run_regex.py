"""A pretokenizer that leaves runs of words together, made of one that splits them: for stock files of superword models.

A published pretokenizer is one regex of alternatives. Those that match a letter, repeated, are the first alternative of
the new one; the others follow as they are.
"""

from __future__ import annotations

from typing import Any

import regex

from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byte_bpe.pretokenizer_steps import steps_of

WORDS = ("a", "A", "Ab", " a", " Ab", "é", "你", "'s", "_a")


ONE_REGEX = "give a tokenizer whose pretokenizer is one regex, as that of Llama 3, Qwen and GPT-4o is"
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def run_splits(splits: tuple[str, ...], letters: str | None, remedy: str = ONE_REGEX) -> tuple[str, ...]:
    """`letters`: the first stage of `splits`, whose matches are words too.

    Raises InputError for other stages, with this `remedy`.
    """
    *stages, last = splits
    if stages != ([] if letters is None else [letters]):
        raise InputError(f"a pretokenizer of several regexes has no stock form with superwords: {remedy}")
    return (run_regex(last, stages),)


def run_regex(pattern: str, letters: list[str]) -> str:
    """`letters`: regexes of what is a word besides. Raises InputError where there are no words."""
    words = of_words(pattern)
    others = [choice for choice in alternatives(pattern) if choice not in words]
    return "|".join([f"(?:{'|'.join([*letters, *words])})+", *others])


def of_words(pattern: str) -> list[str]:
    """The alternatives whose matches make up runs. Raises InputError where there are none."""
    words = [choice for choice in alternatives(pattern) if any(regex.fullmatch(choice, word) for word in WORDS)]
    if not words:
        raise InputError(f"the regex `{pattern}` has no alternative that matches a word: there is nothing to join")
    return words


def run_pretokenizer(pretokenizer: dict[str, Any], splits: tuple[str, ...]) -> dict[str, Any]:
    """A file's pretokenizer of `splits` and ByteLevel, with the last of its regexes made one of runs of words.

    Matches of those before stay apart: two words between which none of them stands are in one stretch of text.
    """
    *steps, byte_level = steps_of(pretokenizer)
    before = steps if byte_level["use_regex"] else steps[:-1]
    runs = {"type": "Split", "pattern": {"Regex": run_regex(splits[-1], [])}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [*before, runs, BYTE_LEVEL]}


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
