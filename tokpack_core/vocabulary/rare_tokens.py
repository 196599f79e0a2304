"""Why entries are rare, and what the text would cost without them.

Each rare entry has one reason, the first that fits:
reserved        its name says that it is kept free, like <unused7>
byte_fragment   a single byte, or bytes that are no whole characters: there for text of any kind
unreachable     no text gives it
residue         a step on the way to few longer tokens, which merges nearly always consume (`tokenizers.residues`)
absent_script   the sample has fewer than 1,000 characters of its script
seldom          none of these: the text just does not need it

The cost of removing entries: each is spelt by the fewest of the entries that stay, so an occurrence costs that many
tokens less one. It is a lower bound, since an encoder does not look for the fewest. Single bytes always stay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.vocabulary.counts import TokenCounts
from tokpack_core.vocabulary.scripts import COMMON, SCRIPTS
from tokpack_core.vocabulary.spelling_kernel import UNSPELLABLE, fewest_parts
from tokpack_core.vocabulary.token_features import TokenFeatures, token_table
from tokpack_core.vocabulary.utilization import RARE_THRESHOLDS

REASONS = ("reserved", "byte_fragment", "unreachable", "residue", "absent_script", "seldom")
FEW_CHARACTERS = 1000


def reasons(
    features: TokenFeatures, counts: TokenCounts, unreachable: NDArray[np.bool_], residue: NDArray[np.bool_]
) -> NDArray[np.int8]:
    """Index into REASONS of each row, as if it were rare: int8 [rows]."""
    characters = np.zeros(len(SCRIPTS), np.int64)
    np.add.at(characters, features.script, counts.tokens[features.ids] * features.characters)
    absent = (characters < FEW_CHARACTERS)[features.script] & (features.script < COMMON)
    conditions = [features.reserved, features.kind > 0, unreachable, residue, absent]
    return np.select(conditions, range(len(conditions)), default=len(conditions)).astype(np.int8)


def removal_cost(features: TokenFeatures, counts: TokenCounts, removed: NDArray[np.bool_]) -> int:
    """Tokens that the counted text would have more, at least, without the rows `removed` (single bytes stay)."""
    frequencies = counts.tokens[features.ids]
    removed = removed & features.entry & (features.bytes > 1)
    chosen = np.flatnonzero(removed & (frequencies > 0))
    if not len(chosen):
        return 0
    kept = features.entry & ~removed
    kept_bytes = features.bytes[kept]
    table = token_table(features.tokens, kept)
    data, offsets = text_buffers(features.tokens)
    longest = int(kept_bytes.max(initial=1))
    parts = fewest_parts(data, offsets, chosen, table.slots, table.entries, table.arena, longest)
    parts = np.where(parts == UNSPELLABLE, features.bytes[chosen], parts)
    return int(((parts - 1) * frequencies[chosen]).sum())


def rare_rows(features: TokenFeatures, counts: TokenCounts, why: NDArray[np.int8]) -> list[dict[str, Any]]:
    """For each of RARE_THRESHOLDS: below, entries, share, by reason, and what removing them would cost."""
    frequencies = counts.tokens[features.ids]
    entries, tokens = int(features.entry.sum()), int(counts.tokens.sum())
    rows = []
    for below in RARE_THRESHOLDS:
        rare = features.entry & (frequencies < below)
        cost = removal_cost(features, counts, rare)
        by_reason = np.bincount(why[rare], minlength=len(REASONS)).tolist()
        rows.append(
            {
                "below": below,
                "entries": int(rare.sum()),
                "share": int(rare.sum()) / entries,
                "reasons": dict(zip(REASONS, by_reason, strict=True)),
                "removal_tokens": cost,
                "removal_share": cost / tokens if tokens else None,
            }
        )
    return rows


def rarest_first(features: TokenFeatures, counts: TokenCounts, limit: int) -> NDArray[np.int64]:
    """Rows of the rarest entries: fewest occurrences, then whole characters before bytes, then the latest id."""
    frequencies = counts.tokens[features.ids]
    order = np.lexsort((-features.ids, features.kind, frequencies))
    return order[features.entry[order]][:limit]


def examples_of(features: TokenFeatures, mask: NDArray[np.bool_], weight: NDArray[np.int64], limit: int) -> list[int]:
    """Ids of the rows of a mask, those of most weight first, then the smallest ids."""
    rows = np.flatnonzero(mask)
    order = rows[np.lexsort((rows, -weight[rows]))][:limit]
    return [int(token) for token in pa.array(features.ids[order]).to_pylist()]
