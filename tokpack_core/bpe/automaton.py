"""From regular expressions to one table that a loop over characters follows.

Thompson's construction gives a program of instructions; a state of the automaton is the list of instructions that a
backtracking matcher would try, in its order of preference, and the list is cut where a match would win over the rest
(the simulation of Thompson and Pike, made deterministic as in R. Cox, "Regular Expression Matching: the Virtual
Machine Approach"). So the table finds what a backtracking engine finds: leftmost, first alternative, greedy.

Characters are first mapped to classes: code points that no set of the pattern tells apart share one; the last class
stands for the end of the text. A state knows of a match one character later, which decides look-ahead at one character.

Entry [state, class] = next state (premultiplied by the number of classes) << 2 | flags:
  MATCHES  a match ends before this character, and longer ones are still possible;
  ENDS     the match that ends before this character is final; the next state has read it as the first of a new match.
A next state DEAD means that no longer match is possible; the last match seen is the one.

Several regexes are stages, as in a Hugging Face `Sequence` of isolated `Split`s: each next one splits the pieces that
those before have left, be they matches or what lies between. All but the last must be runs of one set, and the sets
disjoint. So a class belongs to one stage, and where the stage changes a piece ends. Within a run of unlimited length
the last regex goes on splitting; one of limited length is a pretoken as it is, for which it must be one character or
the last regex must not match anything within it.

Threes counted from the right are left to those who read the table, which knows such a run as one match: they must be an
alternative of their own, of characters that nothing else in the regex reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.regex_syntax import (
    Alternatives,
    CharacterSet,
    LookAhead,
    Node,
    Repeat,
    Sequence,
    ThreesFromRight,
    Unsupported,
    parse,
)
from tokpack_core.bpe.unicode_categories import (
    CODE_POINTS,
    WHITE_SPACE,
    CategoryRanges,
    UnicodeVersion,
    category_ranges,
)

MATCHES, ENDS = 1, 2
DEAD = 0
MOST_STATES = 4096
MOST_CLASSES = 255


@dataclass(frozen=True)
class Consume:
    """Read one character of a set, then go on at `then`."""

    characters: CharacterSet
    then: int


@dataclass(frozen=True)
class Fork:
    """Go on at each place, the first one preferred."""

    places: tuple[int, ...]


@dataclass(frozen=True)
class Check:
    """Go on at `then` if the look-ahead holds."""

    look: LookAhead
    then: int


@dataclass(frozen=True)
class Accept:
    pass


Instruction = Consume | Fork | Check | Accept
Threads = tuple[int, ...]


@dataclass(frozen=True)
class Automaton:
    classes: npt.NDArray[np.uint8]
    """[0x110000]: class of each code point"""
    transitions: npt.NDArray[np.int32]
    """[states * classes], see above; state 0 is DEAD"""
    start: int
    """premultiplied"""
    stages: npt.NDArray[np.uint8]
    """[classes, the one for the end of the text included]: the stage that each belongs to"""
    threes: npt.NDArray[np.bool_]
    """[classes], likewise: a match that begins with one is to be cut in threes of characters, from the right"""


@cache
def compile_splits(splits: tuple[str, ...], version: UnicodeVersion) -> Automaton:
    """The automaton of one regex, or of stages. Raises Unsupported for patterns that it cannot express."""
    return Construction(splits, version).automaton()


class Construction:
    def __init__(self, splits: tuple[str, ...], version: UnicodeVersion) -> None:
        self.program: list[Instruction] = []
        trees = [parse(pattern) for pattern in splits]
        borders, limited = map(list, zip(*map(run_of_one_set, trees[:-1]), strict=True)) if trees[1:] else ([], [])
        self.threes = [
            choice.characters for tree in trees for choice in choices_of(tree) if isinstance(choice, ThreesFromRight)
        ]
        own = [self.instruct(tree, self.add(Accept())) for tree in trees]
        self.starts = [start if limit else own[-1] for start, limit in zip(own, [*limited, True], strict=True)]
        self.sets = list(dict.fromkeys([*borders, *self.sets_of_program()]))
        self.classes, members = character_classes(self.sets, category_ranges(version))
        self.member = {characters: members[place] for place, characters in enumerate(self.sets)}
        self.end = members.shape[1]
        self.stage = [
            next((stage for stage, border in enumerate(borders) if self.member[border][c]), len(borders))
            for c in range(self.end)
        ]
        self.refuse_overlaps(borders)
        for stage, limit in enumerate(limited):
            if limit and not isinstance(trees[stage], CharacterSet):
                self.refuse_matches_within(stage)
        self.refuse_other_readers(trees[-1])
        self.states: dict[tuple[int, Threads], int] = {}
        self.order: list[tuple[int, Threads]] = []

    def add(self, instruction: Instruction) -> int:
        self.program.append(instruction)
        return len(self.program) - 1

    def instruct(self, node: Node, then: int) -> int:
        """Adds the instructions of a node in front of the place `then`; returns where they start."""
        match node:
            case CharacterSet():
                return self.add(Consume(node, then))
            case LookAhead():
                return self.add(Check(node, then))
            case Alternatives(choices):
                return self.add(Fork(tuple(self.instruct(choice, then) for choice in choices)))
            case ThreesFromRight(characters):
                if not isinstance(self.program[then], Accept):
                    raise Unsupported("threes from the right that are not the end of the pattern")
                return self.instruct(Repeat(characters, 1, None), then)
            case Sequence(parts):
                for part in reversed(parts):
                    then = self.instruct(part, then)
                return then
            case Repeat(part, least, most):
                then = self.star(part, then) if most is None else self.options(part, most - least, then)
                return self.instruct(Sequence((part,) * least), then)

    def star(self, part: Node, then: int) -> int:
        fork = self.add(Fork(()))
        self.program[fork] = Fork((self.instruct(part, fork), then))
        return fork

    def options(self, part: Node, count: int, then: int) -> int:
        place = then
        for _ in range(count):
            place = self.add(Fork((self.instruct(part, place), then)))
        return place

    def sets_of_program(self) -> list[CharacterSet]:
        consumed = [step.characters for step in self.program if isinstance(step, Consume)]
        return consumed + [step.look.ahead for step in self.program if isinstance(step, Check)]

    def automaton(self) -> Automaton:
        width = self.end + 1
        self.state(-1, ())
        start = self.state(len(self.starts), ())
        rows = [[DEAD] * width]
        while len(rows) < len(self.order):
            stage, threads = self.order[len(rows)]
            rows.append([self.entry(stage, threads, c) for c in range(width)])
            if len(rows) > MOST_STATES:
                raise Unsupported(f"more than {MOST_STATES} states")
        table = self.fused(np.array(rows, np.int32), start)
        premultiplied = ((table >> 2) * width << 2) | (table & 3)
        stages = np.array([*self.stage, len(self.starts) - 1], np.uint8)
        threes = np.zeros(width, bool)
        for counted in self.threes:
            threes[:-1] |= self.member[counted]
        return Automaton(self.classes, premultiplied.ravel(), start * width, stages, threes)

    def refuse_overlaps(self, borders: list[CharacterSet]) -> None:
        if borders and np.sum([self.member[border] for border in borders], axis=0).max() > 1:
            raise Unsupported("stages whose sets overlap")

    def refuse_matches_within(self, stage: int) -> None:
        """Raises Unsupported if the last regex matches something that is all of this stage's characters."""
        own = [c for c in range(self.end) if self.stage[c] == stage]
        waiting: list[Threads] = [(self.starts[-1],)]
        seen = set(waiting)
        while waiting:
            threads = waiting.pop()
            for c in [*own, self.end]:
                following, matched = self.step(threads, c)
                if matched:
                    raise Unsupported("a later stage matches within an earlier one's")
                if following and following not in seen:
                    seen.add(following)
                    waiting.append(following)

    def refuse_other_readers(self, last: Node) -> None:
        """Raises Unsupported if the last regex counts characters in threes that can be in a match of another kind."""
        readers = [step.characters for step in self.program if isinstance(step, Consume)]
        for counted in (choice.characters for choice in choices_of(last) if isinstance(choice, ThreesFromRight)):
            # A run is two instructions: its first character, and those after it.
            if sum(bool((self.member[characters] & self.member[counted]).any()) for characters in readers) > 2:
                raise Unsupported("characters that are counted in threes and are in other matches")

    def state(self, stage: int, threads: Threads) -> int:
        """The number of a state, which is new if it was not met before; DEAD is the first."""
        if (stage, threads) not in self.states:
            self.states[stage, threads] = len(self.order)
            self.order.append((stage, threads))
        return self.states[stage, threads]

    def entry(self, stage: int, threads: Threads, c: int) -> int:
        """From the start (which has the stage after all) a class leads to its own stage."""
        if stage == len(self.starts):
            if c == self.end:
                return DEAD
            stage, threads = self.stage[c], (self.starts[self.stage[c]],)
        seen = c if c < self.end and self.stage[c] == stage else self.end
        following, matched = self.step(threads, seen)
        target = self.state(stage, following) if following else DEAD
        return target << 2 | MATCHES * matched

    def step(self, threads: Threads, c: int) -> tuple[Threads, bool]:
        """The threads after a character of class c, and whether a match ends before it."""
        reading, matched = self.closure(threads, c)
        following = (
            step.then
            for step in (self.program[place] for place in reading)
            if isinstance(step, Consume) and c != self.end and self.member[step.characters][c]
        )
        return tuple(dict.fromkeys(following)), matched

    def closure(self, threads: Threads, c: int) -> tuple[list[int], bool]:
        """Instructions that read a character, in order of preference down to a match, and whether there is one."""
        reading: list[int] = []
        seen: set[int] = set()
        waiting = list(reversed(threads))
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            match self.program[place]:
                case Accept():
                    return reading, True
                case Consume():
                    reading.append(place)
                case Fork(places):
                    waiting += reversed(places)
                case Check(look, then):
                    if (c != self.end and bool(self.member[look.ahead][c])) != look.negated:
                        waiting.append(then)
        return reading, False

    def fused(self, table: npt.NDArray[np.int32], start: int) -> npt.NDArray[np.int32]:
        """Where a match is final and a new one can start, do both in one step. Raises Unsupported for empty matches."""
        first = table[start]
        if (first & MATCHES).any():
            raise Unsupported("the pattern matches the empty string")
        final = (table == MATCHES) & (first != DEAD)[None, :]
        return np.where(final, first[None, :] | ENDS, table)


