"""Merges the pairs that occur seldom, where equal counts go by ids: all pairs of a count together, by array operations.

Many pairs are equally rare, and then the smaller pair of ids comes first, left before right. A new symbol's id is
greater than all others, so a pair (a, bc) that occurs as often as (a, b) did comes after (b, c), or (a, b) would have
come before it: what is born never comes before what is merged. So of the pairs of one count a pair is merged for
certain if no pair that comes before it overlaps it anywhere. All of those are merged at once, a round; those that they
overlap have become rarer and wait, and the others are looked at again. A round needs the order of overlapping pairs
alone, and for those whose left symbol is known before the first round it needs no order of what is born meanwhile. So
rounds are made with these until none is left; only then do the new symbols get their ids, by the pairs that they were
merged from, and the pairs that begin with one of them follow.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.small_pairs import BITS, RIGHT, Cells, Pairs, joined
from tokpack_core.bpe.small_vocabulary import Vocabulary
from tokpack_core.bpe.small_words import Words

Rows = npt.NDArray[np.bool_]


class Levels:
    """Merges pairs that occur `least` times or more."""

    def __init__(self, vocabulary: Vocabulary, words: Words, pairs: Pairs, least: int) -> None:
        self.vocabulary, self.words, self.least = vocabulary, words, least
        self.waiting = [pairs]
        """By their counts when they were last looked at."""
        self.at_work = np.zeros(words.symbols.size, bool)
        """At the first cell of a pair that is looked at in every round."""

    def run(self) -> None:
        """Count by count from the greatest down."""
        while not self.vocabulary.full:
            waiting = joined(self.waiting)
            if not waiting.keys.size:
                break
            count = int(waiting.sums.max())
            self.waiting = [waiting.those(waiting.sums < count)]
            self.merge_all(waiting.those(waiting.sums == count).compact(), count)

    def merge_all(self, ready: Pairs, count: int) -> None:
        """All pairs of that count, by their left symbols in order; `ready`: those that had it when counted."""
        while ready.keys.size and not self.vocabulary.full:
            ready = self.standing(ready, count)
            if not ready.keys.size:
                break
            bound = len(self.vocabulary.tokens)
            if ready.keys.size > self.vocabulary.missing:
                # Not many more than there is room for.
                last = int(np.partition(ready.keys, self.vocabulary.missing)[self.vocabulary.missing])
                bound = min(bound, (last >> BITS) + 1)
            first = ready.lefts < bound
            born = self.merge_rounds(ready.those(first).compact(), count, bound)
            ready = joined([ready.those(~first), *born]).compact()

    def merge_rounds(self, live: Pairs, count: int, bound: int) -> list[Pairs]:
        """Merges pairs whose left symbol is below `bound`; returns those of that count that are born with others."""
        words, known = self.words, len(self.vocabulary.tokens)
        merged: list[Pairs] = []
        later: list[Pairs] = []
        new, waiting_before = known, len(self.waiting)
        self.at_work[live.places] = True
        while live.keys.size:
            beaten = self.beaten(live)
            chosen = live.those(~beaten).compact()
            self.at_work[chosen.places] = False
            chosen = words.apart(chosen)
            born = words.merge(chosen, new).of_weight(self.least)
            merged.append(chosen)
            new += chosen.keys.size
            live = self.standing(live.those(beaten).compact(), count)
            again = born.sums == count
            self.waiting.append(born.those(~again))
            first = again & (born.lefts < bound)
            later.append(born.those(again & ~first))
            if first.any():
                more = born.those(first).compact()
                self.at_work[more.places] = True
                live = joined([live, more])
        self.name(merged, count, known, [*self.waiting[waiting_before:], *later])
        return later

    def beaten(self, pairs: Pairs) -> Rows:
        """Whether a pair that comes before it overlaps it anywhere."""
        symbols, cells, places = self.words.symbols, self.words.cells, pairs.places
        lefts, rights = pairs.spread(pairs.lefts), pairs.spread(pairs.rights)
        middles = places + cells[lefts]
        befores, afters = symbols[places - 1], symbols[middles + cells[rights]]
        by_next = self.at_work[middles]
        by_next &= (rights < lefts) | (rights == lefts) & (afters < lefts)
        by_previous = self.at_work[places - cells[befores]]
        by_previous &= (befores < lefts) | (befores == lefts) & (lefts < rights)
        by_previous &= befores >= 0
        return np.logical_or.reduceat(by_next | by_previous, pairs.firsts)

    def standing(self, pairs: Pairs, count: int) -> Pairs:
        """Those that still occur so often; the others wait."""
        if not pairs.keys.size:
            return pairs
        still = self.words.still(pairs)
        if still.all():
            return pairs
        self.at_work[pairs.places[~still]] = False
        sums = np.add.reduceat(self.words.weights[pairs.places] * still, pairs.firsts)
        found = pairs.at(still)._replace(sums=sums)
        fallen = sums < count
        rarer = found.those(fallen).compact()
        self.at_work[rarer.places] = False
        self.waiting.append(rarer.of_weight(self.least))
        return found.those(~fallen).compact()

    def name(self, merged: list[Pairs], count: int, known: int, born: list[Pairs]) -> None:
        """Gives new symbols their ids in the order of their pairs, in which other new ones may stand on the right."""
        keys = np.concatenate([pairs.keys for pairs in merged])
        numbers = np.arange(known, known + keys.size)
        names, order = numbers, np.empty(0, np.int64)
        while True:
            named = renamed(keys, names, known)
            ordered = np.argsort(named)
            if np.array_equal(ordered, order):
                break
            order = ordered
            names = np.empty_like(numbers)
            names[order] = numbers
        self.vocabulary.add_all(named[order][: self.vocabulary.missing], count)
        self.words.rename(names, known, np.concatenate([pairs.places for pairs in merged]))
        for pairs in born:
            pairs.keys[:] = renamed(pairs.keys, names, known)


def renamed(keys: Cells, names: Cells, known: int) -> Cells:
    """Pairs with other ids of symbols from `known` on."""
    lefts, rights = keys >> BITS, keys & RIGHT
    for sides in (lefts, rights):
        new = sides >= known
        sides[new] = names[sides[new] - known]
    return lefts << BITS | rights
