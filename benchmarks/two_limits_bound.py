"""How many packs any packing under two limits needs: the bound of the configuration LP, by column generation.

A configuration is a multiset of items that fits a pack. The least sum of configurations that covers all items, where
fractions are allowed, is a lower bound (Gilmore and Gomory, "A linear programming approach to the cutting-stock
problem", 1961), far tighter than the limits one by one where both bind. Tokens are rounded down to multiples of UNIT,
which makes items of few kinds and only lowers the bound; configurations are priced by dynamic programming, and the
value is a bound when no configuration prices above 1. `benchmarks/two_limits.py` has the set.

Needs scipy, which is no dependency:

    pip install --target peers scipy
    PYTHONPATH=peers python benchmarks/two_limits_bound.py [DOCUMENTS] [UNIT]
"""

from __future__ import annotations

import sys

import numpy as np
from numba import njit
from scipy.optimize import linprog
from scipy.sparse import csc_matrix
from two_limits import interleaved

from tokpack_core.packing.two_limits import lower_bound, pack_two_limits

COLUMNS = 60
"""Configurations that are added at once."""
TOLERANCE = 1e-6


@njit(cache=True)
def best_values(tokens: np.ndarray, counts: np.ndarray, value: np.ndarray, capacity: int, budget: int) -> tuple:
    """Greatest value of the items in each pack of up to capacity and budget, and what was put in last (-1: nothing)."""
    best = np.zeros((capacity + 1, budget + 1))
    last = np.full(best.shape, -1, np.int64)
    for room in range(capacity + 1):
        for left in range(budget + 1):
            if room and best[room - 1, left] > best[room, left]:
                best[room, left], last[room, left] = best[room - 1, left], -2
            if left and best[room, left - 1] > best[room, left]:
                best[room, left], last[room, left] = best[room, left - 1], -3
            for kind in range(tokens.size):
                if tokens[kind] <= room and counts[kind] <= left:
                    found = best[room - tokens[kind], left - counts[kind]] + value[kind]
                    if found > best[room, left] + 1e-12:
                        best[room, left], last[room, left] = found, kind
    return best, last


@njit(cache=True)
def configuration(
    tokens: np.ndarray, counts: np.ndarray, last: np.ndarray, room: int, left: int, kind: int
) -> np.ndarray:
    """Items of each kind in the best pack of these limits that holds one of `kind`."""
    column = np.zeros(tokens.size)
    column[kind] = 1
    room, left = room - tokens[kind], left - counts[kind]
    while last[room, left] != -1:
        put = last[room, left]
        if put == -2:
            room -= 1
        elif put == -3:
            left -= 1
        else:
            column[put] += 1
            room, left = room - tokens[put], left - counts[put]
    return column


def kinds(tokens: np.ndarray, counts: np.ndarray, unit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Tokens in units, counts and number of each kind of item, and the kind of each item (-1: of no size)."""
    pairs, of_item, number = np.unique(
        np.stack([tokens // unit, counts]), axis=1, return_inverse=True, return_counts=True
    )
    sized = pairs.any(axis=0)
    renumbered = np.where(sized, np.cumsum(sized) - 1, -1)
    return pairs[0, sized], pairs[1, sized], number[sized].astype(float), renumbered[of_item.ravel()]


def configuration_bound(
    tokens: np.ndarray, counts: np.ndarray, capacity: int, budget: int, unit: int, grouping: tuple
) -> float:
    """The LP's value; the packs of `grouping`, a packing, are what the search begins with."""
    size, count, demand, kind_of = kinds(tokens, counts, unit)
    columns = list(np.eye(size.size))
    packs = {
        tuple(sorted(kind_of[grouping[0][a:b]].tolist())) for a, b in zip(grouping[1], grouping[1][1:], strict=False)
    }
    columns += [np.bincount([k for k in pack if k >= 0], minlength=size.size).astype(float) for pack in sorted(packs)]
    while True:
        matrix = csc_matrix(np.array(columns).T)
        solved = linprog(np.ones(len(columns)), A_ub=-matrix, b_ub=-demand, method="highs")
        value = -solved.ineqlin.marginals
        best, last = best_values(size, count, value, capacity // unit, budget)
        if best[-1, -1] <= 1 + TOLERANCE:
            return float(solved.fun) / max(best[-1, -1], 1.0)
        gains = value + best[capacity // unit - size, budget - count]
        tried = np.argsort(-gains, kind="stable")[:: max(1, size.size // (2 * COLUMNS))][:COLUMNS]
        found = (configuration(size, count, last, capacity // unit, budget, int(kind)) for kind in tried)
        columns += [column for column in found if column @ value > 1 + TOLERANCE / 10]


def main() -> None:
    documents = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    unit = int(sys.argv[2]) if len(sys.argv) > 2 else 128
    capacity, budget = 16_384, 16
    tokens, counts = interleaved(documents, capacity, budget, "tiles")
    grouping = pack_two_limits(tokens, counts, capacity, budget, b"key")
    packs = grouping[1].size - 1
    alone = lower_bound(tokens, counts, capacity, budget)
    bound = int(np.ceil(configuration_bound(tokens, counts, capacity, budget, unit, grouping) - TOLERANCE))
    print(
        f"tiles {capacity}/{budget}: packed in {packs:,}; limits one by one {alone:,} ({packs / alone - 1:.2%} over), "
        f"configuration LP {bound:,} ({packs / bound - 1:.2%} over)"
    )


if __name__ == "__main__":
    main()
