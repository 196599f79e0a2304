"""A comparison as one HTML page that needs nothing else: no network, no script, no other file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from tokpack_core.comparison.comparison import ALL, CERTAIN, Comparison
from tokpack_core.comparison.findings import causes, differences, models, signed, sizes
from tokpack_core.comparison.sweep_plot import utilization_plot
from tokpack_core.vocabulary.number_format import byte_size, decimal, percent
from tokpack_core.vocabulary.visible import printable

FULL_COLOUR = 0.25
"""Share of tokens, more or fewer, that has the strongest colour."""

Show = Callable[[Any], str]


def render_comparison(comparison: Comparison) -> str:
    """The same comparison gives the same text."""
    rows = comparison["tokenizers"]
    style = files("tokpack_core.vocabulary").joinpath("report_page.css").read_text(encoding="utf-8")
    page = files(__package__).joinpath("comparison_page.html").read_text(encoding="utf-8")
    return Template(page).substitute(
        style=style,
        title=escape(f"{len(rows)} tokenizers, {len(comparison['languages'])} languages"),
        facts=facts(comparison),
        findings=sentences([*differences(comparison), *models(comparison), *sizes(comparison)]),
        causes=sentences(causes(comparison)),
        baseline=text(comparison["baseline"]),
        questions=comparison["questions"],
        bars=bars(rows),
        overall=table(rows, OVERALL),
        heat=heat_map(comparison["differences"], comparison["baseline"]),
        parallel=parallel_section(comparison),
        encoders=control_table(comparison["controls"]["same_vocabulary_two_encoders"], ENCODERS),
        vocabularies=control_table(comparison["controls"]["two_vocabularies_one_encoder"], VOCABULARIES),
        morphemes=section("Morpheme boundaries", comparison["morphemes"], MORPHEMES),
        small_model=section("Bits per byte of a small model", comparison.get("small_model", []), SMALL_MODEL),
        sweep=sweep_section(comparison),
        retrofit=table(comparison["retrofit"], RETROFIT),
    )


def sentences(found: Sequence[str]) -> str:
    return "".join(f"<li>{text(sentence).replace(' %', '&nbsp;%')}</li>" for sentence in found)


def bars(rows: Sequence[Mapping[str, Any]]) -> str:
    """Bytes per token of each tokenizer."""
    longest = max(row["bytes_per_token"] or 0 for row in rows) or 1
    return "".join(
        f'<span>{text(row["tokenizer"])}</span><span class="full">'
        f'<i style="width: {100 * (row["bytes_per_token"] or 0) / longest:.1f}%"></i></span>'
        f"<span>{decimal(row['bytes_per_token'])}</span>"
        for row in rows
    )


def facts(comparison: Comparison) -> str:
    shown = {
        "baseline": comparison["baseline"],
        "documents": f"{comparison['documents']:,}",
        "text": byte_size(comparison["bytes"]),
    }
    return "".join(f"<div><dt>{name}</dt><dd>{text(value)}</dd></div>" for name, value in shown.items())


def text(value: Any) -> str:
    return escape(printable(str(value)))


def number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def share(value: float | None) -> str:
    return "–" if value is None else percent(value)


def change(value: float | None) -> str:
    return "–" if value is None else signed(value)


def precise(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


OVERALL: dict[str, Show] = {
    "tokenizer": text,
    "family": text,
    "vocab_size": number,
    "tokens": number,
    "bytes_per_token": decimal,
    "tokens_per_1000_characters": decimal,
    "unknown_share": share,
    "vocabulary_utilization": share,
    "rare_token_share_below_5": share,
    "renyi_efficiency": precise,
    "residue_share": share,
}
ENCODERS: dict[str, Show] = {
    "tokenizer": text,
    "tokens": number,
    "fewest": number,
    "encoder_excess": change,
    "whole_vocabulary": number,
    "sub_tokenizer_excess": change,
}
VOCABULARIES: dict[str, Show] = {
    "tokenizer": text,
    "whole": change,
    "by_vocabulary": change,
    "by_encoder": change,
    "by_sub_tokenizers": change,
    "same_size": yes_or_no,
}
OF_MODULAR = ("whole_vocabulary", "sub_tokenizer_excess", "by_sub_tokenizers")
MORPHEMES: dict[str, Show] = {"tokenizer": text, "words": number, "precision": share, "recall": share, "f1": share}
SMALL_MODEL: dict[str, Show] = {
    "tokenizer": text,
    "mean": precise,
    "spread": precise,
    "ratio": precise,
    "low": precise,
    "high": precise,
    "verdict": text,
}
RETROFIT: dict[str, Show] = {
    "method": text,
    "needs": text,
    "reversibility": text,
    "compared": yes_or_no,
    "source": text,
}
PAIRS: dict[str, Show] = {
    "size": number,
    "family": text,
    "other": text,
    "ratio": precise,
    "low": precise,
    "high": precise,
    "verdict": text,
}


def table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Show]) -> str:
    def cell(row: Mapping[str, Any], name: str, show: Show) -> str:
        return f"<td{'' if show is text else number_class()}>{show(row[name])}</td>"

    head = "".join(
        f"<th{'' if show is text else number_class()}>{name.replace('_', ' ')}</th>" for name, show in columns.items()
    )
    body = "".join(f"<tr>{''.join(cell(row, name, show) for name, show in columns.items())}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def control_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Show]) -> str:
    """Without the columns of modular tokenizers where there are none."""
    filled = {
        name: show
        for name, show in columns.items()
        if name not in OF_MODULAR or any(row[name] is not None for row in rows)
    }
    return table(rows, filled)


def number_class() -> str:
    return ' class="number"'


def section(title: str, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Show], remark: str = "") -> str:
    if not rows:
        return ""
    told = f'<p class="remark">{escape(remark)}</p>' if remark else ""
    return f"<section><h2>{escape(title)}</h2>{told}{table(rows, columns)}</section>"


def heat_map(differences: Sequence[Mapping[str, Any]], baseline: str) -> str:
    """Languages down, tokenizers across: tokens against the baseline."""
    names = list(dict.fromkeys(row["tokenizer"] for row in differences))
    languages = list(dict.fromkeys(row["lang"] for row in differences))
    cells = {(row["lang"], row["tokenizer"]): row for row in differences}
    if not names:
        return '<p class="remark">There is one tokenizer: nothing to compare it with.</p>'
    head = "".join(f"<th>{text(name)}</th>" for name in names)
    body = "".join(
        f"<tr><td>{text('all languages' if lang == ALL else lang)}</td>"
        f"{''.join(heat_cell(cells[lang, name]) for name in names)}</tr>"
        for lang in languages
    )
    table = f"<table><thead><tr><th>against {text(baseline)}</th>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll heat">{table}</div>'


def heat_cell(row: Mapping[str, Any]) -> str:
    if row["ratio"] is None:
        return "<td>–</td>"
    told = f"{row['documents']:,} documents, 95 % interval {row['low']:.4f} to {row['high']:.4f}: {row['verdict']}"
    unsure = ' class="unsure"' if row["verdict"] not in (*CERTAIN, "baseline") else ""
    strength = min(abs(row["ratio"] - 1) / FULL_COLOUR, 1) * (0 if unsure else 45)
    colour = "var(--good)" if row["ratio"] < 1 else "var(--bad)"
    style = f"background: color-mix(in srgb, {colour} {strength:.0f}%, transparent)"
    return f'<td{unsure} style="{style}" title="{escape(told)}">{signed(row["ratio"] - 1)}</td>'


def parallel_section(comparison: Comparison) -> str:
    rows = comparison["parallel"]
    if not rows:
        return ""
    names = list(dict.fromkeys(row["tokenizer"] for row in rows))
    languages = list(dict.fromkeys(row["lang"] for row in rows))
    cells = {(row["lang"], row["tokenizer"]): row for row in rows}

    def cell(lang: str, name: str) -> str:
        row = cells[lang, name]
        told = f"{row['sentences']:,} sentences; against the baseline {row['verdict']}"
        figures = f"{row['tokens_per_sentence']:.1f} <small>x{row['premium']:.2f}</small>"
        unsure = ' class="unsure"' if row["verdict"] not in (*CERTAIN, "baseline") else ""
        return f'<td{unsure} title="{escape(told)}">{figures}</td>'

    head = "".join(f"<th>{text(name)}</th>" for name in names)
    body = "".join(f"<tr><td>{text(lang)}</td>{''.join(cell(lang, name) for name in names)}</tr>" for lang in languages)
    return (
        "<section><h2>On parallel text</h2>"
        '<p class="remark">Tokens per aligned sentence, and as a multiple of what the reference language needs for the '
        "same sentences. Faint: no significant difference to the baseline, or unknown tokens.</p>"
        f'<div class="scroll heat"><table><thead><tr><th>language</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></section>"
    )


def sweep_section(comparison: Comparison) -> str:
    if "sweep" not in comparison:
        return ""
    return utilization_plot(comparison["sweep"]["sizes"]) + section(
        "Are the algorithms different at all?",
        comparison["sweep"]["pairs"],
        PAIRS,
        "Families at several sizes, trained on the same text; ratio of tokens on the held-out text.",
    )
