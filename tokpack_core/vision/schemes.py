"""Tokens of images by the published rule of each scheme: see `config.vision` for what they are.

All work on whole arrays of sizes in pixels. Floating-point steps are those of the published code in the same order, so
that counts agree with it to the last token; tests hold them against transformers' own image processors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tokpack_core.config.vision import DEFAULTS, FIXED_LATENTS, VisionConfig, VisionScheme

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MAX_SIDE = 1 << 24
"""Pixels; products of two sides are exact in floating point."""
QWEN_MAX_RATIO = 200
SMALL_TEXT = (
    "fixed-latent schemes give every image as many tokens whatever its size, so small text in large images is lost; "
    "take a scheme with native resolution or tiles for documents and screenshots"
)


def image_tokens(width: Int64, height: Int64, vision: VisionConfig) -> Int64:
    """Tokens of each image, int64 [images]; 0 for one that the scheme refuses.

    width, height [images], in pixels, each 1 to MAX_SIDE.
    """
    width, height = np.asarray(width, np.int64), np.asarray(height, np.int64)
    if width.size and not (1 <= min(width.min(), height.min()) <= max(width.max(), height.max()) <= MAX_SIDE):
        raise ValueError(f"images must have sides of 1 to {MAX_SIDE} pixels")
    return RULES[vision.scheme](width, height, **vision.resolved())


def compared(width: Int64, height: Int64, vision: VisionConfig) -> dict[str, int]:
    """Tokens that all these images take under each scheme: the configured one as it is, the others by default."""
    every = {scheme: VisionConfig(scheme=scheme) for scheme in DEFAULTS} | {vision.scheme: vision}
    return {scheme: int(image_tokens(width, height, config).sum()) for scheme, config in every.items()}


def warnings(vision: VisionConfig) -> list[str]:
    """What a user should know of the scheme chosen."""
    return [SMALL_TEXT] if vision.scheme in FIXED_LATENTS else []


def vit_patches(width: Int64, height: Int64, image_size: int, patch_size: int) -> Int64:
    return np.full(width.size, (image_size // patch_size) ** 2, np.int64)


def fixed_latents(width: Int64, height: Int64, latents: int) -> Int64:
    return np.full(width.size, latents, np.int64)


def llava_next(
    width: Int64, height: Int64, image_size: int, patch_size: int, grid: tuple[tuple[int, int], ...]
) -> Int64:
    side = image_size // patch_size
    best_height, best_width = best_resolution(width, height, grid)
    rows = side * (best_height // image_size)
    columns = side * (best_width // image_size)
    wide = width / height > columns / rows
    kept_rows = np.round(height * (columns / width), 7).astype(np.int64)
    kept_columns = np.round(width * (rows / height), 7).astype(np.int64)
    rows = np.where(wide, rows - (rows - kept_rows) // 2 * 2, rows)
    columns = np.where(wide, columns, columns - (columns - kept_columns) // 2 * 2)
    return side * side + rows * columns + rows


def best_resolution(width: Int64, height: Int64, grid: tuple[tuple[int, int], ...]) -> tuple[Int64, Int64]:
    """Of the grid, the height and width that keep most of each image's pixels, then waste fewest."""
    chosen = np.zeros(width.size, np.int64)
    most = np.zeros(width.size, np.int64)
    least = np.full(width.size, np.iinfo(np.int64).max)
    for number, (grid_height, grid_width) in enumerate(grid):
        scale = np.minimum(grid_width / width, grid_height / height)
        kept = np.minimum((width * scale).astype(np.int64) * (height * scale).astype(np.int64), width * height)
        wasted = grid_height * grid_width - kept
        better = (kept > most) | ((kept == most) & (wasted < least))
        chosen[better] = number
        most = np.where(better, kept, most)
        least = np.where(better, wasted, least)
    resolutions = np.array(grid, np.int64)[chosen]
    return resolutions[:, 0], resolutions[:, 1]


def internvl(
    width: Int64,
    height: Int64,
    image_size: int,
    patch_size: int,
    merge_size: int,
    min_tiles: int,
    max_tiles: int,
    thumbnail: bool,
) -> Int64:
    tiles = tile_counts(width, height, image_size, min_tiles, max_tiles)
    tiles += (tiles > 1) & thumbnail
    return tiles * (image_size // patch_size // merge_size) ** 2


def tile_counts(width: Int64, height: Int64, image_size: int, min_tiles: int, max_tiles: int) -> Int64:
    """Tiles of the arrangement of closest ratio; of equal ones a larger, while it covers less than twice the area."""
    sides = range(1, max_tiles + 1)
    arrangements = [(w, h) for w in sides for h in sides if min_tiles <= w * h <= max_tiles]
    arrangements.sort(key=lambda pair: pair[0] * pair[1])
    ratio, area = width / height, width * height
    least = np.full(width.size, np.inf)
    tiles = np.ones(width.size, np.int64)
    for w, h in arrangements:
        off = np.abs(ratio - w / h)
        taken = (off < least) | ((off == least) & (area > 0.5 * image_size * image_size * w * h))
        tiles = np.where(taken, w * h, tiles)
        least = np.minimum(least, off)
    return tiles


def qwen2_5_vl(
    width: Int64, height: Int64, patch_size: int, merge_size: int, min_pixels: int, max_pixels: int
) -> Int64:
    factor = patch_size * merge_size
    across, down = rounded(width, factor), rounded(height, factor)
    area = width * height
    shrink = np.sqrt(area / max_pixels)
    grow = np.sqrt(min_pixels / area)
    large = across * down > max_pixels
    small = ~large & (across * down < min_pixels)
    across, down = (
        np.select(
            [large, small],
            [np.maximum(1, np.floor(side / shrink / factor)) * factor, np.ceil(side * grow / factor) * factor],
            result,
        ).astype(np.int64)
        for side, result in ((width, across), (height, down))
    )
    tokens = (across // factor) * (down // factor)
    refused = np.maximum(width, height) / np.minimum(width, height) > QWEN_MAX_RATIO
    return np.where(refused, 0, tokens)


def rounded(side: Int64, factor: int) -> Int64:
    """The nearest multiple, half to even as Python's round has it."""
    return np.rint(side / factor).astype(np.int64) * factor


RULES: dict[VisionScheme, Callable[..., Any]] = {
    "vit_patches": vit_patches,
    "llava_next": llava_next,
    "internvl": internvl,
    "qwen2_5_vl": qwen2_5_vl,
    "perceiver": fixed_latents,
    "q_former": fixed_latents,
}
