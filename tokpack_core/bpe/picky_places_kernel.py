"""Where pairs and tokens occur, for merges that deletions undo: chains of places that only grow.

A chain is a list of nodes in one pool, the last one added first; a place that no longer holds what the chain is of is
passed over, and one may stand in a chain twice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from tokpack_core.bpe.merge_kernels import COUNT, FIRST_WEIGHT, FREE, INTERIOR, KEY, grown, pair_slot, resized

CHAIN, TOUCHED = 2, 3
NODES, PAIRS, CHANGED, STEP = 0, 1, 2, 3
NOTHING = -1


class Words(NamedTuple):
    symbols: npt.NDArray[np.int32]
    """As in `merge_kernels`."""
    weights: npt.NDArray[np.int64]
    starts: npt.NDArray[np.uint8]
    """[symbols]: 1 for the first cell of a symbol"""


class Places(NamedTuple):
    table: npt.NDArray[np.int64]
    """[power of two, 4] by `pair_slot`: pair, count, chain, the last step that changed the pair"""
    places: npt.NDArray[np.int32]
    """[nodes]"""
    following: npt.NDArray[np.int64]
    """[nodes]: the next one of the chain, or NOTHING"""
    changed: npt.NDArray[np.int64]
    """The pairs that this step changed."""
    sizes: npt.NDArray[np.int64]
    """[4]: nodes, pairs and changed pairs in use; the number of the step"""


@njit(cache=True, _nrt=False)
def weight_after(words, at):  # type: ignore[no-untyped-def]
    """Of the word that the cell `at` belongs to, or ends."""
    while words.symbols[at] >= INTERIOR:
        at += 1
    return words.weights[FIRST_WEIGHT - words.symbols[at]]


@njit(cache=True, _nrt=False)
def add_pair(left, right, place, weight, where):  # type: ignore[no-untyped-def]
    """Counts one more occurrence."""
    table, sizes = where.table, where.sizes
    key = np.int64(left) << 32 | np.int64(right)
    slot = pair_slot(table, key)
    if table[slot, KEY] == FREE:
        table[slot, KEY], table[slot, COUNT], table[slot, CHAIN], table[slot, TOUCHED] = key, 0, NOTHING, -1
        sizes[PAIRS] += 1
    table[slot, COUNT] += weight
    node = sizes[NODES]
    where.places[node] = place
    where.following[node] = table[slot, CHAIN]
    table[slot, CHAIN] = node
    sizes[NODES] += 1
    if table[slot, TOUCHED] != sizes[STEP]:
        table[slot, TOUCHED] = sizes[STEP]
        where.changed[sizes[CHANGED]] = key
        sizes[CHANGED] += 1


@njit(cache=True, _nrt=False)
def take_pair(left, right, weight, where):  # type: ignore[no-untyped-def]
    where.table[pair_slot(where.table, np.int64(left) << 32 | np.int64(right)), COUNT] -= weight


@njit(cache=True, _nrt=False)
def add_token(token, place, chains, where):  # type: ignore[no-untyped-def]
    """Adds a place to the chain of a token."""
    node = where.sizes[NODES]
    where.places[node] = place
    where.following[node] = chains[token]
    chains[token] = node
    where.sizes[NODES] += 1


@njit(cache=True)
def places_of(chain, where):  # type: ignore[no-untyped-def]
    """The places of a chain, ascending, each once."""
    count = 0
    node = chain
    while node >= 0:
        count += 1
        node = where.following[node]
    places = np.empty(count, np.int64)
    node = chain
    for k in range(count):
        places[k] = where.places[node]
        node = where.following[node]
    places.sort()
    kept = 0
    for k in range(count):
        if kept == 0 or places[k] != places[kept - 1]:
            places[kept] = places[k]
            kept += 1
    return places[:kept]


@njit(cache=True)
def taken_places(left, right, where):  # type: ignore[no-untyped-def]
    """The places of a pair, which has none then: a new step begins."""
    table, sizes = where.table, where.sizes
    slot = pair_slot(table, left << 32 | right)
    places = places_of(table[slot, CHAIN], where)
    table[slot, COUNT], table[slot, CHAIN] = 0, NOTHING
    sizes[CHANGED] = 0
    sizes[STEP] += 1
    return places


@njit(cache=True)
def with_room(where, nodes, pairs):  # type: ignore[no-untyped-def]
    """With room for so many more nodes and changes of pairs."""
    table, places, following, changed, sizes = where
    places, following = grown(places, sizes[NODES] + nodes), grown(following, sizes[NODES] + nodes)
    changed = grown(changed, sizes[CHANGED] + pairs)
    while 2 * (sizes[PAIRS] + pairs) > table.shape[0]:
        table, sizes[PAIRS] = resized(table, 2 * table.shape[0], 1)
    return Places(table, places, following, changed, sizes)


@njit(cache=True, _nrt=False)
def add_until_full(words, occurrences, where, at):  # type: ignore[no-untyped-def]
    """Adds the pairs of words whose symbols are one cell each, from the cell `at` backwards until the table is full;
    marks where symbols start, and counts them. Returns the cell that is next, 0 if all are done."""
    symbols, weights, starts = words
    weight = weight_after(words, at)
    while at > 0 and 2 * (where.sizes[PAIRS] + 1) <= where.table.shape[0]:
        symbol = symbols[at]
        if symbol < 0:
            weight = weights[FIRST_WEIGHT - symbol]
        else:
            starts[at] = 1
            occurrences[symbol] += weight
            if symbols[at + 1] >= 0:
                where.sizes[CHANGED] = 0
                add_pair(symbol, symbols[at + 1], at, weight, where)
        at -= 1
    return at


@njit(cache=True)
def places_in(words, occurrences):  # type: ignore[no-untyped-def]
    """All pairs of words whose symbols are one cell each: see `add_until_full`."""
    nodes = 2 * words.symbols.size + 1024
    where = Places(
        np.full((1 << 14, 4), FREE, np.int64),
        np.empty(nodes, np.int32),
        np.empty(nodes, np.int64),
        np.empty(1 << 16, np.int64),
        np.zeros(4, np.int64),
    )
    at = words.symbols.size - 1
    while at > 0:
        where = with_room(where, 0, 1)
        at = add_until_full(words, occurrences, where, at)
    return where
