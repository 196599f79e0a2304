"""The model of merges and deletions, and of supermerges over them, with ids in the order in which tokens were made.

Living tokens have ids: the single bytes, then what merges and supermerges made, in their one order; what was deleted is
numbered after them.
"""

from __future__ import annotations

import numpy as np

from tokpack_core.bpe.picky_merges import Events
from tokpack_core.bpe.superword_merges import Supermerges
from tokpack_core.tokenizers.superwords.file import SuperwordModel

NO_IDS, NO_COUNTS = np.empty(0, np.int32), np.empty(0, np.int64)
NO_SUPERMERGES = Supermerges([], NO_IDS, NO_IDS, NO_COUNTS, NO_COUNTS, 0)
NEVER = "(?!)"
"""No word may be part of a superword."""


def event_model(
    found: Events,
    special: tuple[str, ...],
    splits: tuple[str, ...],
    supermerges: Supermerges = NO_SUPERMERGES,
    mergeable: str = NEVER,
    letters: str | None = None,
) -> SuperwordModel:
    """`supermerges`: their symbols are numbered after those of the events."""
    words = len(found.symbols)
    symbols = [*found.symbols, *supermerges.tokens]
    merges = found.events[:, 1] >= 0
    made = found.events[merges, 2]
    # Twice the number of the merge that made a symbol first, and one less for supermerges before it: 0 for bytes.
    when = np.full(len(symbols), -1, np.int64)
    when[[number for number, symbol in enumerate(found.symbols) if len(symbol) == 1]] = 0
    when[made[::-1]] = 2 * np.arange(made.size, 0, -1)
    when[words:] = 2 * supermerges.after + 1
    alive = np.append(found.alive, np.ones(len(supermerges.tokens), np.bool_))
    order = np.lexsort((when, ~alive))
    order = order[when[order] >= 0]
    ids = np.full(len(symbols), -1, np.int32)
    ids[order] = len(special) + np.arange(order.size)
    events = found.events.copy()
    events[merges] = ids[events[merges]]
    events[~merges, 0] = ids[events[~merges, 0]]
    parts = tuple(tuple(part.tolist()) for part in np.split(ids[found.parts], found.part_offsets[1:-1]))
    ordered = [symbols[symbol] for symbol in order.tolist()]
    living = int(np.count_nonzero(alive[order]))
    joined = [ids[supermerges.left], ids[supermerges.right], ids[words:]]
    return SuperwordModel(
        splits,
        mergeable,
        letters,
        special,
        ordered[:living],
        events,
        np.stack(joined, axis=1).astype(np.int32),
        tuple(ordered[living:]),
        parts if (~merges).any() else (),
    )
