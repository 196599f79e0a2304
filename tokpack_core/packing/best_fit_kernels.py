"""Best-fit-decreasing over a histogram of lengths, without any search for the pack that fits best.

Plain best-fit-decreasing takes items by decreasing length and puts each into the open pack with the least room that
still takes it. Two facts make it cheap:

* Lengths are integers, and packs with equal room are interchangeable. Items of one length therefore advance whole
  classes of packs at once: the class with the least sufficient room `r` takes `r // length` copies into each pack.
  (After one copy its room `r - length` is smaller than every other sufficient room, so the next copy follows.)
* Lengths only decrease. Packs with too little room *wait* in a max-heap until the current length has come down to
  their room; what wakes then has less room than everything that woke before. So the packs that can take an item form
  a stack whose top is the best fit, and no search structure over the rooms 1..L is needed: memory does not depend
  on L.

Classes form a forest: node = (parent, length, copies), and `packs` of a node counts the packs that end there. Every
node places at least one item, so nodes <= items; the node arrays are allocated for that bound and the pages that are
not reached are never touched. Dealing documents into the forest walks from each final node to its root.

Sorted entries carry the document in their low 31 bits and its number of full chunks above. They stand in the plan's
column of starts until that gets its final values, so that packing needs no memory of its own beyond the forest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Forest = tuple[Int32, Int32, Int32, Int32]

DOCUMENT_BITS = 31
DOCUMENT_MASK = (1 << DOCUMENT_BITS) - 1


@njit(cache=True)
def count_remainders(lengths: npt.NDArray[np.integer], capacity: int, counts: Int64) -> int:
    """Add to counts[r] the documents with length % capacity == r; counts is int64 [capacity].

    Returns the full chunks of all documents.
    """
    full = 0
    for i in range(lengths.size):
        rest = lengths[i]
        if rest >= capacity:
            full += rest // capacity
            rest %= capacity
        counts[rest] += 1
    return full


@njit(cache=True)
def sort_by_remainder(lengths: npt.NDArray[np.integer], capacity: int, position: Int64, entries: Int64) -> None:
    """Stable counting sort: position[r] is the first place of remainder r in `entries`, and is advanced."""
    for i in range(lengths.size):
        rest = lengths[i]
        entry = np.int64(i)
        if rest >= capacity:
            entry |= np.int64(rest // capacity) << DOCUMENT_BITS
            rest %= capacity
        if rest > 0:
            entries[position[rest]] = entry
            position[rest] += 1


@njit(cache=True)
def write_full_chunks(
    lengths: npt.NDArray[np.integer],
    capacity: int,
    document: Int32,
    start: Int64,
    length: Int32,
    chunk: Int32,
    chunks: Int32,
) -> None:
    """Rows of the chunks that fill a pack alone, in document order."""
    row = 0
    for i in range(lengths.size):
        if lengths[i] >= capacity:
            full = lengths[i] // capacity
            pieces = full + (1 if lengths[i] % capacity else 0)
            for k in range(full):
                document[row] = i
                start[row] = k * capacity
                length[row] = capacity
                chunk[row] = k
                chunks[row] = pieces
                row += 1


@njit(cache=True)
def push(heap: Int64, size: int, key: int) -> None:
    """Sift `key` up from place `size` of a binary max-heap."""
    at = size
    while at > 0 and heap[(at - 1) >> 1] < key:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = key


@njit(cache=True)
def pop(heap: Int64, size: int) -> int:
    """Take the greatest key off a binary max-heap of `size` keys."""
    top = heap[0]
    last = heap[size - 1]
    at = 0
    child = 1
    while child < size - 1:
        if child + 1 < size - 1 and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= last:
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = last
    return top


@njit(cache=True)
def fit_classes(values: Int64, counts: Int64, capacity: int, items: int) -> Forest:
    """Best-fit-decreasing of counts[v] items of length values[v], for decreasing values of 1 .. capacity - 1.

    Returns parent (-1: a new pack), value (index into `values`), copies, packs; each int32 [nodes].
    """
    parent = np.empty(items, np.int32)
    value = np.empty(items, np.int32)
    copies = np.empty(items, np.int32)
    packs = np.empty(items, np.int32)
    room = np.empty(items, np.int32)
    nodes = 0
    waiting = np.empty(items, np.int64)  # room << 32 | node, so that equal rooms wake in a fixed order
    asleep = 0
    ready = np.empty(items, np.int32)
    awake = 0
    for v in range(values.size):
        length = values[v]
        while asleep > 0 and waiting[0] >> 32 >= length:
            ready[awake] = pop(waiting, asleep) & 0xFFFFFFFF
            asleep -= 1
            awake += 1
        left = counts[v]
        while left > 0:
            base = ready[awake - 1] if awake > 0 else -1
            space = room[base] if base >= 0 else capacity
            fit = space // length
            whole = left // fit
            part = left % fit
            if base >= 0:
                if whole >= packs[base]:
                    whole = np.int64(packs[base])
                    part = 0
                packs[base] -= whole + (1 if part else 0)
                if packs[base] == 0:
                    awake -= 1
            left -= whole * fit + part
            for copied, number in ((fit, whole), (part, 1 if part else 0)):
                if number > 0:
                    parent[nodes] = base
                    value[nodes] = v
                    copies[nodes] = copied
                    packs[nodes] = number
                    room[nodes] = space - copied * length
                    if room[nodes] > 0:
                        push(waiting, asleep, np.int64(room[nodes]) << 32 | nodes)
                        asleep += 1
                    nodes += 1
    return parent[:nodes].copy(), value[:nodes].copy(), copies[:nodes].copy(), packs[:nodes].copy()


@njit(cache=True)
def deal(
    forest: Forest,
    values: Int64,
    cursor: Int64,
    entries: Int64,
    document: Int32,
    length: Int32,
    chunk: Int32,
    ends: Int64,
) -> None:
    """Fill packs from the sorted entries: cursor[v] is the next entry of values[v], and is advanced.

    document, length and chunk are [items] columns, ends [packs] gets the end of each pack, counted from its first item.
    """
    parent, value, copies, packs = forest
    path = np.empty(values.size, np.int32)
    row = 0
    pack = 0
    for node in range(parent.size):
        if packs[node] == 0:
            continue
        depth = 0
        at = node
        while at >= 0:
            path[depth] = at
            depth += 1
            at = parent[at]
        for _ in range(packs[node]):
            for d in range(depth - 1, -1, -1):
                v = value[path[d]]
                first = cursor[v]
                for k in range(copies[path[d]]):
                    document[row] = entries[first + k] & DOCUMENT_MASK
                    chunk[row] = entries[first + k] >> DOCUMENT_BITS
                    length[row] = values[v]
                    row += 1
                cursor[v] = first + copies[path[d]]
            ends[pack] = row
            pack += 1


@njit(cache=True)
def number_rests(capacity: int, chunk: Int32, start: Int64, chunks: Int32) -> None:
    """What follows from the number of full chunks before a remainder or short document, [items]."""
    for row in range(chunk.size):
        start[row] = np.int64(chunk[row]) * capacity
        chunks[row] = chunk[row] + 1
