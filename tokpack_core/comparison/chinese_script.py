"""Whether Chinese text is written in simplified or traditional characters (ISO 15924 Hans, Hant).

A character that GB 2312 has and Big5 lacks is written in simplified text only, the other way round in traditional text
only; both standards come with Python. A document is of the script that most of its telling characters are of, and stays
`zh` where there are none.
"""

from __future__ import annotations

import re
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

HAN = range(0x4E00, 0x9FFF + 1)
CHINESE = re.compile("(zh|zho|chi|cmn|yue)([-_].*)?", re.IGNORECASE)
WITH_SCRIPT = re.compile(".*[-_](hans|hant)([-_].*)?", re.IGNORECASE)


@cache
def telling_characters() -> tuple[str, str]:
    """Characters of simplified text only, and of traditional text only."""

    def has(codec: str, character: str) -> bool:
        try:
            character.encode(codec)
        except UnicodeEncodeError:
            return False
        return True

    known = [(character, has("gb2312", character), has("big5", character)) for character in map(chr, HAN)]
    simplified = "".join(character for character, one, other in known if one and not other)
    return simplified, "".join(character for character, one, other in known if other and not one)


def with_chinese_scripts(langs: pa.Array, texts: pa.Array) -> pa.Array:
    """Languages of documents (string, nulls kept), where Chinese ones without a script are given theirs."""
    names = langs.cast(pa.string())
    different = [lang for lang in pc.unique(names).to_pylist() if lang and CHINESE.fullmatch(lang)]
    open_names = [lang for lang in different if not WITH_SCRIPT.fullmatch(lang)]
    if not open_names:
        return names
    simplified, traditional = (count_of(texts, characters) for characters in telling_characters())
    script = pc.if_else(pc.greater(simplified, traditional), "-Hans", "-Hant")
    script = pc.if_else(pc.equal(simplified, traditional), "", script)
    chinese = pc.fill_null(pc.is_in(names, pa.array(open_names, pa.string())), False)
    return pc.if_else(chinese, pc.binary_join_element_wise(names, script, ""), names)


def count_of(texts: pa.Array, characters: str) -> pa.Array:
    return pc.count_substring_regex(texts, pattern=f"[{characters}]")
