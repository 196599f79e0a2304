"""Encoding documents of text and image blocks: each text block alone, each image as so many placeholder tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.config import PackingConfig
from tokpack_core.config.vision import VisionConfig
from tokpack_core.corpus.content import IMAGE, block_offsets, column, has_content, is_image, text_blocks
from tokpack_core.errors import InputError
from tokpack_core.packing.image_spans import ImageSpans
from tokpack_core.packing.truncation import PackingFigures
from tokpack_core.tokenizers.encoded import Encode, Encoded
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.vision.schemes import QWEN_MAX_RATIO, compared, image_tokens
from tokpack_core.vision.settings import SettingTokens, budget_rows, tokens_by_setting

Int64 = npt.NDArray[np.int64]
SPAN = pa.struct({"start": pa.int64(), "length": pa.int64(), "mode": pa.int8(), "image": pa.string()})
SPANS = pa.list_(SPAN)
"""Images of a document, in order: first token within it, tokens, mode (1), and the name of the image if it has one."""


MOST_IMAGE_TOKENS = 1 << 22
"""Of documents that are encoded at once, besides their text."""


@dataclass(frozen=True)
class Images:
    """The images of a batch of documents."""

    offsets: Int64
    """[documents + 1]: the images of document d are [offsets[d], offsets[d + 1])."""
    start: Int64
    """[images]: first token within the document."""
    length: Int64
    """[images]: tokens, at least 1."""
    name: pa.Array
    """[images], string or null."""

    def as_spans(self) -> ImageSpans:
        return ImageSpans(self.offsets, self.start, self.length)

    def as_column(self, shift: int) -> pa.Array:
        """One list of SPAN a document, starts moved by the tokens put in front of each."""
        modes = pa.array(np.full(self.start.size, IMAGE, np.int8))
        fields = [pa.array(self.start + shift), pa.array(self.length), modes, self.name]
        spans = pa.StructArray.from_arrays(fields, fields=list(SPAN))
        return pa.ListArray.from_arrays(pa.array(self.offsets, pa.int32()), spans).cast(SPANS)


@dataclass(frozen=True)
class ImageCounts:
    """What became of images: how many there are and what they cost, under every scheme."""

    images: int = 0
    tokens: int = 0
    refused: int = 0
    """Images that the scheme refuses and that are left out."""
    compared: tuple[tuple[str, int], ...] = ()
    """Tokens of the same images under each scheme, refused ones not counted."""
    settings: tuple[SettingTokens, ...] = ()
    """Of the same images, under other settings of the scheme."""

    def __add__(self, other: ImageCounts) -> ImageCounts:
        by_scheme = dict(self.compared)
        for scheme, tokens in other.compared:
            by_scheme[scheme] = by_scheme.get(scheme, 0) + tokens
        by_setting = {row.setting: row for row in self.settings}
        for row in other.settings:
            by_setting[row.setting] = by_setting[row.setting] + row if row.setting in by_setting else row
        return ImageCounts(
            self.images + other.images,
            self.tokens + other.tokens,
            self.refused + other.refused,
            tuple(sorted(by_scheme.items())),
            tuple(by_setting.values()),
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "images": self.images,
            "image_tokens": self.tokens,
            "images_refused": self.refused,
            "image_tokens_by_scheme": dict(self.compared),
            "image_tokens_by_setting": [vars(row) for row in self.settings],
        }

    @classmethod
    def from_dict(cls, counts: dict[str, Any]) -> ImageCounts:
        """The inverse of `as_dict`; what is missing is nothing."""
        by_scheme = counts.get("image_tokens_by_scheme", {})
        images, tokens, refused = (counts.get(name, 0) for name in ("images", "image_tokens", "images_refused"))
        settings = tuple(SettingTokens(**row) for row in counts.get("image_tokens_by_setting", []))
        return cls(images, tokens, refused, tuple(sorted(by_scheme.items())), settings)


def compression(found: ImageCounts, figures: PackingFigures, packing: PackingConfig) -> list[dict[str, Any]]:
    """What the documents of a packing would take under other settings of the scheme: see `vision.settings`."""
    text = figures.tokens - figures.image_tokens
    limits = packing.sequence_length, packing.images_per_pack
    return budget_rows(found.settings, found.tokens, found.images, text, *limits)


def encode_text(tokenizer: Tokenizer, batch: pa.RecordBatch, encode: Encode | None = None) -> Encoded:
    """The text of each document, its text blocks encoded one by one; images give nothing.

    `encode`: in place of the tokenizer's own.
    """
    encoded = (encode or tokenizer.encode)(text_blocks(batch))
    if not has_content(batch):
        return encoded
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(~is_image(batch["content"]))])
    return Encoded(encoded.ids, encoded.offsets[before[block_offsets(batch["content"])]])


def bounded_batches(batches: Iterable[pa.RecordBatch], vision: VisionConfig | None) -> Iterator[pa.RecordBatch]:
    """The same documents in batches whose images have at most MOST_IMAGE_TOKENS, or that are one document.

    The few bytes of a size may become many tokens.
    """
    for batch in batches:
        yield from (batch,) if vision is None else bounded_slices(batch, vision)


def bounded_slices(batch: pa.RecordBatch, vision: VisionConfig) -> Iterator[pa.RecordBatch]:
    content = batch["content"]
    image = is_image(content)
    tokens = np.zeros(image.size + 1, np.int64)
    width, height = (column(content, name)[image].astype(np.int64) for name in ("width", "height"))
    tokens[1:][image] = image_tokens(width, height, vision)
    ends = np.cumsum(tokens)[block_offsets(content)]
    start = 0
    while start < len(batch):
        stop = max(int(np.searchsorted(ends, ends[start] + MOST_IMAGE_TOKENS, side="right")) - 1, start + 1)
        yield batch.slice(start, stop - start)
        start = stop


def encode_interleaved(
    tokenizer: Tokenizer, batch: pa.RecordBatch, vision: VisionConfig, placeholder: int, encode: Encode | None = None
) -> tuple[Encoded, Images, ImageCounts]:
    """Text and images of each document, `placeholder` at every position of an image; `encode` as in `encode_text`.

    Raises InputError for an image that the scheme refuses, unless `vision.refused_images` leaves them out.
    """
    content = batch["content"]
    image = is_image(content)
    width, height = (column(content, name)[image].astype(np.int64) for name in ("width", "height"))
    tokens = image_tokens(width, height, vision)
    refused = tokens == 0
    offsets = block_offsets(content)
    if refused.any() and vision.refused_images == "error":
        raise refusal(batch, offsets, image, int(np.argmax(refused)), vision, width, height)
    encoded = (encode or tokenizer.encode)(text_blocks(batch))
    lengths = np.empty(image.size, np.int64)
    lengths[image], lengths[~image] = tokens, encoded.lengths
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    ids = np.full(int(ends[-1]), placeholder, np.int32)
    ids[np.repeat(~image, lengths)] = encoded.ids
    documents = ends[offsets]
    kept = image & (lengths > 0)
    of_document = np.repeat(np.arange(len(batch)), np.diff(offsets))[kept]
    spans = Images(
        np.searchsorted(of_document, np.arange(len(batch) + 1)).astype(np.int64),
        ends[:-1][kept] - documents[of_document],
        lengths[kept],
        content.flatten().field("image").filter(pa.array(kept)),
    )
    sizes = width[~refused], height[~refused]
    counts = ImageCounts(
        spans.start.size,
        int(spans.length.sum()),
        int(refused.sum()),
        tuple(sorted(compared(*sizes, vision).items())),
        tokens_by_setting(*sizes, vision),
    )
    return Encoded(ids, documents), spans, counts


def refusal(
    batch: pa.RecordBatch,
    offsets: Int64,
    image: npt.NDArray[np.bool_],
    number: int,
    vision: VisionConfig,
    width: Int64,
    height: Int64,
) -> InputError:
    block = int(np.flatnonzero(image)[number])
    row = int(np.searchsorted(offsets, block, side="right")) - 1
    place = f"row {batch['row'][row].as_py()}" if "row" in batch.schema.names else f"document {row} of a batch"
    source = f"{batch['source'][row].as_py()}, " if "source" in batch.schema.names else ""
    return InputError(
        f"{source}{place}: scheme {vision.scheme} refuses an image of {width[number]} x {height[number]} pixels, one "
        f"side more than {QWEN_MAX_RATIO} times the other: mend it, or leave such images out with "
        "`vision: {refused_images: drop}` (`--vision-parameter refused_images=drop`)"
    )
