"""Packs of one prefix for torch: map-style, mapped, nothing copied.

Tokens come from PREFIX.bin, boundaries from PREFIX_docs.idx (documents as sequences, packs as documents) and, where
there are images, PREFIX_docs.segments.npy. An open dataset is three maps; workers of a DataLoader share their pages,
and pickling sends the path only.

Filled tails: the segments file names them. Without it (text only) every sequence is one document, and the last of a
pack is its filled tail when it is EOD from end to end. With exactly one EOD a document, as all datasets of the graph
have, that is exact: two EODs in a row are in no document, and for a single one, a tail or the last token of a
document, boundaries, positions and trained positions are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import SupportsIndex

import numpy as np
import torch

from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import bin_path, idx_path, read_index
from tokpack_core.megatron.indexed_reader import Tokens, expected_bytes, map_tokens
from tokpack_core.training.segments import Int32, PackSegments, text_segments
from tokpack_core.training.segments_file import read_segment_rows, segments_path


@dataclass(frozen=True)
class Pack:
    """What a dataset gives for one number; arrays are read-only views of mapped files."""

    tokens: Tokens
    """uint16 or int32 [S]."""
    segments: PackSegments


class PackedDataset(torch.utils.data.Dataset[Pack]):
    """All packs of `PREFIX.bin`, in the order of the file."""

    def __init__(self, prefix: Path, eod: int | None = None) -> None:
        """Map a prefix, in time and memory that do not depend on its size.

        `eod` is the id that fills tails; it is not needed where the segments file names them.

        Raises InputError when a file is missing, does not fit the others, or tails cannot be known.
        """
        self.prefix = Path(prefix)
        self.eod = eod
        docs = self.prefix.with_name(f"{self.prefix.name}_docs")
        self._docs_index = idx_path(docs)
        index = read_index(self._docs_index)
        self._edges = index.document_indices
        self._lengths = index.sequence_lengths
        self._pointers = index.sequence_pointers
        self._modes = index.modes
        self._tokens = map_tokens(bin_path(self.prefix), index.dtype)
        packs = index.document_indices.size - 1
        self.sequence_length = self._tokens.size // max(packs, 1)
        if self._tokens.nbytes != expected_bytes(index) or self.sequence_length * packs != self._tokens.size:
            raise InputError(
                f"{bin_path(self.prefix)} has {self._tokens.size} tokens, which are not the {packs} equal packs of "
                f"{self._docs_index}: export or copy both again"
            )
        rows = read_segment_rows(docs, self._lengths.size)
        self._documents = None if rows is None else rows["document"]
        self._image_attention = None if rows is None else rows["image_attention"]
        if rows is None and self._modes is not None:
            raise InputError(
                f"{self._docs_index} has images, but {segments_path(docs)}, which tells documents apart, is missing: "
                "copy it too"
            )
        if rows is None and eod is None:
            raise InputError(f"{segments_path(docs)} does not exist: give the id that fills tails as `eod`")

    def __len__(self) -> int:
        return self._edges.size - 1

    def __getitem__(self, number: SupportsIndex) -> Pack:
        """Pack `number`, 0 <= number < len; raises IndexError else, InputError when its segments do not fill it."""
        number = number.__index__()
        if not 0 <= number < len(self):
            raise IndexError(f"{self.prefix} has {len(self)} packs, no pack {number}")
        first, last = self._edges[number : number + 2].tolist()
        length = self._lengths[first:last]
        begin = number * self.sequence_length
        tokens = self._tokens[begin : begin + self.sequence_length]
        if length.sum() != tokens.size or self._pointers[first] != begin * tokens.itemsize:
            raise InputError(
                f"{self._docs_index}: the segments of pack {number} are not its {tokens.size} tokens: export it again"
            )
        return Pack(tokens, self._segments(first, last, length, tokens))

    def _segments(self, first: int, last: int, length: Int32, tokens: Tokens) -> PackSegments:
        if self._documents is None or self._image_attention is None:
            return text_segments(length, filled_tail=bool((tokens[-int(length[-1]) :] == self.eod).all()))
        mode = np.zeros(length.size, np.int8) if self._modes is None else self._modes[first:last]
        return PackSegments(length, mode, self._documents[first:last], self._image_attention[first:last])

    def __reduce__(self) -> tuple[type[PackedDataset], tuple[Path, int | None]]:
        return PackedDataset, (self.prefix, self.eod)
