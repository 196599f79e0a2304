"""The same images under other settings of one scheme: what compressing them more, or less, would cost and save.

Each scheme has one parameter that trades tokens for detail: the area to which images are reduced (qwen2_5_vl), the most
tiles (internvl), the resolutions of the grid (llava_next), the side of the square image (vit_patches), the latents
(perceiver, q_former). It is varied about the configured value; all other parameters stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tokpack_core.config.vision import VisionConfig
from tokpack_core.vision.schemes import image_tokens

FACTORS = {
    "max_pixels": (4.0, 2.0, 1.0, 0.5, 0.25, 0.0625),
    "max_tiles": (4.0, 2.0, 1.0, 0.5, 0.25),
    "image_size": (2.0, 1.5, 1.0, 0.75, 0.5),
    "latents": (4.0, 2.0, 1.0, 0.5),
}
"""Of the configured value"""
GRID_PIXELS = (1.0, 0.75, 0.5)
"""Largest resolutions of a grid that are kept, of the largest it has"""
VARIED = {
    "vit_patches": "image_size",
    "llava_next": "grid",
    "internvl": "max_tiles",
    "qwen2_5_vl": "max_pixels",
    "perceiver": "latents",
    "q_former": "latents",
}


def settings_of(vision: VisionConfig) -> dict[str, VisionConfig]:
    """By name, most tokens first; the configured one is among them."""
    name = VARIED[vision.scheme]
    given = vision.model_dump(exclude_none=True)
    found: dict[str, VisionConfig] = {}
    for label, value in values_of(name, vision.resolved()):
        try:
            found.setdefault(label, VisionConfig.model_validate(given | {name: value}))
        except ValueError:
            continue  # beyond what the scheme can have
    return found


def values_of(name: str, resolved: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    value = resolved[name]
    if name == "grid":
        most = max(height * width for height, width in value)
        for share in GRID_PIXELS:
            kept = tuple(pair for pair in value if pair[0] * pair[1] <= share * most)
            if kept:
                yield f"grid of {len(kept)}, up to {max(h * w for h, w in kept):,} pixels", kept
        return
    unit = resolved["patch_size"] if name == "image_size" else 1
    for factor in FACTORS[name]:
        varied = value if factor == 1 else max(int(value * factor) // unit, 1) * unit
        yield f"{name} {varied:,}", varied


@dataclass(frozen=True)
class SettingTokens:
    """What images take under one setting."""

    setting: str
    configured: bool
    tokens: int
    largest: int
    """Tokens of the largest image."""

    def __add__(self, other: SettingTokens) -> SettingTokens:
        largest = max(self.largest, other.largest)
        return SettingTokens(self.setting, self.configured, self.tokens + other.tokens, largest)


def tokens_by_setting(
    width: npt.NDArray[np.int64], height: npt.NDArray[np.int64], vision: VisionConfig
) -> tuple[SettingTokens, ...]:
    """Of all images, under each of `settings_of`."""
    rows = []
    for label, setting in settings_of(vision).items():
        tokens = image_tokens(width, height, setting)
        configured = setting.resolved() == vision.resolved()
        rows.append(SettingTokens(label, configured, int(tokens.sum()), int(tokens.max(initial=0))))
    return tuple(rows)


def budget_rows(
    settings: tuple[SettingTokens, ...],
    configured_tokens: int,
    images: int,
    text_tokens: int,
    sequence_length: int,
    images_per_pack: int | None,
) -> list[dict[str, Any]]:
    """What a corpus takes under each setting, packed to `sequence_length`.

    setting, configured, image_tokens, tokens (text included), vision_share of them, packs_at_least (the greater of the
    bounds by tokens and by images), largest_image (tokens; more than a pack cannot be packed). None if the settings are
    not of these images: the configured one must give `configured_tokens`.
    """
    if [row.tokens for row in settings if row.configured] != [configured_tokens]:
        return []
    by_images = -(-images // images_per_pack) if images_per_pack else 0
    return [
        {
            "setting": row.setting,
            "configured": row.configured,
            "image_tokens": row.tokens,
            "tokens": text_tokens + row.tokens,
            "vision_share": row.tokens / max(text_tokens + row.tokens, 1),
            "packs_at_least": max(-(-(text_tokens + row.tokens) // sequence_length), by_images),
            "largest_image": row.largest,
        }
        for row in settings
    ]
