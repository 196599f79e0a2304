"""The default normalization of a little text in plain Python, where loading the kernels would take longer.

Python's Unicode is older than that of `normalization`; forms of characters that both know are the same for good (the
Unicode Standard's stability policy), so text with any other character is left to the kernels. So are long runs of
marks, which Python puts in order by insertion.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

import pyarrow as pa

from tokpack_core.config import UnicodeForm
from tokpack_core.corpus.canonical_order import LONG

FORMS: dict[str, Literal["NFC", "NFKC"]] = {"nfc": "NFC", "nfkc": "NFKC"}
SMALL = 2**20
"""Bytes of text."""


def normalized_in_python(texts: pa.Array, form: UnicodeForm) -> pa.Array | None:
    """As `normalize` with a unicode form and nothing else asked for; None where that is not for Python.

    texts: string array without nulls.
    """
    strings: list[str] = texts.to_pylist()
    characters = set().union(*strings)
    if any(unicodedata.category(character) == "Cn" for character in characters):
        return None
    marks = "".join(character for character in characters if unicodedata.combining(character))
    if marks and any(re.search(f"[{re.escape(marks)}]{{{LONG}}}", string) for string in strings):
        return None
    stripped = [string.lstrip("\ufeff") for string in strings]
    formed = stripped if form == "none" else [unicodedata.normalize(FORMS[form], string) for string in stripped]
    return texts if formed == strings else pa.array(formed, texts.type)
