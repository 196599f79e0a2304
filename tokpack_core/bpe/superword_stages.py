"""Byte-level BPE whose later merges go across words, as SuperBPE's (arXiv 2503.13423), encoded in two steps.

The pretokenizer of such a model leaves whole sentences together, and merging each from its bytes is slow. So the merges
before the first one that makes a superword are applied to pieces that are cut where none of them reaches over
(`superword_units`), and the others to the tokens. Merges apply by rank, so that is exact whenever no earlier merge
takes what only a later one makes; where that fails, or no merge crosses words, the model is encoded in one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokpack_core.bpe.encoder import BpeModel

if TYPE_CHECKING:
    from tokpack_core.bpe.superword_encoder import SuperwordEncoder


def staged_encoder(model: BpeModel, splits: tuple[str, ...], tokens: dict[int, bytes]) -> SuperwordEncoder | None:
    """An encoder in two steps, where that is exact and faster; `tokens`: bytes by id.

    Raises Unsupported for a regex that has no automaton.
    """
    stage = first_superword(model, tokens)
    if stage is None:
        return None
    # These load kernels, which most models have no use for.
    from tokpack_core.bpe.superword_encoder import MergeList, SuperwordEncoder
    from tokpack_core.bpe.superword_units import JoinablePieces

    words = BpeModel(model.byte_ids, model.left[:stage], model.right[:stage], model.token[:stage], model.rank[:stage])
    later = MergeList(model.left[stage:], model.right[stage:], model.token[stage:])
    return SuperwordEncoder(JoinablePieces(words, splits, tokens), later)


def first_superword(model: BpeModel, tokens: dict[int, bytes]) -> int | None:
    """The number of the first merge from which on merges go across words, if the model can be cut there.

    White space alone, such as two line ends with a space between, is no superword.
    """
    made = map(tokens.__getitem__, model.token.tolist())
    later = ((place, token) for place, token in enumerate(made) if b" " in token[1:])
    stage = next((place for place, token in later if " " in token.decode(errors="replace").strip()), None)
    if stage is None or model.whole or (np.diff(model.rank) <= 0).any():
        return None
    earlier = np.concatenate([model.left[:stage], model.right[:stage]])
    return None if np.isin(model.token[stage:], earlier).any() else stage
