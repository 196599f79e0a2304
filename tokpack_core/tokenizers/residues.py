"""Which tokens of a byte-level BPE are residues on some text (LiteToken, arXiv 2602.04706), and what they cost.

For a token that merges made, let F1 be how often it is there in the end, and F2 how often a later merge consumes it. It
is a residue if

  F1 / (F1 + F2)  is below `max_residue_ratio`: it is nearly always consumed;
  the entropy of what consumes it is below `max_neighbor_entropy` bits: it is a step on the way to few longer tokens;
  F1 + F2  is at least `min_count`: there is enough text to say so.

What consumes a token is told by how often each merge was applied, which is how often its token was made: its own
F1 + F2. The paper gives no numbers for the thresholds; those in the configuration are ours.

`residues.json`: `parameters`, `text` (documents, bytes, tokens before and after) and `removed`, a list by id: id, token
(in the byte-level alphabet), parts (the two ids that it is split into), final (F1), consumed (F2), ratio, entropy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokpack_core.errors import InputError

if TYPE_CHECKING:
    from tokpack_core.bpe.encoder import BpeModel

FILE_NAME = "residues.json"


@dataclass(frozen=True)
class ResidueLimits:
    max_residue_ratio: float = 0.05
    max_neighbor_entropy: float = 2.0
    min_count: int = 100


@dataclass(frozen=True)
class Residues:
    ids: npt.NDArray[np.int32]
    """[residues], ascending"""
    parts: npt.NDArray[np.int32]
    """[residues, 2]: ids that each is split into"""
    report: Mapping[str, Any] = field(default_factory=dict)


def find_residues(
    model: BpeModel,
    contents: Mapping[int, bytes],
    final: npt.NDArray[np.int64],
    consumed: npt.NDArray[np.int64],
    limits: ResidueLimits,
) -> Residues:
    """`contents`: bytes of ordinary tokens by id; final, consumed: [vocab_size], F1 and F2."""
    made = last_merges(model, contents)
    formed = final + consumed
    entropy = consumer_entropy(made, formed)
    ratio = final / np.maximum(formed, 1)
    found = [
        token
        for token in sorted(made)
        if formed[token] >= limits.min_count
        and ratio[token] < limits.max_residue_ratio
        and entropy[token] < limits.max_neighbor_entropy
    ]
    rows = [
        {
            "id": token,
            "parts": list(made[token]),
            "final": int(final[token]),
            "consumed": int(consumed[token]),
            "ratio": round(float(ratio[token]), 6),
            "entropy": round(float(entropy[token]), 4),
        }
        for token in found
    ]
    parts = np.array([made[token] for token in found], np.int32).reshape(-1, 2)
    return Residues(np.array(found, np.int32), parts, {"parameters": vars(limits), "removed": rows})


def consumer_entropy(made: Mapping[int, tuple[int, int]], formed: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Bits, [vocab_size]: how evenly the merges that consume a token are used."""
    tokens = np.array(list(made), np.int64)
    pairs = np.array(list(made.values()), np.int64).reshape(-1, 2)
    weights = formed[tokens].astype(np.float64)
    sides = np.concatenate([pairs[:, 0], pairs[pairs[:, 0] != pairs[:, 1], 1]])
    weights = np.concatenate([weights, weights[pairs[:, 0] != pairs[:, 1]]])
    total = np.bincount(sides, weights, formed.size)
    spread = np.bincount(sides, weights * np.log2(np.maximum(weights, 1)), formed.size)
    return np.log2(np.maximum(total, 1)) - spread / np.maximum(total, 1)


def last_merges(model: BpeModel, contents: Mapping[int, bytes]) -> dict[int, tuple[int, int]]:
    """Token → the two that are merged last when its own bytes are encoded, for tokens that their bytes give."""
    merges: dict[tuple[int, int], tuple[int, int]] = {}
    for left, right, rank, token in zip(
        model.left.tolist(), model.right.tolist(), model.rank.tolist(), model.token.tolist(), strict=True
    ):
        merges.setdefault((left, right), (rank, token))
    byte_ids = model.byte_ids.tolist()
    found = {}
    for token_id, content in contents.items():
        symbols = [byte_ids[byte] for byte in content]
        pair = None
        while len(symbols) > 1:
            ranked = [(merges[two][0], place) for place, two in enumerate(pairwise(symbols)) if two in merges]
            if not ranked:
                break
            _, place = min(ranked)
            pair = symbols[place], symbols[place + 1]
            symbols[place : place + 2] = [merges[pair][1]]
        if pair is not None and symbols == [token_id]:
            found[token_id] = pair
    return found


def write_residues(folder: Path, residues: Residues) -> None:
    text = json.dumps(residues.report, indent=1, ensure_ascii=False)
    (folder / FILE_NAME).write_text(text + "\n", encoding="utf-8")


def read_residues(folder: Path) -> Residues | None:
    """What a folder says of residues, if it does. Raises InputError for a damaged file."""
    path = folder / FILE_NAME
    if not path.is_file():
        return None
    try:
        report = json.loads(path.read_bytes())
        ids = np.array([row["id"] for row in report["removed"]], np.int32)
        parts = np.array([row["parts"] for row in report["removed"]], np.int32).reshape(-1, 2)
        if len(parts) != len(ids) or (ids.size and (ids.min() < 0 or parts.min() < 0)):
            raise ValueError("an id is negative or has no parts")
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error!r}): restore the folder") from None
    return Residues(ids, parts, report)
