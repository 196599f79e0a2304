"""The published regexes that split text before byte-level BPE merges, by name.

gpt2: the original GPT-2 release; cl100k and o200k: the encodings of the same names in tiktoken; qwen2, llama3 and
deepseek_v3: the tokenizer.json files of these models. They are written without possessive quantifiers, which change
speed but not the matches, and which Oniguruma (Hugging Face tokenizers) would read as something else after `{1,3}`.

superbpe is the first stage of SuperBPE, and SUPERBPE_PIECES its second, in which only numbers, runs of punctuation and
all but the last of several spaces stay apart (arXiv 2503.13423).

deepseek_v3 is three regexes: each next one splits only what lies between the matches of those before.

A digit policy takes the place of what a published regex does with runs of digits, and stands before a regex of one's
own as a split of its own. In both forms it is written out, so an exported file splits alike everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokpack_core.bpe.regex_syntax import THREES_FROM_RIGHT

if TYPE_CHECKING:
    from tokpack_core.config import Digits

DIGITS: dict[Digits, str] = {
    "free": r"\p{N}+",
    "single": r"\p{N}",
    "groups_left": r"\p{N}{1,3}",
    "groups_right": THREES_FROM_RIGHT,
}
"""How runs of digits are split, by policy: whole, one by one, or in threes counted from either end."""
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
AT_THE_END = r"\s+(?![\s\S])"
"""White space that ends the text; a `$` would mean the end of a line to Oniguruma."""
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def like_cl100k(digits: str, *more: str) -> str:
    return "|".join(
        [
            CONTRACTIONS,
            r"[^\r\n\p{L}\p{N}]?\p{L}+",
            digits,
            r" ?[^\s\p{L}\p{N}]+[\r\n]*",
            *more,
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        ]
    )


def like_o200k(contractions: str) -> str:
    return "|".join(
        [
            rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{contractions}",
            rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{contractions}",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        ]
    )


PRETOKENIZERS: dict[str, str] = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "cl100k": like_cl100k(r"\p{N}{1,3}", AT_THE_END),
    "llama3": like_cl100k(r"\p{N}{1,3}"),
    "qwen2": like_cl100k(r"\p{N}"),
    "o200k": like_o200k(f"{CONTRACTIONS}?"),
    "superbpe": like_o200k(""),
}
"""Those that are one regex."""

DEEPSEEK_V3 = (
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",
    "|".join(
        [
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+",
            r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+",
            r" ?[\p{P}\p{S}]+[\r\n]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        ]
    ),
)

SPLITS: dict[str, tuple[str, ...]] = {name: (pattern,) for name, pattern in PRETOKENIZERS.items()}
SPLITS |= {"deepseek_v3": DEEPSEEK_V3}

SUPERBPE_PIECES = (r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]{2,}[\r\n/]*| +(?!\S)",)

SPACELESS_SCRIPTS = (
    *((0x0E01, 0x0E3A), (0x0E40, 0x0E4E)),  # Thai
    *((0x0E81, 0x0EBD), (0x0EC0, 0x0ECE), (0x0EDC, 0x0EDF)),  # Lao
    *((0x1000, 0x103F), (0x1050, 0x108F), (0x109A, 0x109D)),  # Myanmar
    *((0xA9E0, 0xA9EF), (0xA9FA, 0xA9FE), (0xAA60, 0xAA76), (0xAA7A, 0xAA7F)),
    *((0x1780, 0x17D3), (0x17D7, 0x17D7), (0x17DC, 0x17DD)),  # Khmer
    *((0x3041, 0x3096), (0x309D, 0x309F), (0x1B001, 0x1B11F), (0x1B132, 0x1B152)),  # Hiragana
    *((0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9D)),  # Katakana
    *((0x1AFF0, 0x1B000), (0x1B120, 0x1B122), (0x1B155, 0x1B167)),
    *((0x3005, 0x3005), (0x303B, 0x303B), (0x3400, 0x4DBF), (0x4E00, 0x9FFF)),  # Han
    *((0xF900, 0xFAD9), (0x20000, 0x323AF)),
)
"""First and last code points of the letters and marks of scripts that put no spaces between words."""
SPACELESS_LETTER = "[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in SPACELESS_SCRIPTS) + "]"
"""As a first stage: each such letter is a pretoken."""
PUBLISHED_DIGITS: dict[str, str] = dict.fromkeys(SPLITS, DIGITS["groups_left"])
PUBLISHED_DIGITS |= {"gpt2": r" ?\p{N}+", "qwen2": DIGITS["single"]}
"""What stands for digits in the published regexes."""


def splits_of(pretokenizer: str, digits: Digits | None = None) -> tuple[str, ...]:
    """The regexes of a name, or of `regex:PATTERN`, under a digit policy; None: as the regex itself has it."""
    # The names alone need none of the models.
    from tokpack_core.config import REGEX

    if pretokenizer.startswith(REGEX):
        own = pretokenizer.removeprefix(REGEX)
        return (own,) if digits in (None, "free") else (DIGITS[digits], own)
    published = PUBLISHED_DIGITS[pretokenizer]
    if digits is None or (digits == "free" and published.endswith(DIGITS["free"])):
        return SPLITS[pretokenizer]
    alternatives = [f"|{pattern}|".replace(f"|{published}|", f"|{DIGITS[digits]}|") for pattern in SPLITS[pretokenizer]]
    return tuple(pattern[1:-1] for pattern in alternatives)
