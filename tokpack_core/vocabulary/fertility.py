"""How much text a token carries, by language.

Bytes per token is comparable between tokenizers on the same text, characters per token between languages of one
script. Tokens per word (the "fertility" of the literature) is given for languages that write spaces between words
only; for the others it is null, and tokens per character stands in its place.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.vocabulary.counts import MEASURES

UNDETERMINED = "und"
"""ISO 639 code under which documents without a language are shown."""

WITHOUT_SPACES = re.compile(
    "(zh|zho|chi|cmn|yue|wuu|gan|hak|nan|lzh|ja|jpn|th|tha|lo|lao|km|khm|my|mya|bur|bo|bod|tib|dz|dzo)([-_]|$)"
)


def writes_spaces(lang: str) -> bool:
    """Whether words of the language can be counted by whitespace; `lang` is a code such as zh, zh-Hant or zho_Hans."""
    return WITHOUT_SPACES.match(lang.lower()) is None


def fertility(languages: pa.Table) -> pa.Table:
    """Ratios of every language of `TokenCounts.languages`.

    Returns lang string and the measures, then float64 columns bytes_per_token, characters_per_token,
    tokens_per_character, tokens_per_word, null where there is nothing to divide by. Most text (bytes) first.
    """
    shown = languages.set_column(0, "lang", pc.fill_null(languages["lang"], UNDETERMINED))
    grouped = shown.group_by("lang", use_threads=False).aggregate([(measure, "sum") for measure in MEASURES])
    table = pa.table({"lang": grouped["lang"], **{measure: grouped[f"{measure}_sum"] for measure in MEASURES}})
    table = table.sort_by([("bytes", "descending"), ("lang", "ascending")])
    spaced = pa.array([writes_spaces(lang) for lang in table["lang"].to_pylist()], pa.bool_())
    words = pc.if_else(spaced, table["words"], pa.scalar(None, pa.int64()))
    ratios = {
        "bytes_per_token": ratio(table["bytes"], table["tokens"]),
        "characters_per_token": ratio(table["characters"], table["tokens"]),
        "tokens_per_character": ratio(table["tokens"], table["characters"]),
        "tokens_per_word": ratio(table["tokens"], words),
    }
    for name, values in ratios.items():
        table = table.append_column(name, values)
    return table


def overall_fertility(languages: pa.Table) -> dict[str, int | float | None]:
    """The measures and ratios of all languages together; tokens per word over those that write spaces."""
    table = fertility(languages)
    totals = {measure: pc.sum(table[measure]).as_py() or 0 for measure in MEASURES}
    spaced = table.filter(pa.array([writes_spaces(lang) for lang in table["lang"].to_pylist()], pa.bool_()))
    return {
        **totals,
        "bytes_per_token": quotient(totals["bytes"], totals["tokens"]),
        "characters_per_token": quotient(totals["characters"], totals["tokens"]),
        "tokens_per_character": quotient(totals["tokens"], totals["characters"]),
        "tokens_per_word": quotient(pc.sum(spaced["tokens"]).as_py() or 0, pc.sum(spaced["words"]).as_py() or 0),
    }


def ratio(numerators: pa.ChunkedArray, denominators: pa.ChunkedArray) -> pa.ChunkedArray:
    """float64 quotients, null where the denominator is 0 or null."""
    divisors = pc.if_else(pc.equal(denominators, 0), pa.scalar(None, pa.int64()), denominators)
    return pc.divide(numerators.cast(pa.float64()), divisors.cast(pa.float64()))


def quotient(numerator: int, denominator: int) -> float | None:
    return numerator / denominator if denominator else None
