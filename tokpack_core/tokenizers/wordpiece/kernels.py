"""Merging pairs of symbols under any score, for WordPiece.

Layout. `links` int32 [symbols, 4] holds the words one after the other, a row a symbol: its id (DEAD once merged into
the one before), the rows before and after it in its word (-1: none), and its word. `pairs` int64 [capacity, 9] holds
each pair that ever occurred: ids, weighted count, first and last node of its occurrences, how many nodes, place in the
heap, and the next pair with the same left and the same right symbol, in lists that begin in `members` int64 [ids, 3]
with the weighted count of each symbol. `nodes` int32 [capacity, 2] are lists of occurrences: row in `links`, next node.
`slots` int64 [power of two] finds a pair by its ids: number + 1, or 0. `heap` int64 orders the pairs: the greatest
score first, then the smaller ids. `state` int64 [4] counts pairs, nodes, the first free node and the heap.

An occurrence stays in the list when its symbols were merged into others, and is skipped when the list is read.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.pretokenization_kernels import code_point

SYMBOL, BEFORE, AFTER, WORD = 0, 1, 2, 3
LEFT, RIGHT, COUNT, FIRST, LAST, OCCURRENCES, PLACE, NEXT_LEFT, NEXT_RIGHT = 0, 1, 2, 3, 4, 5, 6, 7, 8
TOTAL, LEFT_LIST, RIGHT_LIST = 0, 1, 2
PAIRS, NODES, FREE, HEAP = 0, 1, 2, 3
NONE, DEAD = -1, -2
FIRST_FACTOR = np.uint64(0x9E3779B97F4A7C15)
SECOND_FACTOR = np.uint64(0xC2B2AE3D27D4EB4F)
UNLINKED = -3
"""NEXT_LEFT and NEXT_RIGHT of a pair that stands in no list."""


@njit(cache=True)
def count_characters(data, offsets, counts, totals):  # type: ignore[no-untyped-def]
    """Adds how often each code point occurs to `totals` int64 [0x110000]."""
    for word in range(counts.size):
        at = offsets[word]
        while at < offsets[word + 1]:
            code, length = code_point(data, at, offsets[word + 1])
            totals[code] += counts[word]
            at += length


@njit(cache=True)
def only_of(data, offsets, known):  # type: ignore[no-untyped-def]
    """bool [words]: whether all characters of a word are known (bool [0x110000])."""
    found = np.ones(offsets.size - 1, np.bool_)
    for word in range(found.size):
        at = offsets[word]
        while at < offsets[word + 1] and found[word]:
            code, length = code_point(data, at, offsets[word + 1])
            found[word] = known[code]
            at += length
    return found


@njit(cache=True)
def write_links(data, offsets, heads, tails, longest, links):  # type: ignore[no-untyped-def]
    """Words as symbols: heads[c] for a first character c, tails[c] for one that follows (int32 [0x110000], -1: none).

    A word with a character that has no symbol or with more than `longest` is left out. Returns how many rows are used;
    `links` has room for all bytes.
    """
    used = 0
    for word in range(offsets.size - 1):
        at = offsets[word]
        begin = used
        while at < offsets[word + 1]:
            code, length = code_point(data, at, offsets[word + 1])
            symbol = heads[code] if used == begin else tails[code]
            if symbol < 0 or used - begin == longest:
                used = begin
                break
            links[used, SYMBOL] = symbol
            links[used, BEFORE] = used - 1 if used > begin else NONE
            links[used, AFTER] = used + 1
            links[used, WORD] = word
            at += length
            used += 1
        if used > begin:
            links[used - 1, AFTER] = NONE
    return used


@njit(cache=True, inline="always")
def pair_slot(left, right, slots, pairs):  # type: ignore[no-untyped-def]
    mask = slots.size - 1
    hashed = (np.uint64(left) * FIRST_FACTOR + np.uint64(right)) * SECOND_FACTOR
    slot = np.int64(hashed >> np.uint64(20)) & mask
    while slots[slot] != 0:
        pair = slots[slot] - 1
        if pairs[pair, LEFT] == left and pairs[pair, RIGHT] == right:
            break
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def fill_slots(slots, pairs, used):  # type: ignore[no-untyped-def]
    for pair in range(used):
        slots[pair_slot(pairs[pair, LEFT], pairs[pair, RIGHT], slots, pairs)] = pair + 1


@njit(cache=True)
def before(pair, other, pairs, scores):  # type: ignore[no-untyped-def]
    """Whether `pair` comes before `other` in the heap."""
    if scores[pair] != scores[other]:
        return scores[pair] > scores[other]
    if pairs[pair, LEFT] != pairs[other, LEFT]:
        return pairs[pair, LEFT] < pairs[other, LEFT]
    return pairs[pair, RIGHT] < pairs[other, RIGHT]


@njit(cache=True)
def settle(place, heap, size, pairs, scores):  # type: ignore[no-untyped-def]
    """Moves the pair at a place of the heap to where its score belongs."""
    pair = heap[place]
    while place > 0 and before(pair, heap[(place - 1) >> 1], pairs, scores):
        heap[place] = heap[(place - 1) >> 1]
        pairs[heap[place], PLACE] = place
        place = (place - 1) >> 1
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and before(heap[child + 1], heap[child], pairs, scores):
            child += 1
        if not before(heap[child], pair, pairs, scores):
            break
        heap[place] = heap[child]
        pairs[heap[place], PLACE] = place
        place = child
    heap[place] = pair
    pairs[pair, PLACE] = place


@njit(cache=True)
def score_of(pair, pairs, members, least, likelihood):  # type: ignore[no-untyped-def]
    """-1 for a pair that may not be merged."""
    count = pairs[pair, COUNT]
    if count < least:
        return -1.0
    if not likelihood:
        return float(count)
    return float(count) / (float(members[pairs[pair, LEFT], TOTAL]) * float(members[pairs[pair, RIGHT], TOTAL]))


@njit(cache=True)
def note(left, right, row, weight, slots, pairs, members, nodes, state):  # type: ignore[no-untyped-def]
    """One more occurrence of a pair, whose left symbol stands at `row`."""
    slot = pair_slot(left, right, slots, pairs)
    if slots[slot] == 0:
        fresh = state[PAIRS]
        slots[slot] = fresh + 1
        state[PAIRS] += 1
        pairs[fresh, LEFT] = left
        pairs[fresh, RIGHT] = right
        pairs[fresh, COUNT] = 0
        pairs[fresh, FIRST] = NONE
        pairs[fresh, OCCURRENCES] = 0
        pairs[fresh, PLACE] = NONE
        pairs[fresh, NEXT_LEFT] = UNLINKED
        pairs[fresh, NEXT_RIGHT] = UNLINKED
    pair = slots[slot] - 1
    if pairs[pair, NEXT_LEFT] == UNLINKED:
        pairs[pair, NEXT_LEFT] = members[left, LEFT_LIST]
        members[left, LEFT_LIST] = pair
    if pairs[pair, NEXT_RIGHT] == UNLINKED:
        pairs[pair, NEXT_RIGHT] = members[right, RIGHT_LIST]
        members[right, RIGHT_LIST] = pair
    node = state[FREE]
    if node == NONE:
        node = state[NODES]
        state[NODES] += 1
    else:
        state[FREE] = nodes[node, 1]
    nodes[node, 0] = row
    nodes[node, 1] = NONE
    if pairs[pair, FIRST] == NONE:
        pairs[pair, FIRST] = node
    else:
        nodes[pairs[pair, LAST], 1] = node
    pairs[pair, LAST] = node
    pairs[pair, OCCURRENCES] += 1
    pairs[pair, COUNT] += weight


@njit(cache=True)
def take(left, right, weight, slots, pairs):  # type: ignore[no-untyped-def]
    pairs[slots[pair_slot(left, right, slots, pairs)] - 1, COUNT] -= weight


@njit(cache=True)
def count_pairs(links, rows, weights, slots, pairs, members, nodes, heap, scores, state, least, likelihood):  # type: ignore[no-untyped-def]
    """Enters all pairs of the words; room is needed for as many pairs and nodes as there are rows."""
    for row in range(rows):
        members[links[row, SYMBOL], TOTAL] += weights[links[row, WORD]]
        after = links[row, AFTER]
        if after != NONE:
            weight = weights[links[row, WORD]]
            note(links[row, SYMBOL], links[after, SYMBOL], row, weight, slots, pairs, members, nodes, state)
    for pair in range(state[PAIRS]):
        enter(pair, pairs, members, heap, scores, state, least, likelihood)


@njit(cache=True)
def enter(pair, pairs, members, heap, scores, state, least, likelihood):  # type: ignore[no-untyped-def]
    """Brings the score of a pair and its place in the heap up to date."""
    score = score_of(pair, pairs, members, least, likelihood)
    if pairs[pair, PLACE] == NONE:
        scores[pair] = score
        pairs[pair, PLACE] = state[HEAP]
        heap[state[HEAP]] = pair
        state[HEAP] += 1
    elif scores[pair] == score:
        return
    scores[pair] = score
    settle(pairs[pair, PLACE], heap, state[HEAP], pairs, scores)


@njit(cache=True)
def enter_members(symbol, column, link, pairs, members, heap, scores, state, least, likelihood):  # type: ignore[no-untyped-def]
    """All pairs in one of the lists of a symbol; those that occur no more leave it."""
    previous = NONE
    pair = members[symbol, column]
    while pair != NONE:
        following = pairs[pair, link]
        enter(pair, pairs, members, heap, scores, state, least, likelihood)
        if pairs[pair, COUNT] == 0:
            pairs[pair, link] = UNLINKED
            if previous == NONE:
                members[symbol, column] = following
            else:
                pairs[previous, link] = following
        else:
            previous = pair
        pair = following


@njit(cache=True)
def occurrences(pair, pairs, nodes, state):  # type: ignore[no-untyped-def]
    """The rows in a pair's list, which becomes empty, in ascending order."""
    rows = np.empty(pairs[pair, OCCURRENCES], np.int32)
    node = pairs[pair, FIRST]
    for place in range(rows.size):
        rows[place] = nodes[node, 0]
        following = nodes[node, 1]
        nodes[node, 1] = state[FREE]
        state[FREE] = node
        node = following
    pairs[pair, FIRST] = NONE
    pairs[pair, OCCURRENCES] = 0
    if pairs[pair, LEFT] == pairs[pair, RIGHT]:
        rows.sort()  # overlapping pairs are merged from the left
    return rows


