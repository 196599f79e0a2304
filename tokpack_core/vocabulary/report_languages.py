"""The report page's section on languages: bars of bytes per token and a table, for either text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from tokpack_core.vocabulary import svg_plots
from tokpack_core.vocabulary.number_format import decimal
from tokpack_core.vocabulary.report import Report
from tokpack_core.vocabulary.report_curves import language_curve_figure
from tokpack_core.vocabulary.visible import visible

TEXTS = {"test": "Test splits", "sample": "Training sample"}
BARS_IN_A_COLUMN = 12
BAR_COLUMNS = 3
HEAT_SHADES = 8
MOST_TILES = 120


def language_views(report: Report) -> str:
    """Bars and table of each text that has tokens, with a switch between the two when both have."""
    views = [view for view in TEXTS if report[view]["tokens"]]
    if not views:
        return '<p class="remark">Neither text holds a token.</p>'
    choices = "".join(
        f'<input class="choice" type="radio" name="shown" id="show-{view}"{" checked" if view == views[0] else ""}>'
        for view in views
    )
    labels = "".join(f'<label for="show-{view}">{TEXTS[view]}</label>' for view in views)
    shown = "".join(
        f'<div class="of-{view}">{language_bars(report[view]["languages"])}'
        f"{language_table(report[view]['languages'])}</div>"
        for view in views
    )
    curves = language_curve_figure(report["language_curves"])
    return f'{heat_map(report, views)}{curves}{choices}<div class="switch">{labels}</div>{shown}'


def heat_map(report: Report, views: Sequence[str]) -> str:
    """Bytes per token of every language as colour, a row a text; languages of the most bytes per token first."""
    parallel = report["fairness"]
    values = {TEXTS[view]: by_language(report[view]["languages"]) for view in views}
    order = list(next(iter(values.values())))[:MOST_TILES]
    if len(order) < 2:
        return ""
    found = [value for row in values.values() for value in row.values()]
    rows = [heat_row(name, order, row, min(found), max(found)) for name, row in values.items()]
    if parallel is not None:
        own = by_language(parallel["languages"])
        rows.append(heat_row("Parallel text", list(own)[:MOST_TILES], own, min(own.values()), max(own.values())))
    return (
        "<figure><figcaption><b>Bytes per token, all languages</b> Stronger colour is more text in a token."
        "</figcaption>"
        f'<div class="heat">{"".join(rows)}</div></figure>'
    )


def by_language(languages: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    measured = [row for row in languages if row["bytes_per_token"] is not None]
    measured.sort(key=lambda row: (-row["bytes_per_token"], row["lang"]))
    return {row["lang"]: row["bytes_per_token"] for row in measured}


def heat_row(name: str, order: Iterable[str], values: Mapping[str, float], low: float, high: float) -> str:
    def tile(lang: str) -> str:
        value = values.get(lang)
        code = escape(visible(lang))
        if value is None:
            return f'<li class="none"><b>{code}</b>–</li>'
        shade = round(HEAT_SHADES * (value - low) / (high - low)) if high > low else HEAT_SHADES
        return f'<li class="heat-{shade}" title="{code}: {value:.3f} bytes per token"><b>{code}</b>{value:.2f}</li>'

    return f"<p>{escape(name)}</p><ul>{''.join(map(tile, order))}</ul>"


def language_bars(languages: Sequence[Mapping[str, Any]]) -> str:
    """Bars of bytes per token, longest first, in up to three columns that share one scale."""
    measured = [row for row in languages if row["bytes_per_token"] is not None]
    measured.sort(key=lambda row: (-row["bytes_per_token"], row["lang"]))
    maximum = max((row["bytes_per_token"] for row in measured), default=0.0)
    bars = [
        (
            visible(row["lang"]),
            row["bytes_per_token"],
            f"{visible(row['lang'])}: {row['bytes_per_token']:.3f} bytes per token, {row['tokens']:,} tokens",
        )
        for row in measured
    ]
    columns = min(BAR_COLUMNS, math.ceil(len(bars) / BARS_IN_A_COLUMN))
    height = math.ceil(len(bars) / columns)
    drawn = (svg_plots.bars(bars[at : at + height], maximum) for at in range(0, len(bars), height))
    return (
        f"<figure><figcaption><b>Bytes per token</b></figcaption>"
        f'<div class="bar-columns">{"".join(drawn)}</div></figure>'
    )


def language_table(languages: Iterable[Mapping[str, Any]]) -> str:
    heads = ["documents", "bytes", "tokens", "bytes / token", "characters / token", "tokens / word", "entries used"]
    head = "".join(f'<th class="number">{text}</th>' for text in heads)
    return (
        f'<div class="scroll"><table><thead><tr><th>language</th>{head}</tr></thead>'
        f"<tbody>{''.join(map(language_row, languages))}</tbody></table></div>"
    )


def language_row(row: Mapping[str, Any]) -> str:
    code = escape(visible(row["lang"]))
    if row["tokens_per_word"] is None and row["tokens_per_character"] is not None:
        words = f"{decimal(row['tokens_per_character'])} / character"
    else:
        words = decimal(row["tokens_per_word"])
    cells = [f"{row['documents']:,}", f"{row['bytes']:,}", f"{row['tokens']:,}"]
    cells += [decimal(row["bytes_per_token"]), decimal(row["characters_per_token"]), words]
    cells.append(f"{row['entries']:,}" if "entries" in row else "–")
    numbers = "".join(f'<td class="number">{text}</td>' for text in cells)
    return f'<tr><td><bdi>{code}</bdi><small data-lang="{code}"></small></td>{numbers}</tr>'
