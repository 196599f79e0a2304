"""The report page's pictures of the vocabulary: rank against frequency and coverage, and the share of rare tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tokpack_core.vocabulary import svg_plots
from tokpack_core.vocabulary.number_format import percent
from tokpack_core.vocabulary.utilization import KINDS

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


def rare_share_plot(rows: Sequence[Mapping[str, Any]], entries: int) -> str:
    def described(row: Mapping[str, Any], kind: str) -> str:
        return f"{row[kind]:,} of {entries:,} entries: {kind.replace('_', ' ')}"

    return svg_plots.stacked_bars(
        [
            (
                "never seen" if row["below"] == 1 else f"< {row['below']} times",
                [row[kind] for kind in KINDS],
                percent(row["share"]),
                [described(row, kind) for kind in KINDS],
            )
            for row in rows
        ],
        maximum=entries,
    )