@njit(cache=True)
def merge(pair, token, links, weights, slots, pairs, members, nodes, heap, scores, state, least, likelihood):  # type: ignore[no-untyped-def]
    """Replaces a pair by `token` in all words; room is needed for twice its occurrences of new pairs and nodes."""
    left, right = pairs[pair, LEFT], pairs[pair, RIGHT]
    for row in occurrences(pair, pairs, nodes, state):
        second = links[row, AFTER]
        if links[row, SYMBOL] != left or second == NONE or links[second, SYMBOL] != right:
            continue
        weight = weights[links[row, WORD]]
        first, last = links[row, BEFORE], links[second, AFTER]
        pairs[pair, COUNT] -= weight
        if first != NONE:
            take(links[first, SYMBOL], left, weight, slots, pairs)
        if last != NONE:
            take(right, links[last, SYMBOL], weight, slots, pairs)
            links[last, BEFORE] = row
        links[row, SYMBOL] = token
        links[row, AFTER] = last
        links[second, SYMBOL] = DEAD
        members[left, TOTAL] -= weight
        members[right, TOTAL] -= weight
        members[token, TOTAL] += weight
        if first != NONE:
            note(links[first, SYMBOL], token, first, weight, slots, pairs, members, nodes, state)
        if last != NONE:
            note(token, links[last, SYMBOL], row, weight, slots, pairs, members, nodes, state)
    for symbol in (left, right, np.int64(token)):
        enter_members(symbol, LEFT_LIST, NEXT_LEFT, pairs, members, heap, scores, state, least, likelihood)
        enter_members(symbol, RIGHT_LIST, NEXT_RIGHT, pairs, members, heap, scores, state, least, likelihood)
