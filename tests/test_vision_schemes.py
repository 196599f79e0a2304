"""Tokens of images: by hand from the published rules, and against transformers' own image processors."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tokpack_core.config.vision import DEFAULTS, VisionConfig
from tokpack_core.vision.schemes import MAX_SIDE, compared, image_tokens, warnings
from tokpack_core.vision.settings import SettingTokens, budget_rows, settings_of, tokens_by_setting


def tokens(scheme: str, width: int, height: int, **parameters: object) -> int:
    vision = VisionConfig(scheme=scheme, **parameters)
    return int(image_tokens(np.array([width]), np.array([height]), vision)[0])


BY_HAND = [
    ("vit_patches", 1, 9_999, {}, 24 * 24),
    ("vit_patches", 640, 480, {"image_size": 224, "patch_size": 16}, 14 * 14),
    ("perceiver", 4_000, 3_000, {}, 64),
    ("q_former", 4_000, 3_000, {}, 32),
    ("q_former", 10, 10, {"latents": 7}, 7),
    # 672 x 672 keeps most of 1000 x 1000: 48 x 48 patches, 48 row ends, 24 x 24 of the whole image
    ("llava_next", 1_000, 1_000, {}, 576 + 48 * 48 + 48),
    # 672 wide, 336 high is kept whole by 336 x 672: 24 rows of 48
    ("llava_next", 672, 336, {}, 576 + 24 * 48 + 24),
    # 1008 x 336 takes three tiles across; of 24 rows, int(504 x 72 / 1600) = 22 are kept, 2 are padding
    ("llava_next", 1_600, 504, {}, 576 + 22 * 72 + 22),
    # one tile, so no thumbnail: (448 / 14 / 2)^2
    ("internvl", 448, 448, {}, 256),
    # the ratio 2 has 2 x 1, 4 x 2: 4 x 2 covers 8 x 448^2, not less than twice 896 x 448
    ("internvl", 896, 448, {}, (2 + 1) * 256),
    ("internvl", 896, 448, {"thumbnail": False}, 2 * 256),
    # ratio 1 with a large area: 3 x 3 is the last of 1 x 1, 2 x 2, 3 x 3 within 12 tiles
    ("internvl", 4_000, 4_000, {}, (9 + 1) * 256),
    ("internvl", 4_000, 4_000, {"max_tiles": 4}, (4 + 1) * 256),
    # 644 / 28 = 23, 476 / 28 = 17
    ("qwen2_5_vl", 640, 480, {}, 23 * 17),
    # too small: 56 x 56 pixels is the least
    ("qwen2_5_vl", 10, 10, {}, 4),
    # half a factor goes to even: 42 / 28 = 1.5 -> 2, 70 / 28 = 2.5 -> 2
    ("qwen2_5_vl", 42, 70, {}, 4),
    # 10^6 x 10^6 shrinks to sqrt(1003520) = 1001.7 a side: 35 x 35
    ("qwen2_5_vl", 10**6, 10**6, {"max_pixels": 1_003_520}, 35 * 35),
    ("qwen2_5_vl", 5_601, 28, {}, 0),
    ("qwen2_5_vl", 5_600, 28, {}, 200),
]


@pytest.mark.parametrize(("scheme", "width", "height", "parameters", "expected"), BY_HAND)
def test_published_rules_by_hand(
    scheme: str, width: int, height: int, parameters: dict[str, object], expected: int
) -> None:
    assert tokens(scheme, width, height, **parameters) == expected


def sizes(seed: int, images: int = 400) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    drawn = [(int(2 ** rng.uniform(0, 13)), int(2 ** rng.uniform(0, 13))) for _ in range(images)]
    square = [(side, side) for side in (1, 13, 14, 27, 28, 42, 335, 336, 337, 448, 671, 672, 1_008, 5_000)]
    return drawn + square + [(w, h) for w, h in ((10**6, 10**6), (10**6, 3), (1, 10**5), (1_792, 448), (672, 336))]


def all_tokens(scheme: str, images: list[tuple[int, int]], **parameters: object) -> list[int]:
    width, height = np.array(images).T
    return image_tokens(width, height, VisionConfig(scheme=scheme, **parameters)).tolist()


def test_qwen2_5_vl_is_transformers_smart_resize() -> None:
    module = pytest.importorskip("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl")
    images = sizes(0)
    for low, high in ((3_136, 12_845_056), (3_136, 1_003_520), (200_704, 250_000)):
        expected = []
        for width, height in images:
            try:
                down, across = module.smart_resize(height, width, 28, low, high)
            except ValueError:
                down = across = 0
            expected.append(down // 28 * (across // 28))
        assert all_tokens("qwen2_5_vl", images, min_pixels=low, max_pixels=high) == expected


def test_internvl_is_transformers_tiling() -> None:
    module = pytest.importorskip("transformers.models.got_ocr2.image_processing_pil_got_ocr2")
    images = sizes(1)
    for low, high in ((1, 12), (1, 6), (2, 40), (3, 3)):
        expected = []
        for width, height in images:
            across, down = module.get_optimal_tiled_canvas((height, width), (448, 448), low, high)
            tiles = across * down
            expected.append((tiles + (tiles > 1)) * 256)
        assert all_tokens("internvl", images, min_tiles=low, max_tiles=high) == expected


def test_llava_next_is_transformers_processor() -> None:
    module = pytest.importorskip("transformers.models.llava_next.processing_llava_next")

    processor = object.__new__(module.LlavaNextProcessor)
    processor.image_processor = SimpleNamespace(image_grid_pinpoints=DEFAULTS["llava_next"]["grid"])
    processor.patch_size, processor.num_additional_image_tokens = 14, 0
    images = sizes(2)
    expected = [processor._get_number_of_features(height, width, 336, 336) for width, height in images]
    assert all_tokens("llava_next", images) == expected


@settings(max_examples=60, deadline=None)
@given(
    images=st.lists(st.tuples(st.integers(1, MAX_SIDE), st.integers(1, MAX_SIDE)), min_size=1, max_size=20),
    scheme=st.sampled_from(sorted(DEFAULTS)),
)
def test_every_size_has_tokens_within_the_limits(images: list[tuple[int, int]], scheme: str) -> None:
    vision = VisionConfig(scheme=scheme)
    width, height = np.array(images).T
    found = image_tokens(width, height, vision)
    for size, count in zip(images, found.tolist(), strict=True):
        alone = int(image_tokens(np.array(size[:1]), np.array(size[1:]), vision)[0])
        assert count == alone
        if scheme == "qwen2_5_vl" and max(size) / min(size) > 200:
            assert count == 0
        else:
            assert 1 <= count <= 16_384
    assert compared(width, height, vision)[scheme] == found.sum()


def test_fixed_latents_come_with_a_warning() -> None:
    assert "small text" in warnings(VisionConfig(scheme="perceiver"))[0]
    assert warnings(VisionConfig(scheme="qwen2_5_vl")) == []


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"scheme": "clip"}, "vit_patches"),
        ({"scheme": "q_former", "max_pixels": 5}, "max_pixels is no parameter of scheme q_former, which takes latents"),
        ({"scheme": "internvl", "min_tiles": 5, "max_tiles": 4}, "min_tiles 5 is more than max_tiles 4"),
        ({"scheme": "internvl", "image_size": 450}, "image_size 450 is no multiple of the 28 pixels"),
        ({"scheme": "llava_next", "grid": [[336, 500]]}, "[336, 500] is no multiple of image_size 336"),
        ({"scheme": "qwen2_5_vl", "min_pixels": 0}, "greater than or equal to 1"),
        ({"scheme": "qwen2_5_vl", "max_pixels": 2**31}, "an image could become 2739137 tokens: at most 1048576"),
        ({"scheme": "vit_patches", "image_size": 65_536, "patch_size": 1}, "an image could become 4294967296 tokens"),
        ({"scheme": "internvl", "max_tiles": 256, "image_size": 4_480}, "an image could become 6579200 tokens"),
    ],
)
def test_wrong_parameters_are_told(parameters: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        VisionConfig(**parameters)
    assert said in str(caught.value)


def test_sizes_out_of_range_are_refused() -> None:
    for width in (0, -1, MAX_SIDE + 1):
        with pytest.raises(ValueError, match="sides of 1"):
            image_tokens(np.array([width]), np.array([10]), VisionConfig(scheme="internvl"))


@pytest.mark.parametrize("scheme", DEFAULTS)
def test_every_scheme_is_compared_under_three_settings_and_more(scheme: str) -> None:
    vision = VisionConfig(scheme=scheme)
    found = settings_of(vision)
    assert len(found) >= 3
    width, height = np.array([2_000, 300, 1_024]), np.array([1_500, 300, 768])
    rows = tokens_by_setting(width, height, vision)
    assert [row.tokens for row in rows] == sorted((row.tokens for row in rows), reverse=True)
    assert rows[0].tokens > rows[-1].tokens
    assert [row.setting for row in rows if row.configured] == [
        label for label, setting in found.items() if setting.resolved() == vision.resolved()
    ]
    assert sum(row.configured for row in rows) == 1


def test_the_least_settings_are_compared_with_larger_ones() -> None:
    for vision in (
        VisionConfig(scheme="internvl", max_tiles=1),
        VisionConfig(scheme="qwen2_5_vl", max_pixels=3_136),
        VisionConfig(scheme="perceiver", latents=1),
        VisionConfig(scheme="vit_patches", image_size=28, patch_size=14),
    ):
        assert len(settings_of(vision)) >= 3


def test_what_is_configured_is_told_where_settings_take_the_same_tokens() -> None:
    rows = tokens_by_setting(np.array([56]), np.array([56]), VisionConfig(scheme="qwen2_5_vl"))
    assert {row.tokens for row in rows} == {4}
    budget = budget_rows(rows, 4, 1, 0, 256, None)
    assert [row["setting"] for row in budget if row["configured"]] == ["max_pixels 12,845,056"]


def test_settings_by_hand() -> None:
    # 1,024 x 1,024 is 37 x 37 tokens; reduced to 501,760 pixels 25 x 25, to 125,440 12 x 12, to 31,360 6 x 6.
    vision = VisionConfig(scheme="qwen2_5_vl", max_pixels=501_760)
    rows = tokens_by_setting(np.array([1_024, 56]), np.array([1_024, 56]), vision)
    sides = {2_007_040: 37, 1_003_520: 35, 501_760: 25, 250_880: 17, 125_440: 12, 31_360: 6}
    assert rows == tuple(
        SettingTokens(f"max_pixels {pixels:,}", pixels == 501_760, side * side + 4, side * side)
        for pixels, side in sides.items()
    )
    small = tokens_by_setting(np.array([9]), np.array([9]), VisionConfig(scheme="q_former"))
    assert [row.setting for row in small] == ["latents 128", "latents 64", "latents 32", "latents 16"]
    # 629 tokens of images and 371 of text: 1,000 of 256 a pack are 4 packs; of 2 images one pack each are 2.
    budget = budget_rows(rows, 629, 2, 371, 256, 1)
    assert [row["configured"] for row in budget] == [False, False, True, False, False, False]
    assert budget[2] == {
        "setting": "max_pixels 501,760",
        "configured": True,
        "image_tokens": 629,
        "tokens": 1_000,
        "vision_share": 0.629,
        "packs_at_least": 4,
        "largest_image": 625,
    }
    assert budget[5]["packs_at_least"] == 2
    assert budget_rows(rows, 626, 2, 371, 256, 1) == []
