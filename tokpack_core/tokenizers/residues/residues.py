"""Which tokens of a byte-level BPE are residues on some text (LiteToken, arXiv 2602.04706), and what they cost.

For a token that merges made, let F1 be how often it is there in the end, and F2 how often a later merge consumes it. It
is a residue if

  F1 / (F1 + F2)  is below `max_residue_ratio`: it is nearly always consumed;
  the entropy of what consumes it is below `max_neighbor_entropy` bits: it is a step on the way to few longer tokens;
  F1 + F2  is at least `min_count`: there is enough text to say so.

What consumes a token is told by how often each merge was applied, which is how often its token was made: its own
F1 + F2. The paper gives no numbers for the thresholds; those of ResidueLimits are ours. The vocabulary report, the
comparison of tokenizers and `tokpack litetoken` all take a residue to be what `MergeUse.are_residues` says.

`residues.json`: `parameters`, `text` (documents, bytes, tokens before and after) and `removed`, a list by id: id, token
(in the byte-level alphabet), parts (the two ids that it is split into), final (F1), consumed (F2), ratio, entropy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.errors import InputError

if TYPE_CHECKING:
    from tokpack_core.tokenizers.byte_bpe.engine import ExactBpe

FILE_NAME = "residues.json"


@dataclass(frozen=True)
class ResidueLimits:
    max_residue_ratio: float = 0.05
    max_neighbor_entropy: float = 2.0
    min_count: int = 20


USUAL = ResidueLimits()


@dataclass(frozen=True, eq=False)
class MergeUse:
    """How often tokens were final and were consumed on some text, and by what.

    parts: int32 [vocab_size, 2], the two tokens that each was merged from, -1 where merges do not make it; final,
    consumed: int64 [vocab_size], F1 and F2.
    """

    parts: npt.NDArray[np.int32]
    final: npt.NDArray[np.int64]
    consumed: npt.NDArray[np.int64]

    @property
    def met(self) -> npt.NDArray[np.int64]:
        """F1 + F2, [vocab_size], 0 where merges do not make the token."""
        return np.where(self.parts[:, 0] >= 0, self.final + self.consumed, 0)

    @property
    def ratio(self) -> npt.NDArray[np.float64]:
        """F1 / (F1 + F2), [vocab_size]; 0 where both are."""
        return self.final / np.maximum(self.final + self.consumed, 1)

    def consumer_entropy(self) -> npt.NDArray[np.float64]:
        """Bits, [vocab_size]: how evenly the merges that consume a token are used."""
        made = np.flatnonzero(self.parts[:, 0] >= 0)
        pairs = self.parts[made]
        twice = pairs[:, 0] == pairs[:, 1]
        weights = (self.final + self.consumed)[made].astype(np.float64)
        sides = np.concatenate([pairs[:, 0], pairs[~twice, 1]])
        weights = np.concatenate([weights, weights[~twice]])
        total = np.bincount(sides, weights, self.final.size)
        spread = np.bincount(sides, weights * np.log2(np.maximum(weights, 1)), self.final.size)
        return np.log2(np.maximum(total, 1)) - spread / np.maximum(total, 1)

    def are_residues(self, limits: ResidueLimits = USUAL) -> npt.NDArray[np.bool_]:
        """bool [vocab_size]"""
        enough = self.met >= limits.min_count
        few = self.ratio < limits.max_residue_ratio
        return enough & few & (self.consumer_entropy() < limits.max_neighbor_entropy)


@dataclass(frozen=True)
class Residues:
    ids: npt.NDArray[np.int32]
    """[residues], ascending"""
    parts: npt.NDArray[np.int32]
    """[residues, 2]: ids that each is split into"""
    report: Mapping[str, Any] = field(default_factory=dict)


def find_residues(use: MergeUse, limits: ResidueLimits) -> Residues:
    found = np.flatnonzero(use.are_residues(limits)).astype(np.int32)
    entropy = use.consumer_entropy()
    rows = [
        {
            "id": token,
            "parts": use.parts[token].tolist(),
            "final": int(use.final[token]),
            "consumed": int(use.consumed[token]),
            "ratio": round(float(use.ratio[token]), 6),
            "entropy": round(float(entropy[token]), 4),
        }
        for token in found.tolist()
    ]
    return Residues(found, use.parts[found], {"parameters": vars(limits), "removed": rows})


def merged_parts(exact: ExactBpe, vocabulary: pa.Table, vocab_size: int) -> npt.NDArray[np.int32]:
    """The two tokens that are merged last when a token's own bytes are encoded: int32 [vocab_size, 2].

    -1 for special tokens, and for tokens that their bytes do not give.
    """
    # Loads kernels, which reading `residues.json` has no use for.
    from tokpack_core.bpe.last_merge_kernel import last_merges

    ordinary = vocabulary.filter(pc.invert(vocabulary["special"])).combine_chunks()
    data, offsets = text_buffers(ordinary["token"].combine_chunks())
    parts = np.full((vocab_size, 2), -1, np.int32)
    longest = int(np.diff(offsets).max(initial=1))
    ids = ordinary["id"].to_numpy().astype(np.int32)
    last_merges(data, offsets, ids, longest, exact.model.byte_ids, *exact.encoder.tables, parts)
    return parts


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
