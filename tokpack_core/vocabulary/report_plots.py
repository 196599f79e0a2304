"""The report page's pictures of the vocabulary: rank against frequency and coverage, utilization
by text and by size, and why entries are rare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tokpack_core.vocabulary import svg_plots
from tokpack_core.vocabulary.number_format import percent
from tokpack_core.vocabulary.rare_tokens import REASONS

COVERAGE_MARKS = (0.5, 0.9, 0.99)


def rank_frequency_plot(curve: Mapping[str, Sequence[float]]) -> str:
    ranks, counts = curve["rank"], curve["count"]
    return svg_plots.curve(
        ranks,
        counts,
        svg_plots.decades("rank", max(ranks, default=1)),
        svg_plots.decades("occurrences", max(counts, default=1)),
        lambda point: f"rank {ranks[point]:,}: {counts[point]:,} occurrences",
    )


def coverage_plot(curve: Mapping[str, Sequence[float]]) -> str:
    ranks, coverage = curve["rank"], curve["coverage"]
    marked = []
    for share in COVERAGE_MARKS if ranks else ():
        point = int(np.searchsorted(coverage, share))
        marked.append((ranks[point], coverage[point], f"{coverage[point]:.0%} by {ranks[point]:,} entries"))
    return svg_plots.curve(
        ranks,
        coverage,
        svg_plots.decades("entries, most frequent first", max(ranks, default=1)),
        svg_plots.percentages("share of tokens"),
        lambda point: f"the first {ranks[point]:,} entries: {percent(coverage[point])}",
        marked,
    )


def growth_plot(growth: Mapping[str, Any]) -> str:
    tokens, used = growth["tokens"], growth["utilization"]
    shown = [(max(token, 1), share) for token, share in zip(tokens, used, strict=True) if token]
    return svg_plots.curve(
        [token for token, _ in shown],
        [share for _, share in shown],
        svg_plots.decades("tokens of the sample", max(tokens, default=1), shown[0][0] if shown else 1),
        svg_plots.percentages("entries seen"),
        lambda point: f"{shown[point][0]:,} tokens: {percent(round(shown[point][1], 5))} of the entries",
    )


def size_plot(rows: Sequence[Mapping[str, Any]]) -> str:
    entries, used = [row["entries"] for row in rows], [row["utilization"] for row in rows]
    return svg_plots.curve(
        entries,
        used,
        svg_plots.span("entries", min(entries), max(entries)),
        svg_plots.percentages("entries seen"),
        lambda point: f"{entries[point]:,} entries: {percent(round(used[point], 5))} seen",
        dots=True,
    )


def rare_reason_plot(rows: Sequence[Mapping[str, Any]], entries: int) -> str:
    def described(row: Mapping[str, Any], reason: str) -> str:
        return f"{row['reasons'][reason]:,} of {entries:,} entries: {reason.replace('_', ' ')}"

    return svg_plots.stacked_bars(
        [
            (
                "never seen" if row["below"] == 1 else f"< {row['below']} times",
                [row["reasons"][reason] for reason in REASONS],
                percent(row["share"]),
                [described(row, reason) for reason in REASONS],
            )
            for row in rows
        ],
        maximum=entries,
    )


def reason_legend() -> str:
    items = "".join(f'<li class="key-{number}">{name.replace("_", " ")}</li>' for number, name in enumerate(REASONS))
    return f'<ul class="legend">{items}</ul>'


def removal_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the sample would cost without the entries below each threshold."""
    cells = "".join(
        f'<tr><td>below {row["below"]}</td><td class="number">{row["entries"]:,}</td><td class="number">'
        f'+{row["removal_tokens"]:,}</td><td class="number">{percent(row["removal_share"] or 0.0)}</td></tr>'
        for row in rows
    )
    return (
        '<table class="small"><thead><tr><th>without entries</th><th class="number">entries</th><th class="number">'
        f'tokens, at least</th><th class="number">of all</th></tr></thead><tbody>{cells}</tbody></table>'
    )
