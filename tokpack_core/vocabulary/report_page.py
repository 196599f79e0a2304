"""The vocabulary report as one HTML page that needs nothing else: no network, no other file.

Everything that comes from data passes `escape` (markup) or `script_json` (the token table), tokens also `visible`. A
content security policy lets the page load nothing and run only its own script, told by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import orjson

from tokpack_core.verdict import Verdict
from tokpack_core.vocabulary.findings import findings
from tokpack_core.vocabulary.number_format import byte_size, decimal, percent
from tokpack_core.vocabulary.report import Report, token_bytes
from tokpack_core.vocabulary.report_fairness import fairness_section
from tokpack_core.vocabulary.report_languages import language_views
from tokpack_core.vocabulary.report_plots import (
    coverage_plot,
    growth_plot,
    rank_frequency_plot,
    rare_reason_plot,
    reason_legend,
    removal_table,
)
from tokpack_core.vocabulary.report_sections import (
    findings_section,
    model_section,
    pits_section,
    robustness_section,
    size_figure,
    structure_section,
)
from tokpack_core.vocabulary.structure import MARKS
from tokpack_core.vocabulary.visible import printable, visible

HEADLINE_RARE_BELOW = 5

UNSAFE_IN_SCRIPT = re.compile("[<>&\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""What could end the script element, and what would hide or reorder text in the page's source."""


