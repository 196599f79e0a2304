"""A small picture of a pack's attention mask: which positions see which, block by block.

Rows are queries from top to bottom, columns are keys from left to right; a position sees those before it in its own
piece and nothing else. A cell stands for many pairs, and its shade is the share of them that are seen, by sampling.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from rich.text import Text

CELLS = 24
SAMPLES = 8
"""Positions looked at in each cell, along each side."""
SHADES = " ░▒▓█"
WIDE = 2
"""A character is about twice as high as wide."""


def mask_picture(lengths: Sequence[int], colours: Sequence[str]) -> list[Text]:
    """Lines of the picture of a pack of pieces of these lengths, each in the colour of its piece."""
    seen, piece = sampled_mask(np.asarray(lengths, np.int64))
    cells = seen.shape[0] // SAMPLES
    share = seen.reshape(cells, SAMPLES, cells, SAMPLES).mean((1, 3))
    shade = np.ceil(share * (len(SHADES) - 1)).astype(int)
    lines = []
    for row in range(cells):
        line = Text()
        for column in range(cells):
            looked_at = seen[row * SAMPLES : (row + 1) * SAMPLES, column * SAMPLES : (column + 1) * SAMPLES]
            query = int(np.argmax(looked_at.sum(1)))
            colour = colours[piece[row * SAMPLES + query] % len(colours)]
            line.append(SHADES[shade[row, column]] * WIDE, colour)
        lines.append(line)
    return lines


def sampled_mask(lengths: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """What sampled positions see of each other [samples, samples], and the piece of each [samples]."""
    total = int(lengths.sum())
    samples = min(CELLS, total) * SAMPLES
    position = (np.arange(samples) * total) // samples
    piece = np.searchsorted(np.cumsum(lengths), position, side="right")
    seen = (piece[:, None] == piece[None, :]) & (position[:, None] >= position[None, :])
    return seen, piece
