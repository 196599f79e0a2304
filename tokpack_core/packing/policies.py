"""From lengths and a configuration to a plan: what is dropped, how documents are cut and aligned, who places them.

Policies come before the strategy: documents too long or last pieces too short are dropped if the configuration says so
and counted, alignment rounds each piece up to a multiple (packing is then done in units of that multiple), and pieces
are cut so that none is shorter than `min_chunk`; images are never cut. Tokens in = tokens in the plan + tokens that a
policy dropped; this is checked for every plan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokpack_core.config import PackingConfig
from tokpack_core.errors import InputError
from tokpack_core.packing.dropped import Dropped
from tokpack_core.packing.first_fit import Grouping, first_fit
from tokpack_core.packing.image_spans import ImageSpans, InterleavedPieces, cut_interleaved, mode_runs
from tokpack_core.packing.pieces import cut, in_packs
from tokpack_core.packing.plan import PackingPlan
from tokpack_core.packing.strategies import check_lengths, pack
from tokpack_core.packing.truncation import ImageFigures
from tokpack_core.packing.two_limits import FILLINGS, PORTFOLIO, PackingOrder, pack_two_limits

Int64 = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Packed:
    """A plan and what is not in it."""

    plan: PackingPlan
    dropped: Dropped
    fewest: Int64 | None = None
    """Pieces that each document must have, where images tell; [documents]."""


def pack_documents(lengths: Lengths, packing: PackingConfig, key: bytes, images: ImageSpans | None = None) -> Packed:
    """Plan packs of documents; `key` seeds what noise there is.

    lengths: tokens of each document, any integer dtype, [documents]; see `strategies.pack` for the limits.
    images: what is never cut; None for text.
    Raises InputError on a document that policies refuse or that cannot be packed, RuntimeError when tokens are lost.
    """
    lengths = check_lengths(lengths, packing.sequence_length)
    kept, trimmed, dropped = apply_drops(lengths, packing)
    fewest = None
    if images is None:
        plan = place(kept, packing, key)
    else:
        dropped += apply_image_drops(kept, images, packing)
        cut_up = cut_interleaved(kept, images, packing.sequence_length, packing.images_per_pack)
        fewest = cut_up.fewest
        plan = place_interleaved(cut_up, packing, key)
    if trimmed.size:
        whole = np.zeros(lengths.size, np.int32)
        whole[trimmed] = 1
        plan.chunks[:] += whole[plan.document]  # the dropped piece is still one of the document's
    tokens, packed = int(lengths.sum(dtype=np.int64)), int(plan.length.sum(dtype=np.int64))
    if tokens != packed + dropped.tokens:
        raise RuntimeError(
            f"packing {packing.parameters()} took {tokens} tokens and gave {packed}, with {dropped.tokens} dropped: "
            "this is a fault of tokpack"
        )
    return Packed(plan, dropped, fewest)


def image_figures(packed: Packed, images: ImageSpans | None, packing: PackingConfig) -> ImageFigures | None:
    """What `packing_figures` is to know of the images of a plan."""
    if images is None:
        return None
    held = int(np.count_nonzero(mode_runs(packed.plan, images).mode))
    total = int(images.length.sum())
    return ImageFigures(images.start.size, total, held, packing.images_per_pack, packed.fewest)


def apply_drops(lengths: Lengths, packing: PackingConfig) -> tuple[Lengths, Int64, Dropped]:
    """Lengths without what policies drop, documents whose last piece is dropped, and the counts of both."""
    size = packing.sequence_length
    none = np.zeros(0, np.int64)
    if packing.long_documents != "chunk":
        long = np.flatnonzero(lengths > size)
        if long.size and packing.long_documents == "error":
            raise InputError(
                f"{long.size} documents are longer than a pack of {size} tokens, first document {long[0]} (counted "
                f"from 0) with {lengths[long[0]]}: take `long_documents: chunk` or `drop`, or a longer sequence_length"
            )
        tokens = int(lengths[long].sum(dtype=np.int64))
        lengths = lengths.copy()
        lengths[long] = 0
        return lengths, none, Dropped(documents=long.size, document_tokens=tokens)
    if packing.short_chunks == "drop" and packing.min_chunk > 1:
        rest = np.where(lengths > size, lengths % size, 0)
        short = np.flatnonzero((rest > 0) & (rest < packing.min_chunk))
        return (
            lengths - np.where(rest < packing.min_chunk, rest, 0),
            short,
            Dropped(chunks=short.size, chunk_tokens=int(rest[short].sum(dtype=np.int64))),
        )
    return lengths, none, Dropped()


def apply_image_drops(lengths: Lengths, images: ImageSpans, packing: PackingConfig) -> Dropped:
    """What is left out of the documents that are packed, which are those with a length."""
    if packing.strategy == "concat" or packing.min_chunk > 1:
        raise InputError("strategy concat and min_chunk would cut images: pack documents with images without them")
    document = images.document()
    large = np.flatnonzero((images.length > packing.sequence_length) & (lengths[document] > 0))
    if large.size and packing.large_images == "error":
        raise InputError(
            f"{large.size} images have more tokens than a pack of {packing.sequence_length}, first one of document "
            f"{document[large[0]]} (counted from 0) with {images.length[large[0]]}, and images are never cut: take "
            "`large_images: drop`, a longer sequence_length, or a vision scheme that gives fewer tokens"
        )
    return Dropped(images=large.size, image_tokens=int(images.length[large].sum()))


def place_interleaved(cut_up: InterleavedPieces, packing: PackingConfig, key: bytes) -> PackingPlan:
    pieces = cut_up.pieces
    units = -(-pieces.length // packing.align)
    return in_packs(pieces, *group_pieces(units, packing, key, cut_up.images))


def place(lengths: Lengths, packing: PackingConfig, key: bytes) -> PackingPlan:
    balanced = packing.min_chunk > 1 and packing.short_chunks == "balance"
    capped = packing.documents_per_pack is not None and packing.strategy != "naive"
    if not (balanced or capped or packing.noise or packing.strategy in ("first_fit", "first_fit_decreasing")):
        return place_whole(lengths, packing)
    min_chunk = packing.min_chunk if balanced else 1
    pieces = cut(lengths, packing.sequence_length, min_chunk, packing.align)
    units = -(-pieces.length // packing.align)
    return in_packs(pieces, *group_pieces(units, packing, key))


def place_whole(lengths: Lengths, packing: PackingConfig) -> PackingPlan:
    """Strategies that cut for themselves, in units of the alignment."""
    align = packing.align
    if align == 1:
        return pack(lengths, packing.sequence_length, packing.strategy)
    plan = pack(-(-lengths // align), packing.sequence_length // align, packing.strategy)
    start = plan.start * align
    length = np.minimum(lengths[plan.document] - start, plan.length.astype(np.int64) * align).astype(np.int32)
    return PackingPlan(plan.pack_offsets, plan.document, start, length, plan.chunk, plan.chunks)


def group_pieces(
    units: npt.NDArray[np.int32], packing: PackingConfig, key: bytes, images: Int64 | None = None
) -> Grouping:
    """Pieces into packs; units [pieces] are sizes in multiples of the alignment, images [pieces] how many they hold."""
    capacity = packing.sequence_length // packing.align
    most = packing.documents_per_pack
    if packing.strategy != "best_fit":
        if packing.strategy == "naive":
            return np.arange(units.size, dtype=np.int64), np.arange(units.size + 1, dtype=np.int64)
        return first_fit(units, capacity, most, decreasing=packing.strategy == "first_fit_decreasing")
    if images is not None and packing.images_per_pack is not None:
        tried = ((PackingOrder(packing.noise),), ()) if packing.noise else (PORTFOLIO, FILLINGS)
        return pack_two_limits(units, images, capacity, packing.images_per_pack, key, *tried)
    binds = most is not None and units.size > 0 and capacity // int(units.min()) > most
    portfolio = (PackingOrder(packing.noise),) if packing.noise or not binds else PORTFOLIO
    counts = np.full(units.size, int(binds), np.int64)
    budget = most if binds and most is not None else 0
    return pack_two_limits(units, counts, capacity, budget, key, portfolio, ())