def render_page(report: Report, verdicts: Sequence[Verdict] | None = None) -> str:
    """The page of a report made by `build_report`; `verdicts` are shown at its top when given.

    The same report and verdicts give the same text.
    """
    script = asset("report_page.js")
    tokens = [visible(token_bytes(token)) for token in report["tokens"]["token"]]
    by_id = dict(zip(report["tokens"]["id"], tokens, strict=True))
    return Template(asset("report_page.html")).substitute(
        name=escape(printable(report["name"])),
        style=asset("report_page.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        facts=facts_list(report["tokenizer"]),
        verdicts=verdict_list(verdicts or []),
        cards="\n".join(card(*texts) for texts in headline_figures(report)),
        rank_frequency=rank_frequency_plot(report["sample"]["rank_curve"]),
        coverage=coverage_plot(report["sample"]["rank_curve"]),
        growth=growth_plot(report["growth"]),
        saturation=escape(saturation(report["growth"])),
        sizes=size_figure(report),
        reason_legend=reason_legend(),
        rare_shares=rare_reason_plot(report["rare"], report["vocabulary"]["entries"]),
        removal=removal_table(report["rare"]),
        findings=findings_section(report.get("findings") or [finding.as_json() for finding in findings(report)]),
        structure=structure_section(report, by_id),
        fairness=fairness_section(report["fairness"]),
        robustness=robustness_section(report["robustness"], report.get("round_trip")),
        pits=pits_section(report.get("pits")),
        models=model_section(report),
        rarest=rarest_list(report["rarest"], by_id),
        languages=language_views(report),
        passages=passage_section(report["passages"], by_id),
        token_data=token_data(report, tokens),
    )


@cache
def asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def facts_list(facts: Mapping[str, Any]) -> str:
    def shown(value: Any) -> str:
        if isinstance(value, Mapping):
            return ", ".join(f"{shown(key)} {shown(part)}" for key, part in value.items())
        return printable(value if isinstance(value, str) else orjson.dumps(value).decode())

    return "".join(
        f"<div><dt>{escape(key.replace('_', ' '))}</dt><dd>{escape(shown(value))}</dd></div>"
        for key, value in facts.items()
        if value is not None
    )


def verdict_list(verdicts: Sequence[Verdict]) -> str:
    items = "".join(verdict_item(verdict) for verdict in verdicts)
    return f'<ul class="verdicts">{items}</ul>' if items else ""


def verdict_item(verdict: Verdict) -> str:
    outcome = "passed" if verdict.passed else "failed" if verdict.blocking else "warning"
    sign = {"passed": "✓", "failed": "✕", "warning": "!"}[outcome]
    return (
        f'<li class="{outcome}"><b>{sign} {outcome}</b>{escape(verdict.name.replace("_", " "))}'
        f"<p><bdi>{escape(printable(verdict.explanation))}</bdi></p></li>"
    )


def headline_figures(report: Report) -> list[tuple[str, str, str]]:
    """(what, figure, detail) of each card."""
    vocabulary, sample, test = report["vocabulary"], report["sample"], report["test"]
    measured, where = (test, "test splits") if test["tokens"] else (sample, "training sample")
    rare = next(row for row in sample["rare"] if row["below"] == HEADLINE_RARE_BELOW)
    seen = vocabulary["entries"] - sample["frequency_of_frequencies"][0]
    bytes_among_rare = rare["single_byte"] + rare["byte_fallback"]
    return [
        (
            "Vocabulary utilization",
            percent(sample["vocabulary_utilization"]),
            f"{seen:,} of {vocabulary['entries']:,} entries occur in the training sample",
        ),
        (
            f"Rare tokens, seen fewer than {HEADLINE_RARE_BELOW} times",
            percent(rare["share"]),
            f"{rare['entries']:,} entries, {bytes_among_rare:,} of them single bytes",
        ),
        (
            f"Bytes per token, {where}",
            decimal(measured["bytes_per_token"]),
            f"{decimal(measured['characters_per_token'])} characters per token",
        ),
        (
            f"Tokens per word, {where}",
            decimal(measured["tokens_per_word"]),
            "over languages that write spaces between words",
        ),
        (
            "Training sample",
            byte_size(sample["bytes"]),
            f"{sample['tokens']:,} tokens, {sample['documents']:,} documents; "
            f"test splits {byte_size(test['bytes'])}, {test['tokens']:,} tokens",
        ),
        (
            "Vocabulary",
            f"{vocabulary['size']:,}",
            f"{vocabulary['special']:,} special tokens, {vocabulary['kinds']['partial_utf8']:,} of partial UTF-8",
        ),
    ]


def card(what: str, figure: str, detail: str) -> str:
    return (
        f'<article class="card"><h3>{escape(what)}</h3><p class="figure">{escape(figure)}</p>'
        f'<p class="detail">{escape(detail)}</p></article>'
    )


def rarest_list(rarest: Iterable[Mapping[str, Any]], by_id: Mapping[int, str]) -> str:
    def remark(entry: Mapping[str, Any]) -> str:
        counted = f"{entry['count']:,}×" if entry["count"] else "never"
        return f"{counted}, {entry['reason'].replace('_', ' ')}"

    return "".join(
        f'<li title="id {entry["id"]}"><bdi>{escape(by_id[entry["id"]])}</bdi><span>{escape(remark(entry))}</span></li>'
        for entry in rarest
    )


def passage_section(passages: Sequence[Mapping[str, Any]], by_id: Mapping[int, str]) -> str:
    def tokens(ids: Iterable[int]) -> str:
        shown = ((token, by_id[token]) for token in ids)
        return "".join(
            f'<bdi title="id {token}">{escape(text)}</bdi><wbr>{"<br>" if text.endswith("⏎") else ""}'
            for token, text in shown
        )

    articles = "".join(
        f'<article class="passage"><h3>{escape(printable(passage["title"]))} · {len(passage["ids"]):,} tokens</h3>'
        f"{tokens(passage['ids'])}</article>"
        for passage in passages
    )
    return f"<section><h2>How text is cut</h2>{articles}</section>" if articles else ""


def token_data(report: Report, visible_tokens: Sequence[str]) -> str:
    """The columns of the token table as JSON; kinds are one string with a digit a token."""
    tokens = report["tokens"]
    columns = {"scripts": "script", "marks": "marks", "sample": "sample", "test": "test", "id": "id"}
    return script_json(
        {
            "tokens": visible_tokens,
            "kinds": "".join(map(str, tokens["kind"])),
            "scriptNames": report["scripts"],
            "markNames": MARKS,
            **{name: tokens[column] for name, column in columns.items()},
        }
    )


def saturation(growth: Mapping[str, Any]) -> str:
    more = f"As much text again would show about {growth['new_if_doubled']:,.0f} more."
    return f"{more} {'The sample is saturated.' if growth['saturated'] else 'The sample is not saturated: add text.'}"


def script_json(value: Any) -> str:
    """JSON that is safe inside a script element."""
    return UNSAFE_IN_SCRIPT.sub(lambda match: f"\\u{ord(match[0]):04x}", orjson.dumps(value).decode())
