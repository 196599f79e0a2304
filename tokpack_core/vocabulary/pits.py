"""What goes wrong with tokenizers so often that each is tried: a finding a pit, of no text but the probes here.

Each probe looks at its own characters alone: a tokenizer that puts a space before each text, or makes small letters of
capitals, does not lose what else the probe holds.

The common Hanzi (`tokenizers.common_hanzi`) and `你好` are tried only where Chinese is among the languages.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tokpack_core.tokenizers.common_hanzi import level_one_hanzi
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.vocabulary.visible import visible

MOST_DIGITS = 3
"""Longer runs of digits in one token hide the digits from the model."""
EXAMPLES = 8
CHINESE = re.compile(r"(zh|cmn|yue|zho|chi)([-_].*)?", re.IGNORECASE)
CODE = "def f(x):\n\tif x:\n\t\treturn x  # two\n\n\nclass A:\n    b = 1\n        c = 2\r\n"
PUNCTUATION = "你好，世界？！；：（１）"
MARKS = "，？！；：（）"
COMPATIBILITY = "½ x² ① ﬁ Ａ ｶﾞ ㎏"
"""What NFKC, which many tokenizers apply unasked, makes other characters of."""
RARE_HANZI = "矗龘𪚥"

REMEDIES = {
    "chinese_word": "more Chinese text or a larger vocabulary helps",
    "digits": "set `digits: single` or `groups_right`",
    "indentation": "take byte_bpe or a sentencepiece family, which keep white space",
    "chinese_punctuation": "set normalize.unicode to nfc, for nfkc changes it",
    "compatibility_characters": "set normalize.unicode to nfc",
    "leading_space": "take a family that keeps white space",
    "special_tokens_in_text": "name special tokens that no text contains",
}
"""What helps a tokenizer that is yet to be trained, where the explanation does not say so."""


@dataclass(frozen=True)
class Pit:
    name: str
    passed: bool
    explanation: str


def find_pits(tokenizer: Tokenizer, languages: Collection[str]) -> list[Pit]:
    """Findings in a fixed order, those of Chinese where one of the languages is Chinese."""
    chinese = [common_hanzi, chinese_word] if any(CHINESE.fullmatch(language or "") for language in languages) else []
    text_kept = [rare_characters, digits, indentation, punctuation, compatibility_characters]
    probes = [*chinese, *text_kept, leading_space, special_tokens]
    return [probe(tokenizer) for probe in probes]


def pit_rows(tokenizer: Tokenizer, languages: Collection[str]) -> list[dict[str, Any]]:
    """As a report holds them."""
    return [asdict(pit) for pit in find_pits(tokenizer, languages)]


def ids_of(tokenizer: Tokenizer, text: str) -> list[int]:
    found: list[int] = tokenizer.encode(pa.array([text], pa.large_string())).ids.tolist()
    return found


def tokens_of(tokenizer: Tokenizer, text: str) -> list[bytes]:
    table = tokenizer.vocabulary()
    rows = np.searchsorted(table["id"].to_numpy(), ids_of(tokenizer, text))
    found: list[bytes] = table["token"].take(pa.array(rows)).to_pylist()
    return found


def restored(tokenizer: Tokenizer, text: str) -> str:
    found: str = tokenizer.decode(tokenizer.encode(pa.array([text], pa.large_string())))[0].as_py()
    return found


def shown(tokens: list[bytes]) -> str:
    return " | ".join(visible(token) for token in tokens)


def common_hanzi(tokenizer: Tokenizer) -> Pit:
    hanzi = level_one_hanzi()
    known = set(tokenizer.vocabulary()["token"].to_pylist())
    missing = [character for character in hanzi if character.encode() not in known]
    explanation = f"{len(hanzi) - len(missing):,} of the {len(hanzi):,} common Hanzi (GB 2312 level 1) have an entry"
    if missing:
        remedy = "more Chinese text, a larger vocabulary or `required_characters` helps"
        explanation += f"; {''.join(missing[:EXAMPLES])} … have none: {remedy}"
    return Pit("common_hanzi", not missing, explanation)


def chinese_word(tokenizer: Tokenizer) -> Pit:
    tokens = tokens_of(tokenizer, "你好")
    known = tokenizer.special_tokens.get("unk") not in ids_of(tokenizer, "你好")
    return Pit("chinese_word", known and len(tokens) <= 2 and b" " not in tokens, f"你好 is {shown(tokens)}")


def rare_characters(tokenizer: Tokenizer) -> Pit:
    lost = [character for character in RARE_HANZI if character not in restored(tokenizer, character)]
    explanation = f"{'、'.join(lost)} do not come back: give the tokenizer bytes to fall back to"
    return Pit("rare_characters", not lost, explanation if lost else f"{RARE_HANZI} come back from their ids")


def digits(tokenizer: Tokenizer) -> Pit:
    tokens = [token.decode("utf-8", "replace") for token in tokenizer.vocabulary()["token"].to_pylist()]
    long = [token for token in tokens if re.search(rf"\d{{{MOST_DIGITS + 1}}}", token)]
    if not long:
        return Pit("digits", True, f"no entry has more than {MOST_DIGITS} digits in a row")
    examples = ", ".join(repr(token) for token in long[:EXAMPLES])
    return Pit("digits", False, f"{len(long):,} entries have more than {MOST_DIGITS} digits in a row ({examples})")


def indentation(tokenizer: Tokenizer) -> Pit:
    white, found = (re.findall(r"\s+", text) for text in (CODE, restored(tokenizer, CODE)))
    if found == [" ", *white]:
        return Pit("indentation", False, "code comes back with a space before it, which indents its first line")
    kept = found == white
    return Pit("indentation", kept, f"indentation and line ends of code {'come back' if kept else 'are lost'}")


def punctuation(tokenizer: Tokenizer) -> Pit:
    found = restored(tokenizer, PUNCTUATION)
    kept = [mark for mark in found if mark in MARKS] == [mark for mark in PUNCTUATION if mark in MARKS]
    return Pit("chinese_punctuation", kept, f"{PUNCTUATION} comes back{'' if kept else f' as {found}'}")


def compatibility_characters(tokenizer: Tokenizer) -> Pit:
    found = restored(tokenizer, COMPATIBILITY)
    kept = found.split() == COMPATIBILITY.split()
    explanation = f"{COMPATIBILITY} comes back"
    if not kept:
        explanation += f" as {found}" + (": NFKC does that" if tokenizer.unicode == "nfkc" else "")
    return Pit("compatibility_characters", kept, explanation)


def leading_space(tokenizer: Tokenizer) -> Pit:
    bare, spaced = ids_of(tokenizer, "Hello"), ids_of(tokenizer, " Hello")
    found = f"Hello is {shown(tokens_of(tokenizer, 'Hello'))}, after a space {shown(tokens_of(tokenizer, ' Hello'))}"
    if bare == spaced:
        return Pit("leading_space", False, f"{found}: a prompt cannot say which of the two it means")
    return Pit("leading_space", True, f"{found}: a prompt that ends in a space changes the word after it")


def special_tokens(tokenizer: Tokenizer) -> Pit:
    table = tokenizer.vocabulary()
    strings = dict(zip(table["id"].to_pylist(), table["token"].to_pylist(), strict=True))
    roles = {role: token for role, token in tokenizer.special_tokens.items() if role != "unk"}
    taken = [role for role, token in roles.items() if token in ids_of(tokenizer, f"a{strings[token].decode()} b")]
    if taken:
        return Pit("special_tokens_in_text", False, f"text that looks like {', '.join(taken)} gets its id")
    return Pit("special_tokens_in_text", True, "text that looks like a special token is encoded as text")
