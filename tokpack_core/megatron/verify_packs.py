"""What can be said about packs from their `_docs` view: ends of documents, gaps, filled tails and images.

A pack is a Megatron document of the view, its sequences are pieces of documents, or where there are images the runs of
text and image that pieces are made of; gaps up to the next multiple of the alignment and a filled tail are sequences
too. DOCS_PREFIX.segments.npy says which sequence is what. Sets of text that have no such file are judged without: gaps
are then known by where they start, and a last sequence that is nothing but EOD is a filled tail. How many positions are
filled, how many pieces go on elsewhere and so end without EOD, and how many images there are, is not in the files: the
manifest says it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import CHUNK, Index, idx_path
from tokpack_core.megatron.indexed_reader import Tokens
from tokpack_core.training.segments import FILL, IMAGE, ImageAttention
from tokpack_core.training.segments_file import Rows, read_segment_rows, segments_path

TOKEN_CHUNK = 1 << 22
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ExpectedPacks:
    """What a manifest says of packs."""

    sequence_length: int
    eod: int
    align: int = 1
    padding: int | None = None
    """Positions that EOD fills, in gaps and tails; None if unknown."""
    continued: int | None = None
    """Pieces that are not their document's last; None if unknown."""
    image: int | None = None
    """Id of the placeholder of images; None if unknown."""
    images: int | None = None
    image_tokens: int | None = None
    """Of all images that are in packs; None if unknown."""


@dataclass(frozen=True)
class PackView:
    """Some packs, sequence by sequence; arrays are [sequences]."""

    pack: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    is_last: Flags
    """Of its pack."""
    is_gap: Flags
    """Fills the room before the next piece."""
    is_filler: Flags
    """Is a gap or a filled tail."""
    ends_document: Flags
    """Nothing of the same document follows in the pack."""
    is_image: Flags
    not_eod: npt.NDArray[np.int64]
    """Tokens that are not EOD."""
    placeholders: npt.NDArray[np.int64]
    """Tokens that are the placeholder of images."""
    ends_in_eod: Flags


@dataclass
class Found:
    """Sums over all packs, and the first pack with each fault, -1 where there is none."""

    padding: int = 0
    opened: int = 0
    images: int = 0
    image_tokens: int = 0
    first: dict[str, int] = field(default_factory=dict)

    def note(self, fault: str, view: PackView, flags: Flags) -> None:
        if fault not in self.first and flags.any():
            self.first[fault] = int(view.pack[np.argmax(flags)])


def pack_problems(docs_prefix: Path, index: Index, tokens: Tokens, expected: ExpectedPacks) -> list[str]:
    """Problems of a `_docs` view whose index has none, and whose pointers are therefore inside `tokens`."""
    path = idx_path(docs_prefix)
    packs = index.document_indices.size - 1
    for begin in range(0, packs, CHUNK):
        sizes = np.diff(document_starts(index, tokens, begin, min(begin + CHUNK, packs)))
        wrong = np.flatnonzero(sizes != expected.sequence_length)
        if wrong.size:
            return [
                f"{path}: pack {begin + wrong[0]} of {packs} is not {expected.sequence_length} tokens but "
                f"{sizes[wrong[0]]}: Megatron's samples would drift off the packs"
            ]
    try:
        rows = read_segment_rows(docs_prefix, index.sequence_lengths.size)
    except InputError as error:
        return [str(error)]
    if rows is None and index.modes is not None:
        return [
            f"{path} has images, but {segments_path(docs_prefix)}, which tells documents apart, is missing: copy it"
        ]
    if rows is not None:
        problems = row_problems(segments_path(docs_prefix), index, rows)
        if problems:
            return problems
    found = Found()
    for view in pack_views(index, tokens, expected, rows):
        look_at(view, expected, found)
    return [*filler_problems(path, expected, found), *image_problems(path, index, expected, found)]


def row_problems(path: Path, index: Index, rows: Rows) -> list[str]:
    """Documents of a pack are numbered from 0 in the order in which they come, and image_attention has three values."""
    edges = index.document_indices
    for begin in range(0, edges.size - 1, CHUNK):
        bounds = edges[begin : begin + CHUNK + 1]
        part = rows[bounds[0] : bounds[-1]]
        new_pack = np.zeros(part.size, np.bool_)
        new_pack[bounds[:-1] - bounds[0]] = True
        document = part["document"].astype(np.int64)
        kept = np.flatnonzero(document != FILL)
        pack = np.cumsum(new_pack)[kept]
        first = np.append(True, pack[1:] != pack[:-1])[: kept.size]
        step = np.diff(document[kept], prepend=-1)
        wrong = np.where(first, document[kept] != 0, (step < 0) | (step > 1))
        bad = np.concatenate(
            [kept[wrong], np.flatnonzero((document < FILL) | ~np.isin(part["image_attention"], list(ImageAttention)))]
        )
        if bad.size:
            return [
                f"{path}: row {int(bounds[0]) + int(bad.min())} does not number the documents of its pack from 0 in "
                "their order, or has no known image_attention: export the set again"
            ]
    return []


