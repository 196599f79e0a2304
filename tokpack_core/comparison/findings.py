"""What a comparison says, in sentences."""

from __future__ import annotations

from typing import Any

from tokpack_core.comparison.comparison import ALL, CERTAIN, UNKNOWN, Comparison
from tokpack_core.comparison.model_difference import CERTAIN_BITS, LOSES_TEXT
from tokpack_core.vocabulary.number_format import percent

MAIN_LANGUAGES = ("zh", "zh-Hans", "zh-Hant", "en", "code")


def findings(comparison: Comparison) -> list[str]:
    return [*differences(comparison), *causes(comparison), *models(comparison), *sizes(comparison)]


def differences(comparison: Comparison) -> list[str]:
    """Which is shorter, on all text, and in Chinese, English and code."""
    rows = [row for row in comparison["differences"] if row["lang"] == ALL]
    return [f"{whole_text(row, comparison)} {main_languages(comparison, row['tokenizer'])}".rstrip() for row in rows]


def causes(comparison: Comparison) -> list[str]:
    """Whether that is due to the vocabulary or to the encoder."""
    encoders = comparison["controls"]["same_vocabulary_two_encoders"]
    modular = [sub_tokenizers(row) for row in encoders if row["whole_vocabulary"] is not None]
    rows = comparison["controls"]["two_vocabularies_one_encoder"]
    return modular + [control(row, comparison["baseline"]) for row in rows]


def sub_tokenizers(row: dict[str, Any]) -> str:
    """What it costs a modular tokenizer that each document has ids of its own language only."""
    name, excess = row["tokenizer"], row["sub_tokenizer_excess"]
    if not excess:
        return f"{name} has no sub-tokenizer for the language of a document: counted by its whole vocabulary."
    return (
        f"{name} is counted by the sub-tokenizer of each document's language, which gives {change(1 + excess)} tokens "
        "than its whole vocabulary."
    )


def models(comparison: Comparison) -> list[str]:
    """Which text a small model tells with fewer bits."""
    rows = [row for row in comparison.get("small_model", []) if row["verdict"] != "baseline"]
    return [model(row, comparison["baseline"]) for row in rows]


def model(row: dict[str, Any], baseline: str) -> str:
    name = row["tokenizer"]
    if row["verdict"] == LOSES_TEXT:
        return (
            f"A small model of {name} and one of {baseline} do not compare: one of them does not spell all of the text."
        )
    if row["verdict"] not in CERTAIN_BITS:
        why = "is not significant" if row["low"] is not None else f"stands on {row['verdict']}"
        return (
            f"Bits per byte of a small model by {name} and {baseline}: the difference {why} (ratio {row['ratio']:.4f})."
        )
    return f"A small model needs {change(row['ratio'])} bits a byte with {name} than with {baseline} ({interval(row)})."


def sizes(comparison: Comparison) -> list[str]:
    if "sweep" not in comparison:
        return []
    rows = comparison["sweep"]["sizes"]
    return [*map(size, rows), *(use_by_size(family, rows) for family in rows[0]["vocabulary_utilization"] if rows[1:])]


def names(comparison: Comparison) -> list[str]:
    return [row["tokenizer"] for row in comparison["tokenizers"] if row["tokenizer"] != comparison["baseline"]]


def whole_text(row: dict[str, Any], comparison: Comparison) -> str:
    name, baseline = row["tokenizer"], comparison["baseline"]
    if row["verdict"] == UNKNOWN:
        return (
            f"{name} and {baseline} do not compare: {percent(row['unknown_share'])} of the tokens of one of them are "
            f"unknown ones, for text that it has lost ({interval(row)})."
        )
    if row["verdict"] not in CERTAIN:
        corrected = f"is not significant, corrected for {comparison['questions']} questions"
        why = corrected if row["verdict"] == "not significant" else f"stands on {row['verdict']}"
        return f"{name} and {baseline}: the difference in tokens {why} ({interval(row)})."
    return f"{name} needs {change(row['ratio'])} tokens than {baseline} ({interval(row)})."


def main_languages(comparison: Comparison, name: str) -> str:
    """Chinese, English and code, as far as the text has them."""
    rows = {row["lang"]: row for row in comparison["differences"] if row["tokenizer"] == name}
    parts = [
        f"{lang} {signed(rows[lang]['ratio'] - 1)}"
        + ("" if rows[lang]["verdict"] in CERTAIN else f" ({rows[lang]['verdict']})")
        for lang in MAIN_LANGUAGES
        if lang in rows and rows[lang]["ratio"] is not None
    ]
    return f"By language: {', '.join(parts)}." if parts else ""


def control(row: dict[str, Any], baseline: str) -> str:
    size = "" if row["same_size"] else " (the vocabularies differ in size)"
    if row["by_vocabulary"] is None:
        return (
            f"{row['tokenizer']} against {baseline}: encoder and vocabulary cannot be told apart, since the entries of "
            f"one of them do not spell all of the text{size}."
        )
    parts = f"{signed(row['by_vocabulary'])} by its vocabulary (both with the encoder of the fewest tokens)"
    encoder = f"{signed(row['by_encoder'])} by its encoder"
    if row["by_sub_tokenizers"] is not None:
        parts, encoder = f"{parts}, {encoder}", f"{signed(row['by_sub_tokenizers'])} by its sub-tokenizers"
    return (
        f"{row['tokenizer']} against {baseline}: {signed(row['whole'])} tokens, of which {parts} and {encoder}{size}."
    )


def size(row: dict[str, Any]) -> str:
    aside = "".join(
        f" {family} does not compare: {percent(share)} of its tokens are unknown ones, for text that it has lost."
        for family, share in row["lost_text"].items()
    )
    aside += "".join(
        f" {family} has {entries:,} entries: its text gives no more."
        for family, entries in row["entries"].items()
        if entries < row["size"]
    )
    if row["spread"] is None:
        return f"At {row['size']:,} entries there are no two families to compare.{aside}"
    told = f"{row['significant_pairs']} of {row['pairs']} pairs of families differ significantly"
    best = f"the best has {percent(row['spread'])} more bytes a token than the worst"
    return f"At {row['size']:,} entries {told}; {best}.{aside}"


def use_by_size(family: str, rows: list[dict[str, Any]]) -> str:
    """Whether a larger vocabulary of a family still finds use."""
    shares = [f"{percent(row['vocabulary_utilization'][family])} of {row['entries'][family]:,}" for row in rows]
    told = f"{family} uses {', '.join(shares)} entries on this text"
    first, last = (row["entries"][family] for row in (rows[0], rows[-1]))
    if first == last:
        return f"{told}."
    used = [row["entries"][family] * row["vocabulary_utilization"][family] for row in (rows[0], rows[-1])]
    return f"{told}: {percent((used[1] - used[0]) / (last - first))} of the entries added found use."


def interval(row: dict[str, Any]) -> str:
    return f"ratio {row['ratio']:.4f}, 95 % interval {row['low']:.4f} to {row['high']:.4f}"


def change(ratio: float) -> str:
    return f"{percent(abs(ratio - 1))} {'fewer' if ratio < 1 else 'more'}"


def signed(share: float) -> str:
    return f"{100 * share:+.2f} %"
