"""The report page's section on fairness: premiums on parallel text, with their intervals, and what a context holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tokpack_core.vocabulary import svg_plots
from tokpack_core.vocabulary.number_format import decimal
from tokpack_core.vocabulary.visible import visible


def fairness_section(fair: Mapping[str, Any] | None) -> str:
    if fair is None:
        return ""
    reference = escape(visible(fair["reference"]))
    return (
        "<section><h2>The same content in every language</h2>"
        f'<p class="remark">{fair["sentences"]:,} parallel sentences. Premium: tokens over those of {reference} on the '
        f"same sentences, with its 95 % bootstrap interval. Gini over languages {fair['gini']:.3f} (0: all pay the "
        "same).</p>"
        f"<figure><figcaption><b>Premium</b> Whiskers are the interval; the line is {reference}.</figcaption>"
        f"{premium_bars(fair['languages'])}</figure>{fairness_table(fair)}</section>"
    )


def premium_bars(languages: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (visible(row["lang"]), row["premium"], row["low"], row["high"], f"{visible(row['lang'])}: {sentence(row)}")
        for row in languages
    ]
    return svg_plots.whisker_bars(rows, at_one=True)


def sentence(row: Mapping[str, Any]) -> str:
    interval = f"{row['premium']:.2f} × ({row['low']:.2f} to {row['high']:.2f})"
    return f"{interval}, {row['tokens_per_sentence']:.1f} tokens a sentence"


def fairness_table(fair: Mapping[str, Any]) -> str:
    heads = ["premium", "95 % interval", "tokens / sentence", "bytes / token", "chars / token"]
    heads += [f"{context // 1024}k holds" for context in fair["contexts"]]
    head = "".join(f'<th class="number">{text}</th>' for text in heads)
    rows = "".join(map(fairness_row, fair["languages"]))
    return (
        f'<div class="scroll"><table><thead><tr><th>language</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def fairness_row(row: Mapping[str, Any]) -> str:
    code = escape(visible(row["lang"]))
    cells = [f"{row['premium']:.2f} ×", f"{row['low']:.2f} – {row['high']:.2f}", decimal(row["tokens_per_sentence"])]
    cells += [decimal(row["bytes_per_token"]), decimal(row["characters_per_token"])]
    cells += ["–" if held is None else f"{held:,}" for held in row["sentences_in_context"]]
    numbers = "".join(f'<td class="number">{text}</td>' for text in cells)
    return f'<tr><td>{code}<small data-lang="{code}"></small></td>{numbers}</tr>'
