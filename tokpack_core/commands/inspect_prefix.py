"""`tokpack inspect`: what an indexed dataset holds, and one of its packs, decoded by document, with its mask."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from tokpack_core.commands.mask_picture import mask_picture
from tokpack_core.commands.opened_tokenizer import OpenedTokenizer
from tokpack_core.commands.pack_pieces import KnownPack, Piece, find_pack
from tokpack_core.commands.results import console, counted, print_json, show_facts
from tokpack_core.commands.tokenizer_of_prefix import find_tokenizer, open_to_decode, why_not_decoded
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import CHUNK, bin_path, idx_path
from tokpack_core.megatron.indexed_reader import IndexedReader
from tokpack_core.tokenizers.encoded import from_lists
from tokpack_core.training.segments import FILL, IMAGE, ImageAttention, PackSegments
from tokpack_core.training.segments_file import Rows, read_segment_rows
from tokpack_core.vocabulary.visible import printable

LONGEST_SHOWN = 32_768
"""Tokens of a pack or document that are decoded."""
FILLER_COLOUR = "bright_black"
COLOURS = ("cyan", "yellow", "green", "magenta", "bright_blue", "bright_red")


@dataclass(frozen=True)
class Segment:
    """A run of tokens of one document in a pack, all text or one image, or what fills a gap or the tail."""

    ids: list[int]
    text: str | None
    length: int
    """Tokens, more than `ids` where these are cut."""
    filler: bool = False
    chunk: int | None = None
    """0-based, None if unknown."""
    chunks: int | None = None
    image: bool = False
    document: int | None = None
    """Number of the document within the pack, from 0; None if unknown or filler."""
    image_attention: str | None = None
    """What an image sees, None if unknown."""


def inspect_and_show(prefix: Path, tokenizer: Path | None, number: int | None, json: bool) -> None:
    """Raises InputError when the prefix cannot be read, or has no such pack."""
    prefix = without_ending(prefix)
    reader = IndexedReader(prefix)
    facts: dict[str, Any] = describe(prefix, reader)
    opened = open_to_decode(tokenizer) if tokenizer else find_tokenizer(prefix)
    if opened is None:
        facts["not_decoded"] = why_not_decoded(prefix)
    else:
        facts["tokenizer"] = {"path": str(opened.path), "digest": opened.digest, "family": opened.tokenizer.family}
    segments: list[Segment] = []
    if number is not None or opened is not None:
        segments = read_segments(prefix, reader, number or 0, opened)
    packed = facts["packs"] is not None
    if json:
        shown = {"number": number or 0, "fill": fill(segments), "segments": [asdict(segment) for segment in segments]}
        print_json(facts | {"pack": shown if segments else None})
        return
    show_facts(facts)
    show_segments(segments, number or 0, packed)
    if packed and segments:
        show_mask(segments, number or 0)


def without_ending(path: Path) -> Path:
    """The prefix that a path of its .bin or .idx means."""
    if path.suffix in (".bin", ".idx") and path.is_file():
        return path.with_suffix("")
    return path


def describe(prefix: Path, reader: IndexedReader) -> dict[str, Any]:
    index = reader.index
    documents = index.document_indices.size - 1
    length = pack_length(reader)
    docs = docs_reader(prefix)
    return {
        "prefix": str(prefix),
        "dtype": index.dtype.name,
        "sequences": index.sequence_lengths.size,
        "documents": documents,
        "empty_documents": count_empty(reader),
        "tokens": reader.tokens.size,
        "packs": documents if length is not None else None,
        "sequence_length": length,
        "pieces_of_documents": (docs or reader).index.sequence_lengths.size if length is not None else None,
        **image_facts(docs or reader),
    }


def image_facts(reader: IndexedReader) -> dict[str, Any]:
    """Images and their share, where an index has modes."""
    modes, lengths = reader.index.modes, reader.index.sequence_lengths
    if modes is None:
        return {"images": None, "image_tokens": None, "vision_share": None}
    images = tokens = 0
    for begin in range(0, modes.size, CHUNK):
        chosen = modes[begin : begin + CHUNK] == IMAGE
        images += int(np.count_nonzero(chosen))
        tokens += int(lengths[begin : begin + CHUNK][chosen].sum(dtype=np.int64))
    return {"images": images, "image_tokens": tokens, "vision_share": tokens / max(reader.tokens.size, 1)}


def pack_length(reader: IndexedReader) -> int | None:
    """Tokens of each document when all have as many, as packs have; None otherwise, or for a single one."""
    index = reader.index
    documents = index.document_indices.size - 1
    if documents == 0 or reader.tokens.size % documents:
        return None
    length = reader.tokens.size // documents
    for begin in range(0, documents, CHUNK):
        edges = index.document_indices[begin : min(begin + CHUNK, documents)]
        if edges[-1] >= index.sequence_lengths.size:
            return None
        starts = index.sequence_pointers[edges] // index.dtype.itemsize
        if not np.array_equal(starts, np.arange(begin, begin + edges.size, dtype=np.int64) * length):
            return None
    return length


def count_empty(reader: IndexedReader) -> int:
    edges = reader.index.document_indices
    chunks = range(0, edges.size - 1, CHUNK)
    return sum(int(np.count_nonzero(np.diff(edges[begin : begin + CHUNK + 1]) == 0)) for begin in chunks)


def docs_prefix(prefix: Path) -> Path:
    return prefix.with_name(f"{prefix.name}_docs")


def docs_reader(prefix: Path) -> IndexedReader | None:
    """The view of the same packs with documents as sequences, if there is one."""
    docs = docs_prefix(prefix)
    return IndexedReader(docs) if idx_path(docs).is_file() and bin_path(docs).is_file() else None


def read_segments(prefix: Path, reader: IndexedReader, number: int, opened: OpenedTokenizer | None) -> list[Segment]:
    """The runs of tokens of pack or document `number`, decoded if there is a tokenizer."""
    documents = reader.index.document_indices.size - 1
    if not 0 <= number < documents:
        raise InputError(f"{prefix} has no number {number}: it holds {documents}, counted from 0")
    source = reader if pack_length(reader) is None else docs_reader(prefix) or reader
    first, last = source.index.document_indices[number : number + 2].tolist()
    lists: list[list[int]] = []
    left = LONGEST_SHOWN
    for sequence in range(first, last):
        lists.append(source.sequence(sequence)[:left].tolist())
        left -= len(lists[-1])
    texts = opened.tokenizer.decode(from_lists(lists)).to_pylist() if opened else [None] * len(lists)
    lengths = source.index.sequence_lengths[first:last].tolist()
    segments = [Segment(*values) for values in zip(lists, texts, lengths, strict=True)]
    if source.index.modes is not None:
        modes = source.index.modes[first:last].tolist()
        segments = [replace(segment, image=mode == IMAGE) for segment, mode in zip(segments, modes, strict=True)]
    if source is reader and pack_length(reader) is None:
        return [replace(segment, document=0) for segment in segments]
    known = find_pack(prefix, number)
    segments = with_pieces(segments, known) if known else with_guessed_tail(segments)
    rows = read_segment_rows(docs_prefix(prefix), source.index.sequence_lengths.size) if source is not reader else None
    return with_documents(segments, None if rows is None else rows[first:last])


def with_pieces(segments: list[Segment], known: KnownPack) -> list[Segment]:
    """Pieces come in the plan's order, each at a multiple of the alignment; what is between and after is filler."""
    pieces = deque(known.pieces)
    found = []
    at = left = 0
    piece: Piece | None = None
    for segment in segments:
        if left == 0 and pieces and at % known.align == 0:
            piece = pieces.popleft()
            left = piece.length
        if piece is not None and left > 0:
            found.append(replace(segment, chunk=piece.chunk, chunks=piece.chunks))
            left -= segment.length
        else:
            found.append(replace(segment, filler=True))
        at += segment.length
    return found


