"""The report page's small curves of each language: entries seen by amount of its text and by rank of entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tokpack_core.vocabulary import svg_plots
from tokpack_core.vocabulary.number_format import abbreviated, percent
from tokpack_core.vocabulary.visible import visible

MOST_SHOWN = 36


def language_curve_figure(curves: Sequence[Mapping[str, Any]]) -> str:
    """Tiles of the languages of most tokens; nothing for fewer than two languages, which the plots above show."""
    shown = [row for row in curves if row["growth"]["tokens"][-1]][:MOST_SHOWN]
    if len(shown) < 2:
        return ""
    top = max(row["growth"]["utilization"][-1] for row in shown)
    left_out = f" The {len(shown)} of most tokens, of {len(curves)}." if len(shown) < len(curves) else ""
    return (
        "<figure><figcaption><b>Utilization by language</b> Entries seen by amount of the language's own text, all on "
        f"one scale up to {percent(round(top, 4))} of the vocabulary, and by rank, from the first to the last entry."
        f'{left_out}</figcaption><ul class="curves">{"".join(tile(row, top) for row in shown)}</ul></figure>'
    )


def tile(row: Mapping[str, Any], top: float) -> str:
    growth = row["growth"]
    tokens, used = growth["tokens"], growth["utilization"]
    last = len(tokens) - 1
    by_text = [(place / last, share / top if top else 0.0) for place, share in enumerate(used)]
    steps = row["utilization_by_rank"]
    by_rank = [(place / max(len(steps) - 1, 1), share) for place, share in enumerate(steps)]
    lang = visible(row["lang"])
    state = "saturated" if growth["saturated"] else f"+{growth['new_if_doubled']:,.0f} with as much again"
    return (
        f'<li class="{"good" if growth["saturated"] else "warn"}"><b>{escape(lang)}</b> '
        f"{percent(round(used[-1], 4))}<small>{escape(state)}</small>"
        + svg_plots.spark(by_text, f"{lang}: entries seen by tokens, up to {abbreviated(tokens[-1])} tokens")
        + svg_plots.spark(by_rank, f"{lang}: share of entries seen by rank")
        + "</li>"
    )
