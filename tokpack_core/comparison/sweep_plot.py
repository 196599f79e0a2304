"""Utilization against vocabulary size as an inline SVG, a line a family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tokpack_core.vocabulary import svg_plots
from tokpack_core.vocabulary.number_format import percent
from tokpack_core.vocabulary.visible import printable

COLOURS = 6


def utilization_plot(sizes: Sequence[Mapping[str, Any]]) -> str:
    """Nothing for a sweep of one size."""
    if len(sizes) < 2:
        return ""
    families = list(sizes[0]["vocabulary_utilization"])
    entries = [row["size"] for row in sizes]
    x_axis = svg_plots.span("entries", min(entries), max(entries))
    y_axis = svg_plots.percentages("entries seen")
    lines = []
    for number, family in enumerate(families):
        shares = [row["vocabulary_utilization"][family] for row in sizes]
        points = [svg_plots.place(x, y, x_axis, y_axis) for x, y in zip(entries, shares, strict=True)]
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        lines.append(f'<polyline class="family stroke-{number % COLOURS}" points="{drawn}"/>')
        lines += [
            f'<circle class="part-{number % COLOURS}" cx="{x:.1f}" cy="{y:.1f}" r="4">'
            f"<title>{escape(printable(family))}, {size:,} entries: {percent(round(share, 5))} seen</title></circle>"
            for (x, y), size, share in zip(points, entries, shares, strict=True)
        ]
    legend = "".join(
        f'<li class="key-{number % COLOURS}">{escape(printable(family))}</li>' for number, family in enumerate(families)
    )
    picture = svg_plots.open_svg(svg_plots.WIDTH, svg_plots.HEIGHT, "entries seen against entries, by family")
    return (
        "<section><h2>Does a larger vocabulary find use?</h2>"
        '<p class="remark">Share of the entries that the held-out text holds, by size, families trained on the same '
        "text. A line that falls is vocabulary that this text does not need.</p>"
        f'<figure><ul class="legend">{legend}</ul>{picture}{svg_plots.frame(x_axis, y_axis)}{"".join(lines)}</svg>'
        "</figure></section>"
    )
