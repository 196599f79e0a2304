"""Strings on which pretokenizers and encoders disagree if they ever do."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.unicode_categories import category_lines

Int64s = npt.NDArray[np.int64]

CONTRACTED = ("s", "S", "t", "re", "RE", "rE", "ve", "m", "ll", "LL", "lL", "d", "D", "ſ", "r", "l", "v", "x", "é")

TEXTS = 2048
MOST_RUNS = 60
RUN_LENGTHS = (1, 1, 2, 3, 9)
GROUPS = (
    "abcdefghijklmnopqrstuvwxyz",
    "ABCDEFGHIJ",
    "0123456789",
    " ",
    "\n",
    "\t \r\n",
    ".,;:!?'\"()[]{}<>/\\|",
    "@#$%^&*-_=+`~",
    "\u00e9\u00fc\u00df\u00f1\u0131\u0130",
    "\u4e2d\u6587\u5b57\u3002\uff0c",
    "\u3042\u30ab\u30fc",
    "\uac00\ub098\u1100\u1161",
    "\u0915\u094d\u0937\u093f",
    "\u0e01\u0e33\u0e48",
    "\u0627\u0644\u064e\u0660",
    "\u0301\u0308\u200d\ufe0f",
    "\U0001f600\U0001f468\U0001f3fd",
    "\u2160\u00bd\u00b2\u2460",
    "\u3042\u30ab\u30fc",
    "\u2028\u0085\u00a0\u3000\u200b",
)
"""Of which a run of characters is drawn: all of one."""


def hard_texts(added: list[str]) -> list[str]:
    """`added`: strings of added tokens, which text may look like."""
    firsts = [chr(first) for first, _, category, _ in category_lines() if category != "Cs"]
    lasts = [chr(last) for _, last, category, _ in category_lines() if category != "Cs"]
    runs = [
        unit * 3000 for unit in ("a", "A", " ", "\n", "\t", "1", "!", "你", "é", "\u0301", "\r\n", " \n", "ab ", "'s")
    ]
    contractions = [f"{a}'{b}{c}" for a in ("x", " ", "1", "") for b in CONTRACTED for c in ("", "x", " ", "\n")]
    return [
        "",
        *runs,
        *contractions,
        *added,
        *(f"x{content} {content}{content}\n" for content in added),
        "".join(firsts),
        " ".join(firsts),
        "a".join(lasts),
        "\n".join(lasts),
        "1'".join(firsts),
        *(
            " " * left + unit + "\n" * right + "x"
            for left in range(4)
            for right in range(4)
            for unit in ("a", "\t", ".", "/")
        ),
        "1234567 12 ١٢٣٤ ½ ⅷⅷⅷⅷ 1,234.5",
        " ".join("1234567890"[:length] + "١٢٣"[: length % 4] for length in range(1, 11)),
        "\n".join(("aa", "AA", "11", "..", "  ", "你你", "aa aa")) * 2,
        "def f(x):\n\treturn  x + 1  \n\n\n    # ok\r\n\u2028\u0085\u3000x",
        "e\u0301 \u1100\u1161\u11a8 \u212b ﬁ ① Ａ a\u0323\u0307 \u0307\u0323",
        "HELLOWorld helloWORLD ǅungla İstanbul ſtraße ŉ",
        "\ufeffmark\ufeff \u200b\u200d🏳️‍🌈 \x00\x1f\x7f\ufffd\U0010ffff",
    ]


def random_texts() -> list[str]:
    """The same texts always: letters, digits, white space and marks of many scripts, mixed in runs of many lengths."""
    generator = random.Random(0)
    runs = 1 + drawn(generator, TEXTS, MOST_RUNS)
    ends = np.cumsum(runs)
    groups = drawn(generator, int(ends[-1]), len(GROUPS))
    lengths = np.array(RUN_LENGTHS)[drawn(generator, groups.size, len(RUN_LENGTHS))]
    sizes = np.array([len(group) for group in GROUPS])
    of_group = np.repeat(groups, lengths)
    places = (np.cumsum(sizes) - sizes)[of_group] + drawn(generator, of_group.size, sizes[of_group])
    characters = np.frombuffer("".join(GROUPS).encode("utf-32-le"), "<u4")[places]
    whole = characters.tobytes().decode("utf-32-le")
    borders = [0, *np.cumsum(lengths)[ends - 1].tolist()]
    return [whole[start:stop] for start, stop in pairwise(borders)]


def drawn(generator: random.Random, count: int, below: int | Int64s) -> Int64s:
    """Random numbers from 0 to below `below`, which is one for all of them or one each."""
    numbers = np.frombuffer(generator.randbytes(4 * count), "<u4").astype(np.int64)
    return numbers * below >> 32
