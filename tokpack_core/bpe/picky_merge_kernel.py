"""Byte-level BPE training with deletions: PickyBPE (Chizhov et al. 2024, arXiv 2409.04599).

After the merge of (a, b), a or b is deleted if it is longer than a byte and most of its occurrences went into the
merge: count(ab) / count(x) >= the threshold, with the counts before the merge. What is left of it is split into the
tokens that it was made of (of those that were deleted themselves, what they were made of), and these go on merging. A
spelling that was deleted comes back under its number when a merge makes it again.

Layout as in `merge_kernels`: a symbol of k cells has its id in its first and last cell; `starts`, uint8, marks first
cells. Occurrences of pairs and of tokens are chains of nodes in one pool, which only grow: an entry that no longer
holds is passed over. `events`, int32 [n, 3], is what was done: left, right, token; or token, -1, k for a deletion
whose parts are parts[part_offsets[k] : part_offsets[k + 1]].
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.merge_kernels import (
    FIRST_WEIGHT,
    FREE,
    INTERIOR,
    RIGHT,
    grown,
    pair_slot,
    push,
    replace_top,
    resized,
    spell,
)
from tokpack_core.bpe.word_table_kernels import ONE, mixed, word_key

KEY, COUNT, CHAIN, TOUCHED = 0, 1, 2, 3
NODES, PAIRS, CHANGED = 0, 1, 2


@njit(cache=True)
def weight_after(symbols, weights, at):  # type: ignore[no-untyped-def]
    while symbols[at] >= INTERIOR:
        at += 1
    return weights[FIRST_WEIGHT - symbols[at]]


@njit(cache=True)
def add_pair(pairs, left, right, place, weight, chain_places, chain_next, sizes, changed, step):  # type: ignore[no-untyped-def]
    """Counts one more occurrence; sizes: nodes in use, pairs in use, pairs changed in this step."""
    key = np.int64(left) << 32 | np.int64(right)
    slot = pair_slot(pairs, key)
    if pairs[slot, KEY] == FREE:
        pairs[slot, KEY], pairs[slot, COUNT], pairs[slot, CHAIN], pairs[slot, TOUCHED] = key, 0, -1, -1
        sizes[PAIRS] += 1
    pairs[slot, COUNT] += weight
    node = sizes[NODES]
    chain_places[node] = place
    chain_next[node] = pairs[slot, CHAIN]
    pairs[slot, CHAIN] = node
    sizes[NODES] += 1
    if pairs[slot, TOUCHED] != step:
        pairs[slot, TOUCHED] = step
        changed[sizes[CHANGED]] = key
        sizes[CHANGED] += 1


@njit(cache=True)
def take_pair(pairs, left, right, weight):  # type: ignore[no-untyped-def]
    pairs[pair_slot(pairs, np.int64(left) << 32 | np.int64(right)), COUNT] -= weight


@njit(cache=True)
def add_place(heads, token, place, chain_places, chain_next, sizes):  # type: ignore[no-untyped-def]
    node = sizes[NODES]
    chain_places[node] = place
    chain_next[node] = heads[token]
    heads[token] = node
    sizes[NODES] += 1


@njit(cache=True)
def places_of(chain, chain_places, chain_next):  # type: ignore[no-untyped-def]
    """The places of a chain, ascending, each once."""
    count = 0
    node = chain
    while node >= 0:
        count += 1
        node = chain_next[node]
    places = np.empty(count, np.int64)
    node = chain
    for k in range(count):
        places[k] = chain_places[node]
        node = chain_next[node]
    places.sort()
    kept = 0
    for k in range(count):
        if kept == 0 or places[k] != places[kept - 1]:
            places[kept] = places[k]
            kept += 1
    return places[:kept]


@njit(cache=True)
def token_of_spelling(spelled, arena, begins, token):  # type: ignore[no-untyped-def]
    """The token that is spelled as `token` is, itself if it is the first; `spelled`, int64, holds tokens by hash."""
    low, high = word_key(arena, begins[token], begins[token + 1] - begins[token])
    mask = np.uint64(spelled.size - 1)
    slot = mixed(low, high) & mask
    length = begins[token + 1] - begins[token]
    while spelled[slot] >= 0:
        other = spelled[slot]
        same = begins[other + 1] - begins[other] == length
        at = 0
        while same and at < length:
            same = arena[begins[other] + at] == arena[begins[token] + at]
            at += 1
        if same:
            return other
        slot = (slot + ONE) & mask
    spelled[slot] = token
    return token


@njit(cache=True)
def write_parts(token, alive, made, out):  # type: ignore[no-untyped-def]
    """The living tokens that a deleted one falls into, in order; returns how many."""
    stack = np.empty(out.size + 2, np.int64)
    stack[0], stack[1] = made[token, 1], made[token, 0]
    depth = 2
    count = 0
    while depth > 0:
        depth -= 1
        part = stack[depth]
        if alive[part]:
            out[count] = part
            count += 1
        else:
            stack[depth], stack[depth + 1] = made[part, 1], made[part, 0]
            depth += 2
    return count


@njit(cache=True, nogil=True)
def merge_and_delete(  # type: ignore[no-untyped-def]
    symbols, weights, arena, begins, alphabet, size_wanted, most_symbols, least, threshold, tie_break
):
    """Merges and deletes until `size_wanted` tokens live, `most_symbols` were made, or no pair occurs `least` times.

    `begins` [most_symbols + 2] and `arena` hold the spelling of each of the `alphabet` single bytes.
    Returns (events, counts of the pairs merged, parts, part_offsets, alive [symbols], symbols made, arena).
    """
    cells = np.ones(most_symbols + 1, np.int64)
    alive = np.zeros(most_symbols + 1, np.bool_)
    alive[:alphabet] = True
    occurrences = np.zeros(most_symbols + 1, np.int64)
    made = np.zeros((most_symbols + 1, 2), np.int64)
    heads = np.full(most_symbols + 1, -1, np.int64)
    table_size = 16
    while table_size < 2 * most_symbols + 2:
        table_size *= 2
    spelled = np.full(table_size, -1, np.int64)
    starts = np.zeros(symbols.size, np.uint8)
    chain_places = np.empty(2 * symbols.size + 1024, np.int32)
    chain_next = np.empty(2 * symbols.size + 1024, np.int64)
    pairs = np.full((1 << 14, 4), FREE, np.int64)
    changed = np.empty(1 << 16, np.int64)
    sizes = np.zeros(3, np.int64)
    for token in range(alphabet):
        token_of_spelling(spelled, arena, begins, token)
    weight = np.int64(0)
    for at in range(symbols.size - 1, -1, -1):
        if symbols[at] < 0:
            weight = weights[FIRST_WEIGHT - symbols[at]] if at > 0 else np.int64(0)
            continue
        starts[at] = 1
        occurrences[symbols[at]] += weight
        if symbols[at + 1] >= 0:
            if 2 * (sizes[PAIRS] + 1) > pairs.shape[0]:
                pairs, sizes[PAIRS] = resized(pairs, 2 * pairs.shape[0], 1)
            sizes[CHANGED] = 0
            add_pair(pairs, symbols[at], symbols[at + 1], at, weight, chain_places, chain_next, sizes, changed, -2)
    heap_counts = np.empty(sizes[PAIRS] + 1024, np.int64)
    heap_pairs = np.empty(sizes[PAIRS] + 1024, np.int64)
    heaped = 0
    for row in range(pairs.shape[0]):
        if pairs[row, KEY] != FREE and pairs[row, COUNT] >= least:
            push(heap_counts, heap_pairs, heaped, pairs[row, COUNT], pairs[row, KEY], tie_break, arena, begins)
            heaped += 1
    events = np.empty((1024, 3), np.int32)
    counts = np.empty(1024, np.int64)
    parts = np.empty(1024, np.int32)
    part_offsets = np.zeros(1024, np.int64)
    done = 0
    deletions = 0
    made_symbols = alphabet
    living = alphabet
    while living < size_wanted and heaped > 0:
        key = heap_pairs[0]
        slot = pair_slot(pairs, key)
        count = pairs[slot, COUNT]
        outdated = count != heap_counts[0]
        if outdated and count >= least:
            replace_top(heap_counts, heap_pairs, heaped, count, key, tie_break, arena, begins)
            continue
        heaped -= 1
        last_count, last_pair = heap_counts[heaped], heap_pairs[heaped]
        replace_top(heap_counts, heap_pairs, heaped, last_count, last_pair, tie_break, arena, begins)
        if outdated or count < least:
            continue
        left, right = key >> 32, key & RIGHT
        if made_symbols > most_symbols - 1:
            break
        arena = spell(left, right, np.int64(made_symbols), arena, begins)
        token = token_of_spelling(spelled, arena, begins, made_symbols)
        if token == made_symbols:
            made_symbols += 1
            cells[token] = cells[left] + cells[right]
        if not alive[token]:
            alive[token] = True
            living += 1
            made[token, 0], made[token, 1] = left, right
        if done + 3 > counts.size:
            counts = grown(counts, done + 3)
            more = np.empty((counts.size, 3), np.int32)
            more[:done] = events[:done]
            events = more
        events[done, 0], events[done, 1], events[done, 2] = left, right, token
        counts[done] = count
        done += 1
        delete_left = cells[left] > 1 and count >= threshold * occurrences[left]
        delete_right = right != left and cells[right] > 1 and count >= threshold * occurrences[right]
        places = places_of(pairs[slot, CHAIN], chain_places, chain_next)
        pairs[slot, COUNT] = 0
        pairs[slot, CHAIN] = -1
        sizes[CHANGED] = 0
        step = np.int64(done)
        room = 3 * places.size
        chain_places = grown(chain_places, sizes[NODES] + room)
        chain_next = grown(chain_next, sizes[NODES] + room)
        changed = grown(changed, 2 * places.size)
        while 2 * (sizes[PAIRS] + 2 * places.size) > pairs.shape[0]:
            pairs, sizes[PAIRS] = resized(pairs, 2 * pairs.shape[0], 1)
        for place in places:
            if starts[place] == 0 or symbols[place] != left:
                continue
            middle = place + cells[left]
            if symbols[middle] != right or starts[middle] == 0:
                continue
            following = middle + cells[right]
            weight = weight_after(symbols, weights, following)
            before, after = symbols[place - 1], symbols[following]
            if before >= 0:
                first = place - cells[before]
                take_pair(pairs, before, left, weight)
                add_pair(pairs, before, token, first, weight, chain_places, chain_next, sizes, changed, step)
            if after >= 0:
                take_pair(pairs, right, after, weight)
                add_pair(pairs, token, after, place, weight, chain_places, chain_next, sizes, changed, step)
            occurrences[left] -= weight
            occurrences[right] -= weight
            occurrences[token] += weight
            starts[middle] = 0
            symbols[middle - 1] = INTERIOR
            symbols[middle] = INTERIOR
            symbols[place] = token
            symbols[following - 1] = token
            add_place(heads, token, place, chain_places, chain_next, sizes)
        pairs[pair_slot(pairs, key), COUNT] = 0
        for side in range(2):
            gone = left if side == 0 else right
            if not (delete_left if side == 0 else delete_right):
                continue
            alive[gone] = False
            living -= 1
            if done + 3 > counts.size:
                counts = grown(counts, done + 3)
                more = np.empty((counts.size, 3), np.int32)
                more[:done] = events[:done]
                events = more
            first_part = part_offsets[deletions]
            parts = grown(parts, first_part + cells[gone])
            into = parts[first_part : first_part + cells[gone]]
            number = write_parts(gone, alive, made, into)
            part_offsets = grown(part_offsets, deletions + 2)
            part_offsets[deletions + 1] = first_part + number
            events[done, 0], events[done, 1], events[done, 2] = gone, -1, deletions
            counts[done] = 0
            done += 1
            deletions += 1
            places = places_of(heads[gone], chain_places, chain_next)
            heads[gone] = -1
            room = (2 * number + 2) * places.size
            chain_places = grown(chain_places, sizes[NODES] + room)
            chain_next = grown(chain_next, sizes[NODES] + room)
            changed = grown(changed, sizes[CHANGED] + (number + 1) * places.size)
            while 2 * (sizes[PAIRS] + (number + 1) * places.size) > pairs.shape[0]:
                pairs, sizes[PAIRS] = resized(pairs, 2 * pairs.shape[0], 1)
            for place in places:
                if starts[place] == 0 or symbols[place] != gone:
                    continue
                following = place + cells[gone]
                weight = weight_after(symbols, weights, following)
                before, after = symbols[place - 1], symbols[following]
                if before >= 0:
                    take_pair(pairs, before, gone, weight)
                if after >= 0:
                    take_pair(pairs, gone, after, weight)
                occurrences[gone] -= weight
                symbols[place] = INTERIOR
                symbols[following - 1] = INTERIOR
                at = place
                previous = before
                previous_place = place - (cells[before] if before >= 0 else 0)
                for k in range(number):
                    part = into[k]
                    symbols[at] = part
                    symbols[at + cells[part] - 1] = part
                    starts[at] = 1
                    occurrences[part] += weight
                    add_place(heads, part, at, chain_places, chain_next, sizes)
                    if previous >= 0:
                        add_pair(
                            pairs,
                            previous,
                            part,
                            previous_place,
                            weight,
                            chain_places,
                            chain_next,
                            sizes,
                            changed,
                            step,
                        )
                    previous, previous_place = part, at
                    at += cells[part]
                if after >= 0:
                    add_pair(
                        pairs, previous, after, previous_place, weight, chain_places, chain_next, sizes, changed, step
                    )
        heap_counts = grown(heap_counts, heaped + sizes[CHANGED])
        heap_pairs = grown(heap_pairs, heaped + sizes[CHANGED])
        for k in range(sizes[CHANGED]):
            slot = pair_slot(pairs, changed[k])
            if pairs[slot, KEY] != FREE and pairs[slot, COUNT] >= least:
                push(heap_counts, heap_pairs, heaped, pairs[slot, COUNT], changed[k], tie_break, arena, begins)
                heaped += 1
    last_part = part_offsets[deletions]
    return (
        events[:done],
        counts[:done],
        parts[:last_part],
        part_offsets[: deletions + 1],
        alive[:made_symbols],
        made_symbols,
        arena,
    )
