"""The report's pictures as inline SVG: curves with linear or logarithmic axes, bars, stacked bars.

Colours and fonts come from the page's style sheet through class names, so that one picture serves light and dark.
Every point and bar carries a <title>, which browsers show on hover and screen readers read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from tokpack_core.vocabulary.number_format import abbreviated

WIDTH, HEIGHT = 560.0, 320.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 16.0, 14.0, 46.0

BAR_WIDTH, BAR_ROW, BAR_LABEL, BAR_VALUE = 320.0, 22.0, 84.0, 46.0
STACK_WIDTH, STACK_ROW, STACK_LABEL, STACK_VALUE = 560.0, 40.0, 92.0, 64.0
SLIM_ROW = 22.0
SPARK_WIDTH, SPARK_HEIGHT = 150.0, 44.0
WIDE_WIDTH, WIDE_LABEL, WIDE_VALUE = 1100.0, 84.0, 64.0


@dataclass(frozen=True)
class Axis:
    """Maps values low..high to 0..1; `ticks` are values with their labels."""

    label: str
    low: float
    high: float
    logarithmic: bool
    ticks: Sequence[tuple[float, str]]

    def at(self, value: float) -> float:
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def decades(label: str, highest: float, lowest: float = 1.0) -> Axis:
    """A logarithmic axis from the power of ten below `lowest` to `highest`, with a tick at each power of ten."""
    first = int(math.log10(max(lowest, 1.0)) + 1e-9)
    high = max(highest, 10.0 ** (first + 1))
    powers = range(first, int(math.log10(high) + 1e-9) + 1)
    return Axis(label, 10.0**first, high, True, [(10.0**power, abbreviated(10**power)) for power in powers])


def span(label: str, lowest: float, highest: float) -> Axis:
    """A logarithmic axis from the lowest to the highest value, with a tick at each doubling of the lowest."""
    high = max(highest, lowest * 2)
    doublings = int(math.log2(high / lowest) + 1e-9)
    ticks = [(lowest * 2**power, abbreviated(round(lowest * 2**power))) for power in range(doublings + 1)]
    return Axis(label, lowest, high, True, ticks)


def percentages(label: str) -> Axis:
    return Axis(label, 0.0, 1.0, False, [(tick / 100, f"{tick} %") for tick in range(0, 101, 25)])


def curve(
    xs: Sequence[float],
    ys: Sequence[float],
    x_axis: Axis,
    y_axis: Axis,
    describe: Callable[[int], str],
    marked: Sequence[tuple[float, float, str]] = (),
    dots: bool = False,
) -> str:
    """One line through the points; `describe(i)` is the text on hovering point i; `marked` points are labelled.

    `dots` shows every point.
    """

    points = [place(x, y, x_axis, y_axis) for x, y in zip(xs, ys, strict=True)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    floor = HEIGHT - BOTTOM
    parts = [open_svg(WIDTH, HEIGHT, f"{y_axis.label} against {x_axis.label}"), frame(x_axis, y_axis)]
    if points:
        area = f"{points[0][0]:.1f},{floor:.1f} {line} {points[-1][0]:.1f},{floor:.1f}"
        parts += [f'<polygon class="area" points="{area}"/>', f'<polyline class="line" points="{line}"/>']
    if dots:
        parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in points]
    for x, y, text in marked:
        parts.append(marker(*place(x, y, x_axis, y_axis), text))
    parts += [
        f'<circle class="hover" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{escape(describe(index))}</title></circle>'
        for index, (x, y) in enumerate(points)
    ]
    return "".join([*parts, "</svg>"])


def place(x: float, y: float, x_axis: Axis, y_axis: Axis) -> tuple[float, float]:
    """Where a point stands in a plot of WIDTH x HEIGHT."""
    across = LEFT + x_axis.at(x) * (WIDTH - LEFT - RIGHT)
    return across, HEIGHT - BOTTOM - y_axis.at(y) * (HEIGHT - TOP - BOTTOM)


def frame(x_axis: Axis, y_axis: Axis) -> str:
    """Grid lines, tick labels and axis labels."""
    right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for value, text in x_axis.ticks:
        x = LEFT + x_axis.at(value) * (right - LEFT)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{floor}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{floor + 17}" text-anchor="middle">{text}</text>')
    for value, text in y_axis.ticks:
        y = floor - y_axis.at(value) * (floor - TOP)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    middle = (LEFT + right) / 2
    parts.append(f'<text class="axis" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_axis.label)}</text>')
    turned = f'transform="translate(13 {(TOP + floor) / 2}) rotate(-90)"'
    parts.append(f'<text class="axis" {turned} text-anchor="middle">{escape(y_axis.label)}</text>')
    return "".join(parts)


def marker(x: float, y: float, text: str) -> str:
    """A dot labelled on whichever side has room."""
    leftward = x > (LEFT + WIDTH) / 2
    across, anchor = (x - 10, "end") if leftward else (x + 10, "start")
    return (
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        f'<text class="note" x="{across:.1f}" y="{y + (1 if leftward else 15):.1f}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def spark(points: Sequence[tuple[float, float]], label: str) -> str:
    """A small line without axes: points of 0..1 across and up."""
    line = " ".join(f"{SPARK_WIDTH * x:.1f},{SPARK_HEIGHT * (1 - y):.1f}" for x, y in points)
    area = f"0,{SPARK_HEIGHT} {line} {SPARK_WIDTH},{SPARK_HEIGHT}"
    return (
        f'{open_svg(SPARK_WIDTH, SPARK_HEIGHT, label)}<title>{escape(label)}</title><polygon class="area" '
        f'points="{area}"/><polyline class="line" points="{line}"/></svg>'
    )


def bars(rows: Sequence[tuple[str, float, str]], maximum: float) -> str:
    """Horizontal bars, one a (label, value, hover text); `maximum` is the value of a full bar."""
    height = BAR_ROW * len(rows)
    room = BAR_WIDTH - BAR_LABEL - BAR_VALUE
    parts = [open_svg(BAR_WIDTH, height, "bars")]
    for index, (label, value, title) in enumerate(rows):
        y = index * BAR_ROW
        length = room * value / maximum if maximum > 0 else 0.0
        shown = label if len(label) <= 11 else f"{label[:10]}…"
        parts.append(
            f"<g><title>{escape(title)}</title>"
            f'<text class="bar-label" x="{BAR_LABEL - 8}" y="{y + 15:.0f}" text-anchor="end">{escape(shown)}</text>'
            f'<rect class="track" x="{BAR_LABEL}" y="{y + 4:.0f}" width="{room}" height="14" rx="3"/>'
            f'<rect class="bar" x="{BAR_LABEL}" y="{y + 4:.0f}" width="{length:.1f}" height="14" rx="3"/>'
            f'<text class="bar-value" x="{BAR_WIDTH}" y="{y + 15:.0f}" text-anchor="end">{value:.2f}</text></g>'
        )
    return "".join([*parts, "</svg>"])


def stacked_bars(
    rows: Sequence[tuple[str, Sequence[float], str, Sequence[str]]], maximum: float, slim: bool = False
) -> str:
    """Horizontal bars of several parts: (label, parts, text at the end, hover text of each part).

    Part i has class `part-i`, of slim bars `half-i`; `maximum` is the sum that fills a bar.
    """
    pitch, thick, kind = (SLIM_ROW, 14.0, "half") if slim else (STACK_ROW, 24.0, "part")
    height = pitch * len(rows)
    room = STACK_WIDTH - STACK_LABEL - STACK_VALUE
    parts = [open_svg(STACK_WIDTH, height, "stacked bars")]
    for index, (label, values, text, titles) in enumerate(rows):
        y = index * pitch
        top, text_y = y + (pitch - thick) / 2, y + pitch / 2 + 5
        parts.append(
            f'<text class="bar-label" x="{STACK_LABEL - 10}" y="{text_y:.0f}" text-anchor="end">{escape(label)}</text>'
            f'<rect class="track" x="{STACK_LABEL}" y="{top:.0f}" width="{room}" height="{thick:.0f}" rx="4"/>'
        )
        x = STACK_LABEL
        for part, (value, title) in enumerate(zip(values, titles, strict=True)):
            length = room * value / maximum if maximum > 0 else 0.0
            parts.append(
                f'<rect class="{kind}-{part}" x="{x:.1f}" y="{top:.0f}" width="{length:.1f}" height="{thick:.0f}">'
                f"<title>{escape(title)}</title></rect>"
            )
            x += length
        parts.append(
            f'<text class="bar-value" x="{STACK_WIDTH}" y="{text_y:.0f}" text-anchor="end">{escape(text)}</text>'
        )
    return "".join([*parts, "</svg>"])


def columns(rows: Sequence[tuple[str, float]]) -> str:
    """Upright bars, one a (label, value); every second label is written."""
    highest = max((value for _, value in rows), default=0.0)
    step = (WIDTH - LEFT - RIGHT) / max(len(rows), 1)
    floor = HEIGHT - BOTTOM
    parts = [open_svg(WIDTH, HEIGHT, "columns")]
    for index, (label, value) in enumerate(rows):
        height = (floor - TOP) * value / highest if highest else 0.0
        x = LEFT + index * step
        parts.append(
            f'<rect class="column" x="{x + step * 0.12:.1f}" y="{floor - height:.1f}" width="{step * 0.76:.1f}" '
            f'height="{height:.1f}" rx="2"><title>{escape(label)}: {value:,}</title></rect>'
        )
        if index % 2 == 0:
            parts.append(
                f'<text class="tick" x="{x + step / 2:.1f}" y="{floor + 17}" text-anchor="middle">'
                f"{escape(label)}</text>"
            )
    for share in (0.5, 1.0):
        y = floor - (floor - TOP) * share
        text = abbreviated(round(highest * share))
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    return "".join([*parts, "</svg>"])


def whisker_bars(rows: Sequence[tuple[str, float, float, float, str]], at_one: bool) -> str:
    """Horizontal bars with an interval: (label, value, low, high, hover text); `at_one` draws a line at 1."""
    height = BAR_ROW * len(rows)
    room = WIDE_WIDTH - WIDE_LABEL - WIDE_VALUE
    most = max((high for *_, high, _ in rows), default=1.0)
    parts = [open_svg(WIDE_WIDTH, height, "bars with intervals")]
    for index, (label, value, low, high, title) in enumerate(rows):
        y = index * BAR_ROW
        left, right = (WIDE_LABEL + room * edge / most for edge in (low, high))
        shown = label if len(label) <= 11 else f"{label[:10]}…"
        parts.append(
            f"<g><title>{escape(title)}</title>"
            f'<text class="bar-label" x="{WIDE_LABEL - 8}" y="{y + 15:.0f}" text-anchor="end">{escape(shown)}</text>'
            f'<rect class="premium" x="{WIDE_LABEL}" y="{y + 5:.0f}" width="{room * value / most:.1f}" height="12"/>'
            f'<path class="whisker" d="M{left:.1f} {y + 7}v8M{left:.1f} {y + 11}H{right:.1f}M{right:.1f} {y + 7}v8"/>'
            f'<text class="bar-value" x="{WIDE_WIDTH}" y="{y + 15:.0f}" text-anchor="end">{value:.2f} ×</text></g>'
        )
    if at_one and rows:
        x = WIDE_LABEL + room / most
        parts.append(f'<line class="one" x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{height}"/>')
    return "".join([*parts, "</svg>"])


def open_svg(width: float, height: float, label: str) -> str:
    return f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}">'