def look_at(view: PackView, expected: ExpectedPacks, found: Found) -> None:
    clean = view.not_eod == 0
    found.padding += int(view.length[view.is_filler & clean].sum())
    found.note("spoiled gap", view, view.is_gap & ~clean)
    found.note("spoiled tail", view, view.is_filler & ~view.is_gap & ~clean)
    open_ended = view.ends_document & ~view.ends_in_eod & ~view.is_filler
    found.opened += int(np.count_nonzero(open_ended))
    found.note("open inside", view, open_ended & ~view.is_last)
    found.note("open at end", view, open_ended & view.is_last)
    has_inner_eod = view.length - view.not_eod > view.ends_in_eod
    found.note("mixed tail", view, view.is_last & ~view.is_filler & has_inner_eod)
    found.images += int(np.count_nonzero(view.is_image))
    found.image_tokens += int(view.length[view.is_image].sum())
    found.note("filled image", view, view.is_image & view.is_filler)
    if expected.image is not None:
        found.note("image of text", view, view.is_image & (view.placeholders < view.length))
        found.note("text of images", view, ~view.is_image & (view.placeholders > 0))
    cut = ~view.is_image & ~view.is_filler & ~view.ends_document
    cut[:-1] &= ~view.is_image[1:]
    found.note("cut text", view, cut)


def filler_problems(path: Path, expected: ExpectedPacks, found: Found) -> Iterator[str]:
    spoiled = found.first.get("spoiled gap", found.first.get("spoiled tail"))
    if spoiled is not None:
        where = "after a document" if "spoiled gap" in found.first else "at the end"
        yield f"{path}: padding that is not EOD {expected.eod} {where} of pack {spoiled}: pack again"
    elif expected.padding is not None and found.padding < expected.padding:
        mixed = found.first.get("mixed tail")
        where = f", perhaps at the end of pack {mixed}" if mixed is not None else ""
        yield (
            f"{path}: padding that is not EOD {expected.eod}: by the manifest {expected.padding} positions are "
            f"padding, but {found.padding} are found filled with it{where}: pack again"
        )
    if expected.continued is not None and found.opened > expected.continued:
        first = found.first.get("open inside", found.first.get("open at end"))
        yield (
            f"{path}: {found.opened} pieces of documents do not end in EOD {expected.eod}, but only "
            f"{expected.continued} go on in another pack by the manifest, first in pack {first}: pack again"
        )


def image_problems(path: Path, index: Index, expected: ExpectedPacks, found: Found) -> Iterator[str]:
    first = found.first
    if index.modes is None:
        if expected.images:
            yield f"{path} has no modes, but by the manifest {expected.images} images are in it: export it again"
        return
    if "filled image" in first:
        yield f"{path}: an image of pack {first['filled image']} is of no document by the segments: export it again"
    if "image of text" in first:
        yield (
            f"{path}: an image of pack {first['image of text']} holds more than the placeholder {expected.image}: the "
            "modes do not fit the tokens, export it again"
        )
    if "text of images" in first:
        yield (
            f"{path}: text of pack {first['text of images']} holds the placeholder {expected.image} of images: the "
            "modes do not fit the tokens, export it again"
        )
    if "cut text" in first:
        yield (
            f"{path}: text of pack {first['cut text']} is cut where no image borders: sequences are runs of one mode, "
            "export it again"
        )
    for kind, expects, counted in (
        ("images", expected.images, found.images),
        ("positions of images", expected.image_tokens, found.image_tokens),
    ):
        if expects is not None and expects != counted:
            yield (
                f"{path}: {counted} {kind} are in its packs, but {expects} by the manifest: an image is cut, missing "
                "or joined to another, pack again"
            )


def document_starts(index: Index, tokens: Tokens, begin: int, end: int) -> npt.NDArray[np.int64]:
    """First token of documents begin .. end - 1, and where the last of them ends: [end - begin + 1]."""
    edges = index.document_indices[begin : end + 1]
    starts = np.full(edges.size, tokens.size, np.int64)
    inside = edges < index.sequence_lengths.size
    starts[inside] = index.sequence_pointers[edges[inside]] // index.dtype.itemsize
    return starts


def pack_views(index: Index, tokens: Tokens, expected: ExpectedPacks, rows: Rows | None) -> Iterator[PackView]:
    step = max(1, TOKEN_CHUNK // expected.sequence_length)
    edges, size = index.document_indices, expected.sequence_length
    for begin in range(0, edges.size - 1, step):
        end = min(begin + step, edges.size - 1)
        first, last = int(edges[begin]), int(edges[end])
        length = index.sequence_lengths[first:last].astype(np.int64)
        stop = np.cumsum(length)
        start = stop - length
        part = tokens[begin * size : end * size]
        not_eod = np.add.reduceat(part != expected.eod, start, dtype=np.int64)
        is_last = stop % size == 0
        if rows is None:
            is_gap = start % size % expected.align != 0
            is_filler = is_gap | (is_last & (not_eod == 0))
            ends_document = np.ones(length.size, np.bool_)
        else:
            document = rows["document"][first:last]
            is_filler = document == FILL
            is_gap = is_filler & (start % size % expected.align != 0)
            ends_document = is_last.copy()
            ends_document[:-1] |= document[1:] != document[:-1]
        no_image = np.zeros(length.size, np.bool_)
        yield PackView(
            pack=begin + start // size,
            length=length,
            is_last=is_last,
            is_gap=is_gap,
            is_filler=is_filler,
            ends_document=ends_document,
            is_image=no_image if index.modes is None else index.modes[first:last] == IMAGE,
            not_eod=not_eod,
            placeholders=np.add.reduceat(part == expected.image, start, dtype=np.int64)
            if index.modes is not None and expected.image is not None
            else np.zeros(length.size, np.int64),
            ends_in_eod=part[stop - 1] == expected.eod,
        )
