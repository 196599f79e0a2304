"""A small picture of a pack's attention mask: which positions see which, block by block.

Rows are queries from top to bottom, columns are keys from left to right; what a position sees is what training shows
it. A cell stands for many pairs, and its shade is the share of them that are seen, by sampling.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from rich.text import Text

from tokpack_core.training.segments import PackSegments
from tokpack_core.training.visible_keys import visibility

CELLS = 24
SAMPLES = 8
"""Positions looked at in each cell, along each side."""
SHADES = " ░▒▓█"
WIDE = 2
"""A character is about twice as high as wide."""


def mask_picture(segments: PackSegments, colours: Sequence[str]) -> list[Text]:
    """Lines of the picture of a pack, each cell in the colour of the segment that sees most in it."""
    seen, segment = sampled_mask(segments)
    cells = seen.shape[0] // SAMPLES
    share = seen.reshape(cells, SAMPLES, cells, SAMPLES).mean((1, 3))
    shade = np.ceil(share * (len(SHADES) - 1)).astype(int)
    lines = []
    for row in range(cells):
        line = Text()
        for column in range(cells):
            looked_at = seen[row * SAMPLES : (row + 1) * SAMPLES, column * SAMPLES : (column + 1) * SAMPLES]
            query = int(np.argmax(looked_at.sum(1)))
            colour = colours[segment[row * SAMPLES + query] % len(colours)]
            line.append(SHADES[shade[row, column]] * WIDE, colour)
        lines.append(line)
    return lines


def sampled_mask(segments: PackSegments) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """What sampled positions see of each other [samples, samples], and the segment of each [samples]."""
    total = segments.tokens
    samples = min(CELLS, total) * SAMPLES
    position = (np.arange(samples) * total) // samples
    context_begin, context_end, block_begin, block_end = visibility(segments)[:, position, None]
    context = (position >= context_begin) & (position < context_end)
    block = (position >= block_begin) & (position < block_end)
    return context | block, np.searchsorted(np.cumsum(segments.length), position, side="right")
