"""How many tokens an image becomes: a scheme by name, and the parameters that it has.

The defaults are those of the models that made the schemes known, as their published code has them:

vit_patches  one square image of fixed size cut into patches (LLaVA-1.5 with CLIP ViT-L/14 at 336 pixels: 576 tokens)
llava_next   "anyres" of LLaVA-NeXT: the image in the best of the grid's resolutions, padding taken off, a token at
             the end of each row of patches, and a small whole image beside it
internvl     dynamic tiles of 448 pixels of InternVL 1.5 and later, pixel shuffle to 256 tokens a tile, a thumbnail
qwen2_5_vl   native resolution of Qwen2-VL and Qwen2.5-VL: sides rounded to multiples of 28 pixels, area within limits
perceiver    the latents of a Perceiver resampler (Flamingo: 64), whatever the image
q_former     the queries of a Q-Former (BLIP-2: 32), whatever the image
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

VisionScheme = Literal["vit_patches", "llava_next", "internvl", "qwen2_5_vl", "perceiver", "q_former"]
Side = Field(default=None, ge=1, le=2**16)
Pixels = Field(default=None, ge=1, le=2**40)

DEFAULTS: dict[VisionScheme, dict[str, Any]] = {
    "vit_patches": {"image_size": 336, "patch_size": 14},
    "llava_next": {
        "image_size": 336,
        "patch_size": 14,
        "grid": ((336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008)),
    },
    "internvl": {
        "image_size": 448,
        "patch_size": 14,
        "merge_size": 2,
        "min_tiles": 1,
        "max_tiles": 12,
        "thumbnail": True,
    },
    "qwen2_5_vl": {"patch_size": 14, "merge_size": 2, "min_pixels": 3_136, "max_pixels": 12_845_056},
    "perceiver": {"latents": 64},
    "q_former": {"latents": 32},
}
FIXED_LATENTS: tuple[VisionScheme, ...] = ("perceiver", "q_former")


MOST_TOKENS = 2**20
"""Of one image."""


def most_tokens(parameters: dict[str, Any]) -> int:
    """About how many tokens an image has at most."""
    token = parameters.get("patch_size", 1) * parameters.get("merge_size", 1)
    tile = (parameters.get("image_size", 0) // token) ** 2
    grid = max((height * width // token**2 for height, width in parameters.get("grid", ())), default=0)
    tiles = parameters.get("max_tiles", 0) + parameters.get("thumbnail", False)
    native: int = parameters.get("max_pixels", 0) // token**2
    return max(tile * max(tiles, 1) + grid, native)


class VisionConfig(BaseModel):
    """A scheme and what of its parameters differs from the published default."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    scheme: VisionScheme
    """The rule by which an image becomes tokens."""
    image_size: int | None = Side
    """vit_patches, llava_next, internvl: pixels of a side of the square image or tile."""
    patch_size: int | None = Side
    """All but the fixed latents: pixels of a side of a patch."""
    merge_size: int | None = Field(default=None, ge=1, le=64)
    """internvl (pixel shuffle), qwen2_5_vl: merge_size x merge_size patches become one token."""
    grid: tuple[tuple[int, int], ...] | None = Field(default=None, min_length=1, max_length=256)
    """llava_next: the resolutions [height, width] that an image may take."""
    min_tiles: int | None = Field(default=None, ge=1, le=256)
    """internvl: fewest tiles of an image."""
    max_tiles: int | None = Field(default=None, ge=1, le=256)
    """internvl: most tiles of an image, without the thumbnail."""
    thumbnail: bool | None = None
    """internvl: whether an image of several tiles has a small whole one besides."""
    min_pixels: int | None = Pixels
    """qwen2_5_vl: area up to which a smaller image is enlarged."""
    max_pixels: int | None = Pixels
    """qwen2_5_vl: area to which a larger image is reduced."""
    latents: int | None = Field(default=None, ge=1, le=2**20)
    """perceiver, q_former: tokens of every image."""
    refused_images: Literal["error", "drop"] = "error"
    """What happens to an image that the scheme's own code refuses (qwen2_5_vl: a side above 200 times the other)."""

    @model_validator(mode="after")
    def parameters_belong_to_the_scheme(self) -> VisionConfig:
        known = DEFAULTS[self.scheme]
        for name in self.model_fields_set - {"scheme", "refused_images"}:
            if name not in known:
                raise ValueError(f"{name} is no parameter of scheme {self.scheme}, which takes {', '.join(known)}")
        value = self.resolved()
        unit = value.get("patch_size", 1) * value.get("merge_size", 1)
        for side in [value["image_size"]] if "image_size" in value else []:
            if side % unit:
                raise ValueError(f"image_size {side} is no multiple of the {unit} pixels of a token")
        most = most_tokens(value)
        if most > MOST_TOKENS:
            raise ValueError(f"an image could become {most} tokens: at most {MOST_TOKENS} are possible")
        for pair in value.get("grid", ()):
            if any(not 1 <= side <= 2**16 or side % value["image_size"] for side in pair):
                raise ValueError(f"grid: {list(pair)} is no multiple of image_size {value['image_size']} on both sides")
        for low, high in (("min_tiles", "max_tiles"), ("min_pixels", "max_pixels")):
            if low in value and value[low] > value[high]:
                raise ValueError(f"{low} {value[low]} is more than {high} {value[high]}")
        return self

    def resolved(self) -> dict[str, Any]:
        """Every parameter of the scheme by name, defaults filled in."""
        given = self.model_dump(exclude_none=True)
        return {name: given.get(name, default) for name, default in DEFAULTS[self.scheme].items()}

    def parameters(self) -> dict[str, Any]:
        """What shapes tokens, for keys and manifests."""
        return {"scheme": self.scheme, "refused_images": self.refused_images, **self.resolved()}
