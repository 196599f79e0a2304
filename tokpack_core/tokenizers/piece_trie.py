"""A trie of pieces in flat arrays; see `piece_trie_kernels` for the layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokpack_core.corpus.text_buffers import read_only
from tokpack_core.tokenizers.piece_trie_kernels import NONE, build


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
    size = int(offsets[-1])
    keys = np.zeros(1 << (2 * size + 1).bit_length(), np.int64)
    children = np.zeros(keys.size, np.int32)
    tokens = np.full(size + 2, NONE, np.int32)
    data = read_only(np.frombuffer(b"".join(encoded), np.uint8))
    nodes = build(data, offsets, np.array(roots, np.int32), np.array(ids, np.int32), keys, children, tokens)
    return PieceTrie(keys, children, tokens[:nodes].copy())
