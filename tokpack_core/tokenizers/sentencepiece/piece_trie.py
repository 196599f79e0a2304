"""A trie of pieces in flat arrays; see `piece_trie_kernels` for the layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.corpus.text_buffers import read_only, text_buffers
from tokpack_core.tokenizers.sentencepiece.piece_trie_kernels import BEGIN, NONE, build


@dataclass(frozen=True)
class PieceTrie:
    keys: npt.NDArray[np.int64]
    children: npt.NDArray[np.int32]
    tokens: npt.NDArray[np.int32]


def piece_trie(pieces: Sequence[str], roots: Sequence[int], ids: Sequence[int]) -> PieceTrie:
    """Piece k below roots[k] (BEGIN or CONTINUE), with ids[k]; an empty piece is none."""
    encoded = [piece.encode() for piece in pieces]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(piece) for piece in encoded], out=offsets[1:])
    data = np.frombuffer(b"".join(encoded), np.uint8)
    return built(data, offsets, np.array(roots, np.int32), np.array(ids, np.int32))


def byte_trie(entries: pa.Array, ids: npt.NDArray[np.int32]) -> PieceTrie:
    """Binary strings, all below BEGIN; of several that are the same the last one's id stays."""
    return built(*text_buffers(entries), np.full(ids.size, BEGIN, np.int32), ids.astype(np.int32))


def built(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    roots: npt.NDArray[np.int32],
    ids: npt.NDArray[np.int32],
) -> PieceTrie:
    keys = np.zeros(1 << (2 * data.size + 1).bit_length(), np.int64)
    children = np.zeros(keys.size, np.int32)
    tokens = np.full(data.size + 2, NONE, np.int32)
    nodes = build(read_only(data), offsets, roots, ids, keys, children, tokens)
    return PieceTrie(keys, children, tokens[:nodes].copy())