def with_documents(segments: list[Segment], rows: Rows | None) -> list[Segment]:
    """Which document each segment is of, as stored, or else each of its own."""
    if rows is None:
        number = count()
        return [segment if segment.filler else replace(segment, document=next(number)) for segment in segments]
    found = []
    for segment, (document, attention) in zip(segments, rows.tolist(), strict=True):
        named = ImageAttention(attention).name.lower() if segment.image else None
        filler = document == FILL
        found.append(replace(segment, filler=filler, document=None if filler else document, image_attention=named))
    return found


def with_guessed_tail(segments: list[Segment]) -> list[Segment]:
    """Without a plan, a last run of one id only is taken for the filled tail."""
    *others, last = segments
    return [*others, replace(last, filler=bool(others) and len(set(last.ids)) == 1)]


def fill(segments: list[Segment]) -> float | None:
    """Share of the positions that hold documents."""
    total = sum(segment.length for segment in segments)
    return sum(segment.length for segment in segments if not segment.filler) / total if total else None


def show_segments(segments: list[Segment], number: int, packed: bool) -> None:
    """Each document's piece under a line of its own, in a colour that differs from its neighbours'."""
    out = console()
    documents = 1 + max((segment.document for segment in segments if segment.document is not None), default=-1)
    for segment, colour in zip(segments, colours_of(segments), strict=True):
        place = 0 if segment.document is None else segment.document + 1
        where = f"pack {number}, document {place} of {documents}" if packed else f"document {number}"
        if segment.chunks is not None and segment.chunk is not None and segment.chunks > 1:
            where += f", chunk {segment.chunk + 1} of {segment.chunks}"
        if segment.image:
            where += ", image" + (f" ({segment.image_attention})" if segment.image_attention else "")
        heading = f"pack {number}, filled with" if segment.filler else f"{where}:"
        out.print(Text(f"\n── {heading} {counted(segment.length, 'token')} ──", f"bold {colour}"))
        if segment.ids:
            body = f"id {segment.ids[0]}" if segment.filler or segment.image else segment_text(segment)
            out.print(Text(body, colour), soft_wrap=True)
    if sum(segment.length for segment in segments) > LONGEST_SHOWN:
        out.print(f"… no more than the first {LONGEST_SHOWN:,} tokens are shown")


def show_mask(segments: list[Segment], number: int) -> None:
    """How full the pack is, and who sees whom in it."""
    out = console()
    out.print(Text(f"\npack {number} is {fill(segments) or 0:.2%} full; who sees whom (rows see columns):", "bold"))
    for line in mask_picture(pack_segments(segments), colours_of(segments)):
        out.print(Text("  ") + line)


def colours_of(segments: list[Segment]) -> list[str]:
    return [
        FILLER_COLOUR if segment.document is None else COLOURS[segment.document % len(COLOURS)] for segment in segments
    ]


def pack_segments(segments: list[Segment]) -> PackSegments:
    """What training takes of these segments."""
    attention = [ImageAttention[(segment.image_attention or "causal").upper()] for segment in segments]
    return PackSegments(
        np.array([segment.length for segment in segments], np.int32),
        np.array([segment.image for segment in segments], np.int8),
        np.array([FILL if segment.document is None else segment.document for segment in segments], np.int32),
        np.array(attention, np.int8),
    )


def segment_text(segment: Segment) -> str:
    """Text without what could move the cursor or hide; ids where there is no tokenizer."""
    if segment.text is None:
        return " ".join(map(str, segment.ids))
    return "\n".join(printable(line.expandtabs()) for line in segment.text.split("\n"))
