"""The published regexes that split text before byte-level BPE merges, by name.

gpt2: the original GPT-2 release; cl100k and o200k: the encodings of the same names in tiktoken; qwen2, llama3 and
deepseek_v3: the tokenizer.json files of these models. They are written without possessive quantifiers, which change
speed but not the matches, and which Oniguruma (Hugging Face tokenizers) would read as something else after `{1,3}`.

deepseek_v3 is three regexes: each next one splits only what lies between the matches of those before.

A digit policy takes the place of what a published regex does with runs of digits, and stands before a regex of one's
own as a split of its own. In both forms it is written out, so an exported file splits alike everywhere.
"""

from __future__ import annotations

from tokpack_core.bpe.regex_syntax import THREES_FROM_RIGHT
from tokpack_core.config import REGEX, Digits

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


PRETOKENIZERS: dict[str, str] = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "cl100k": like_cl100k(r"\p{N}{1,3}", AT_THE_END),
    "llama3": like_cl100k(r"\p{N}{1,3}"),
    "qwen2": like_cl100k(r"\p{N}"),
    "o200k": "|".join(
        [
            rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTIONS}?",
            rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTIONS}?",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        ]
    ),
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

PUBLISHED_DIGITS: dict[str, str] = dict.fromkeys(SPLITS, DIGITS["groups_left"])
PUBLISHED_DIGITS |= {"gpt2": r" ?\p{N}+", "qwen2": DIGITS["single"]}
"""What stands for digits in the published regexes."""


def splits_of(pretokenizer: str, digits: Digits | None = None) -> tuple[str, ...]:
    """The regexes of a name, or of `regex:PATTERN`, under a digit policy; None: as the regex itself has it."""
    if pretokenizer.startswith(REGEX):
        own = pretokenizer.removeprefix(REGEX)
        return (own,) if digits in (None, "free") else (DIGITS[digits], own)
    published = PUBLISHED_DIGITS[pretokenizer]
    if digits is None or (digits == "free" and published.endswith(DIGITS["free"])):
        return SPLITS[pretokenizer]
    alternatives = [f"|{pattern}|".replace(f"|{published}|", f"|{DIGITS[digits]}|") for pattern in SPLITS[pretokenizer]]
    return tuple(pattern[1:-1] for pattern in alternatives)
