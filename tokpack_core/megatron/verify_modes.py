"""Whether the modes of a multimodal prefix fit its tokens: images are the placeholder, and text never holds it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tokpack_core.megatron.indexed_dataset import Index, idx_path
from tokpack_core.megatron.indexed_reader import Tokens
from tokpack_core.training.segments import IMAGE

TOKEN_CHUNK = 1 << 22


@dataclass(frozen=True)
class ExpectedImages:
    """What a manifest says of the images of a prefix whose sequences are runs of text and images."""

    placeholder: int
    images: int | None = None
    tokens: int | None = None
    """None if unknown"""


def mode_problems(prefix: Path, index: Index, tokens: Tokens, expected: ExpectedImages) -> list[str]:
    """Only for an index without structural problems: every sequence is then inside `tokens`."""
    path = idx_path(prefix)
    if index.modes is None:
        if not expected.images:
            return []
        return [f"{path} has no modes, but by the manifest {expected.images} images are in it: encode it again"]
    first = {"image of text": -1, "text of images": -1}
    found = found_tokens = begin = 0
    starts = index.sequence_pointers // index.dtype.itemsize
    while begin < starts.size:
        end = max(int(np.searchsorted(starts, starts[begin] + TOKEN_CHUNK)), begin + 1)
        length = index.sequence_lengths[begin:end].astype(np.int64)
        part = tokens[starts[begin] : starts[end - 1] + length[-1]]
        held = np.add.reduceat(part == expected.placeholder, starts[begin:end] - starts[begin], dtype=np.int64)
        image = index.modes[begin:end] == IMAGE
        found += int(np.count_nonzero(image))
        found_tokens += int(length[image].sum())
        for fault, wrong in (("image of text", image & (held < length)), ("text of images", ~image & (held > 0))):
            if first[fault] < 0 and wrong.any():
                first[fault] = begin + int(np.argmax(wrong))
        begin = end
    problems = []
    if first["image of text"] >= 0:
        problems.append(
            f"{path}: sequence {first['image of text']} is an image by its mode, but holds more than the placeholder "
            f"{expected.placeholder}: the modes do not fit the tokens, encode it again"
        )
    if first["text of images"] >= 0:
        problems.append(
            f"{path}: sequence {first['text of images']} is text by its mode, but holds the placeholder "
            f"{expected.placeholder} of images: the modes do not fit the tokens, encode it again"
        )
    if not problems and expected.images is not None and (found, found_tokens) != (expected.images, expected.tokens):
        problems.append(
            f"{path}: {found} images of {found_tokens} tokens are in it, but by the manifest {expected.images} of "
            f"{expected.tokens}: an image is cut, missing or joined to another, encode it again"
        )
    return problems
