"""Robustness: does what goes in come out, and does the same text always get the same tokens?

Round trip is judged on the text in the unicode form that the tokenizer's own file gives it. Concatenation: a text is
cut at every character; a cut is stable where the tokens of the two parts in a row are the tokens of the whole, which is
what prompts, streaming and packed documents count on.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tokpack_core.config import UnicodeForm
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.vocabulary.probe_texts import EOD_LOOKALIKES, FORMS, HOSTILE, LAYOUT, PASSAGES, WORDS

MOST_SPECIAL = 1000
CUTS = ("before_space", "after_space", "line_end", "within_word", "elsewhere")


def robustness(tokenizer: Tokenizer) -> dict[str, Any]:
    """The figures as `docs/report.md` lists them under `robustness`."""
    return {
        "hostile": round_trips(tokenizer, HOSTILE),
        "layout": round_trips(tokenizer, LAYOUT),
        "forms": forms(tokenizer),
        "leading_space": leading_space(tokenizer),
        "injection": injection(tokenizer),
        "concatenation": concatenation(tokenizer, PASSAGES.values()),
    }


def normal(text: str, form: UnicodeForm) -> str:
    if form == "none":
        return text
    return unicodedata.normalize("NFC" if form == "nfc" else "NFKC", text)


def round_trips(tokenizer: Tokenizer, texts: Mapping[str, str]) -> dict[str, Any]:
    """How many of named strings come back, and what the others became."""
    expected = [normal(text, tokenizer.unicode) for text in texts.values()]
    restored = tokenizer.decode(tokenizer.encode(pa.array(list(texts.values()), pa.string()))).to_pylist()
    failures = [
        {"name": name, "text": text, "gives": given}
        for name, text, given in zip(texts, expected, restored, strict=True)
        if text != given
    ]
    return {"strings": len(expected), "failures": failures}


def forms(tokenizer: Tokenizer) -> dict[str, Any]:
    """Whether characters written in NFC and in NFD get the same tokens, and how many."""
    composed, decomposed = (ids_of(tokenizer, [unicodedata.normalize(f, t) for t in FORMS]) for f in ("NFC", "NFD"))
    rows = [
        {"text": text, "nfc_tokens": len(one), "nfd_tokens": len(other), "same": one == other}
        for text, one, other in zip(FORMS, composed, decomposed, strict=True)
    ]
    return {"same": sum(row["same"] for row in rows), "pairs": rows}


def leading_space(tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """Tokens of a word with and without a space before it."""
    bare, spaced = ids_of(tokenizer, list(WORDS)), ids_of(tokenizer, [f" {word}" for word in WORDS])
    return [
        {"text": word, "ids": one, "with_space": other, "shared_end": shared_end(one, other)}
        for word, one, other in zip(WORDS, bare, spaced, strict=True)
    ]


def shared_end(one: Sequence[int], other: Sequence[int]) -> int:
    """Tokens that both have at their ends."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def injection(tokenizer: Tokenizer) -> dict[str, Any]:
    """Whether text that spells a special token gets its id: whoever writes the text could then end a document."""
    vocabulary = tokenizer.vocabulary()
    special = vocabulary.filter(vocabulary["special"]).slice(0, MOST_SPECIAL)
    ids = special["id"].to_numpy()
    unknown = tokenizer.special_tokens.get("unk")
    names = [token.decode("utf-8", "replace") for token in special["token"].to_pylist()]
    encoded = ids_of(tokenizer, [f"a {name} b{name}{name}" for name in names])
    matched = [
        {"id": int(token), "text": name}
        for token, name, given in zip(ids, names, encoded, strict=True)
        if token in given and token != unknown
    ]
    probes = ids_of(tokenizer, list(EOD_LOOKALIKES))
    return {
        "special_tokens": len(names),
        "matched": matched,
        "look_alikes": [
            {"text": text, "tokens": len(given)} for text, given in zip(EOD_LOOKALIKES, probes, strict=True)
        ],
    }


def concatenation(tokenizer: Tokenizer, texts: Iterable[str]) -> dict[str, Any]:
    """Share of stable cuts by where a text is cut, null where there is no such place."""
    stable, tried = dict.fromkeys(CUTS, 0), dict.fromkeys(CUTS, 0)
    for text in texts:
        places = range(1, len(text))
        heads, tails = [text[:place] for place in places], [text[place:] for place in places]
        parts = ids_of(tokenizer, [text, *heads, *tails])
        whole, rest = parts[0], parts[1:]
        for place, head, tail in zip(places, rest[: len(heads)], rest[len(heads) :], strict=True):
            kind = kind_of_cut(text[place - 1], text[place])
            tried[kind] += 1
            stable[kind] += head + tail == whole
    total = sum(tried.values())
    return {
        "cuts": total,
        "stable": sum(stable.values()) / total if total else None,
        **{kind: stable[kind] / tried[kind] if tried[kind] else None for kind in CUTS},
    }


def kind_of_cut(before: str, after: str) -> str:
    if before == "\n":
        return "line_end"
    if before.isspace():
        return "after_space"
    if after.isspace():
        return "before_space"
    return "within_word" if before.isalnum() and after.isalnum() else "elsewhere"


def ids_of(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    encoded = tokenizer.encode(pa.array(texts, pa.string()))
    parts: list[NDArray[np.int32]] = np.split(encoded.ids, encoded.offsets[1:-1])
    return [part.tolist() for part in parts[: len(texts)]]
