"""Pictures small enough for Dagster's UI to show in place: markdown of fewer than 1,000 characters.

An SVG with one shape, as a `data:` address. Longer markdown stands behind a link in the UI, and events are kept in two
databases; the large pictures are in the report page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from urllib.parse import quote

LONGEST = 999
WIDTH, HEIGHT = 240, 48
POINTS = 40
COLOUR = "#4f43dd"


def bars(values: Sequence[float], alt: str) -> str:
    """Upright bars from left to right, the highest as high as the picture."""
    top = max(values, default=0) or 1
    width = WIDTH / max(len(values), 1)
    path = [
        f"M{round(number * width)},{HEIGHT}v-{height}h{max(round(width) - 2, 1)}v{height}"
        for number, value in enumerate(values)
        if (height := math.ceil(HEIGHT * value / top))
    ]
    return picture(f"<path fill='{COLOUR}' d='{''.join(path)}'/>", alt)


def curve(xs: Sequence[float], ys: Sequence[float], alt: str) -> str:
    """A line through points with y from 0 to 1, x rising and more than 0, on a logarithmic scale."""
    if not xs:
        return picture("", alt)
    chosen = sorted({round(step * (len(xs) - 1) / (POINTS - 1)) for step in range(POINTS)})
    longest = math.log(xs[-1]) or 1.0
    places = [(round(WIDTH * math.log(xs[i]) / longest), round(HEIGHT * (1 - ys[i]))) for i in chosen]
    points = ",".join(f"{x},{y}" for x, y in dict.fromkeys(places))
    return picture(f"<polyline fill='none' stroke='{COLOUR}' stroke-width='2' points='{points}'/>", alt)


def picture(shape: str, alt: str) -> str:
    size = f"width='{WIDTH}' height='{HEIGHT}' viewBox='0 0 {WIDTH} {HEIGHT}'"
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' {size}>{shape}</svg>"
    return f"![{alt}](data:image/svg+xml,{quote(svg, safe=SAFE)})"


SAFE = "/:=',.-;"
"""Characters that mean nothing to markdown and to an address, and so need no escape."""
