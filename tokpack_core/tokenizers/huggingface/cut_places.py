"""Where a long text may be cut so that Hugging Face's library gives its parts the ids of the whole.

The library takes 50 to 70 times a text. A place before white space, behind another character, is one where the ids of
neither side depend on the other if

- each step of the normalizer does the same on both sides as on the whole: it looks at single characters, or at what
  unicode forms and grapheme clusters join, which never goes on with a space behind a character of ASCII; or it replaces
  a string that does not go across the place;
- a step of the pretokenizer always splits there, and the steps before it look at single characters: whatever comes
  after that step is given each piece by itself, and so is the model;
- no added token that matches text holds white space or takes it with itself.

What is put before a text (by Metaspace or ByteLevel) is not put before a space.
"""

from __future__ import annotations

import re
from typing import Any

from tokenizers import Tokenizer as Engine

BY_CHARACTER = ("NFC", "NFKC", "NFD", "NFKD", "BertNormalizer", "Lowercase", "StripAccents", "Nmt", "Precompiled")
SPACES = frozenset(" \n")
META_SPACE = "\u2581"
RUNS = frozenset({r"\s+", r"\s", r" +", r" ", r" {2,}"})
"""Regexes of white space that begin at a place, if they match across it at all."""
PLAIN = re.compile(f"[!-~{META_SPACE}]+")
BEFORE = "".join(map(chr, range(0x21, 0x7F)))


def cut_place(engine: Engine, description: dict[str, Any]) -> re.Pattern[str] | None:
    """An expression for such places (as `long_documents` takes it), or None if the file is not known to have any.

    `description`: of the engine's tokenizer.json what stands before the model.
    """
    pretokenizer, normalizer = description["pre_tokenizer"], description["normalizer"]
    splitting = None if pretokenizer is None else splits_before(steps_of(pretokenizer, "pretokenizers"))
    steps = [] if normalizer is None else steps_of(normalizer, "normalizers")
    matching = [token for token in description["added_tokens"] if not token["special"]]
    spaced = any(re.search(r"\s", token["content"]) or token["lstrip"] or token["rstrip"] for token in matching)
    if splitting is None or spaced or not all(stays_on_its_side(step, splitting) for step in steps):
        return None
    normalized = engine.normalizer.normalize_str if steps else str
    spaces = [space for space in sorted(SPACES) if normalized(f"a{space}b") in {f"a{as_}b" for as_ in splitting}]
    if not steps:
        behind = r"\S"
    else:
        kept = [character for character in BEFORE if re.fullmatch(r"\S+", normalized(character))]
        behind = f"[{re.escape(''.join(kept))}]"
    return re.compile(f"(?<={behind})(?=[{''.join(spaces)}])") if spaces else None


def steps_of(step: dict[str, Any], inner: str) -> list[dict[str, Any]]:
    return [part for own in step[inner] for part in steps_of(own, inner)] if step["type"] == "Sequence" else [step]


def splits_before(steps: list[dict[str, Any]]) -> frozenset[str] | None:
    """The characters before which the steps always split; None if none of them is known to."""
    for step in steps:
        kind = step["type"]
        if kind in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer"):
            return SPACES
        if kind == "Metaspace" and step["split"]:
            return frozenset({" ", step["replacement"]})
        if kind == "CharDelimiterSplit":
            return frozenset(step["delimiter"])
        if kind == "ByteLevel" and step["use_regex"]:
            return frozenset(" ")
        if kind == "Split" and not step["invert"]:
            return of_split(step)
        if kind != "Digits" and not (kind == "Punctuation" and step["behavior"] in ("Isolated", "Removed")):
            return None
    return None


def of_split(step: dict[str, Any]) -> frozenset[str] | None:
    text, regex = step["pattern"].get("String"), step["pattern"].get("Regex")
    if step["behavior"] == "MergedWithPrevious":
        return None
    if text in SPACES:
        return frozenset(text)
    return {r"\s+": SPACES, r"\s": SPACES, r" +": frozenset(" "), r" ": frozenset(" ")}.get(regex)


def stays_on_its_side(step: dict[str, Any], splitting: frozenset[str]) -> bool:
    """Whether a step of the normalizer does on each side of a place what it does on the whole."""
    if step["type"] == "Strip":
        return not step["strip_left"]
    if step["type"] == "Replace":
        text, regex = step["pattern"].get("String"), step["pattern"].get("Regex")
        if regex in RUNS or text in SPACES:
            return step["content"] in splitting
        return text is not None and not re.search(r"\s", text) and bool(PLAIN.fullmatch(step["content"]))
    return step["type"] in BY_CHARACTER
