"""The published regexes that split text before byte-level BPE merges, by name.

gpt2: the original GPT-2 release; cl100k and o200k: the encodings of the same names in tiktoken; qwen2, llama3 and
deepseek_v3: the tokenizer.json files of these models. They are written without possessive quantifiers, which change
speed but not the matches, and which Oniguruma (Hugging Face tokenizers) would read as something else after `{1,3}`.

deepseek_v3 is three regexes: each next one splits only what lies between the matches of those before.
"""

from __future__ import annotations

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