def choices_of(tree: Node) -> tuple[Node, ...]:
    return tree.choices if isinstance(tree, Alternatives) else (tree,)


def run_of_one_set(tree: Node) -> tuple[CharacterSet, bool]:
    """The set, and whether the length of a run is limited."""
    if isinstance(tree, ThreesFromRight):
        return tree.characters, True
    if isinstance(tree, Repeat) and isinstance(tree.part, CharacterSet) and tree.least == 1:
        return tree.part, tree.most is not None
    if isinstance(tree, CharacterSet):
        return tree, True
    raise Unsupported("a stage before the last that is not a run of one set")


def character_classes(
    sets: list[CharacterSet], ranges: CategoryRanges
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """The class of each code point, and [sets, classes] whether a set holds a class."""
    edges = {int(start) for start in ranges.starts} | {edge for code in WHITE_SPACE for edge in (code, code + 1)}
    for characters in sets:
        edges |= edges_of(characters)
    starts = np.array(sorted(edge for edge in edges if edge < CODE_POINTS), np.int64)
    categories = ranges.categories[np.searchsorted(ranges.starts, starts, side="right") - 1]
    members = np.stack([membership(characters, starts, categories) for characters in sets])
    columns, place = np.unique(members, axis=1, return_inverse=True)
    if columns.shape[1] > MOST_CLASSES:
        raise Unsupported(f"more than {MOST_CLASSES} classes of characters")
    lengths = np.diff(np.append(starts, CODE_POINTS))
    return np.repeat(place.ravel().astype(np.uint8), lengths), columns


def edges_of(characters: CharacterSet) -> set[int]:
    own = {edge for first, last in characters.ranges for edge in (first, last + 1)}
    return own.union(*map(edges_of, characters.union))


def membership(
    characters: CharacterSet, starts: npt.NDArray[np.int64], categories: npt.NDArray[np.str_]
) -> npt.NDArray[np.bool_]:
    """bool [ranges]: whether the set holds the range that begins at each start."""
    held = np.isin(starts, WHITE_SPACE) if characters.white_space else np.zeros(starts.size, bool)
    for first, last in characters.ranges:
        held |= (starts >= first) & (starts <= last)
    for name in characters.categories:
        held |= np.char.startswith(categories, name)
    for part in characters.union:
        held |= membership(part, starts, categories)
    return held != characters.negated
