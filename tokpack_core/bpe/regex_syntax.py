"""The part of regular-expression syntax that published pretokenizers are written in, read into a tree.

Understood: alternatives, groups (`(…)`, `(?:…)`, `(?i:…)`), sets with ranges, negation and `\\p{…}`, `\\s`, `\\S`,
`\\d`, the greedy quantifiers `?`, `*`, `+`, `{m}`, `{m,}`, `{m,n}`, look-ahead at one character, and threes of a set
counted from the right, which are written `X{1,3}(?=(?:X{3})*(?!X))`. Anything else raises `Unsupported`, and the
pattern is then left to the `regex` module.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

LONGEST_REPEAT = 64
THREES_FROM_RIGHT = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
ESCAPES = {"r": "\r", "n": "\n", "t": "\t", "f": "\f", "v": "\v"}
FOLDED = {"s": "\u017f", "k": "\u212a"}
"""Characters outside ASCII that equal an ASCII letter when case is ignored."""


class Unsupported(ValueError):
    """The pattern uses syntax that is not understood here."""


@dataclass(frozen=True)
class CharacterSet:
    """One character: one that any part holds, or, if negated, one that none does."""

    ranges: tuple[tuple[int, int], ...] = ()
    """First and last code points."""
    categories: tuple[str, ...] = ()
    """General categories, or their first letters."""
    white_space: bool = False
    union: tuple[CharacterSet, ...] = ()
    negated: bool = False


@dataclass(frozen=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Alternatives:
    """The first that matches is taken."""

    choices: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """Greedy."""

    part: Node
    least: int
    most: int | None


@dataclass(frozen=True)
class LookAhead:
    """The next character is in `ahead`, or, if negated, it is not or there is none."""

    ahead: CharacterSet
    negated: bool


@dataclass(frozen=True)
class ThreesFromRight:
    """A run of the set is one match for each three characters, counted from its end."""

    characters: CharacterSet


Node = CharacterSet | Sequence | Alternatives | Repeat | LookAhead | ThreesFromRight


def parse(pattern: str) -> Node:
    """Raises Unsupported, also for a pattern that is no regular expression."""
    return Parser(pattern).whole()


class Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.place = 0
        self.ignore_case = False

    def whole(self) -> Node:
        node = self.alternatives()
        if self.place < len(self.pattern):
            raise Unsupported(f"unexpected {self.pattern[self.place]!r} at {self.place}")
        return node

    def ahead(self, text: str) -> bool:
        return self.pattern.startswith(text, self.place)

    def taken(self, text: str) -> bool:
        found = self.ahead(text)
        self.place += len(text) * found
        return found

    def next(self) -> str:
        if self.place == len(self.pattern):
            raise Unsupported("the pattern ends too soon")
        self.place += 1
        return self.pattern[self.place - 1]

    def alternatives(self) -> Node:
        choices = [self.sequence()]
        while self.taken("|"):
            choices.append(self.sequence())
        return choices[0] if len(choices) == 1 else Alternatives(tuple(choices))

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.place < len(self.pattern) and not self.ahead("|") and not self.ahead(")"):
            threes = self.threes(parts[-1]) if parts else None
            parts = [*parts[:-1], threes] if threes else [*parts, self.quantified(self.atom())]
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def threes(self, counted: Node) -> ThreesFromRight | None:
        """What `(?=(?:X{3})*(?!X))` behind `X{1,3}` makes of it, if that comes; X is one escape."""
        if not isinstance(counted, Repeat) or not isinstance(counted.part, CharacterSet):
            return None
        wanted = counted == Repeat(counted.part, 1, 3)
        began = self.place
        if wanted and self.taken("(?=(?:\\"):
            self.place -= 1
            same = self.character() == counted.part and self.taken("{3})*(?!\\")
            self.place -= same
            if same and self.character() == counted.part and self.taken("))"):
                return ThreesFromRight(counted.part)
        self.place = began
        return None

    def quantified(self, part: Node) -> Node:
        for sign, least, most in (("?", 0, 1), ("*", 0, None), ("+", 1, None)):
            if self.taken(sign):
                return self.greedy(Repeat(part, least, most))
        if not self.taken("{"):
            return part
        end = self.pattern.find("}", self.place)
        low, comma, high = self.pattern[self.place : end].partition(",")
        if end < 0 or not low.isdecimal() or not (high.isdecimal() or not high):
            raise Unsupported(f"a count is expected at {self.place}")
        self.place = end + 1
        most_of = int(high) if high else None if comma else int(low)
        if max(int(low), most_of or 0) > LONGEST_REPEAT:
            raise Unsupported(f"more than {LONGEST_REPEAT} repetitions")
        return self.greedy(Repeat(part, int(low), most_of))

    def greedy(self, repeat: Repeat) -> Repeat:
        if isinstance(repeat.part, LookAhead) or any(map(self.ahead, "?*+{")):
            raise Unsupported(f"only plain greedy quantifiers, not at {self.place}")
        return repeat

    def atom(self) -> Node:
        if self.taken("(?!") or self.taken("(?="):
            negated = self.pattern[self.place - 1] == "!"
            inside = self.group(self.ignore_case)
            if not isinstance(inside, CharacterSet):
                raise Unsupported("look-ahead at more than one character")
            return LookAhead(inside, negated)
        if self.taken("(?:"):
            return self.group(self.ignore_case)
        if self.taken("(?i:"):
            return self.group(ignore_case=True)
        if self.ahead("(?") or self.ahead("(*"):
            raise Unsupported(f"a group of another kind at {self.place}")
        if self.taken("("):
            return self.group(self.ignore_case)
        if self.taken("["):
            return self.bracketed()
        if any(map(self.ahead, "^$.?*+{")):
            raise Unsupported(f"{self.pattern[self.place]!r} at {self.place}")
        return self.character()

    def group(self, ignore_case: bool) -> Node:
        outer, self.ignore_case = self.ignore_case, ignore_case
        node = self.alternatives()
        self.ignore_case = outer
        if not self.taken(")"):
            raise Unsupported("a parenthesis is missing")
        return node

    def bracketed(self) -> CharacterSet:
        negated = self.taken("^")
        members: list[CharacterSet] = []
        while not members or not self.ahead("]"):
            if any(map(self.ahead, ("[", "&&", "--", "||", "~~"))):
                raise Unsupported(f"set operation at {self.place}")
            member = self.character()
            if self.ahead("-") and not self.ahead("-]"):
                self.place += 1
                last = self.character()
                if len(member.ranges) != 1 or len(last.ranges) != 1 or self.ignore_case:
                    raise Unsupported(f"range at {self.place}")
                member = CharacterSet(((member.ranges[0][0], last.ranges[0][0]),))
            members.append(member)
        self.place += 1
        return CharacterSet(union=tuple(members), negated=negated)

    def character(self) -> CharacterSet:
        character = self.next()
        if character != "\\":
            return self.literal(character)
        escaped = self.next()
        if escaped in "pP":
            if self.next() != "{":
                raise Unsupported(f"a property in braces is expected at {self.place}")
            end = self.pattern.find("}", self.place)
            name = self.pattern[self.place : end]
            if name not in GENERAL_CATEGORIES:
                raise Unsupported(f"property {name!r}")
            self.place = end + 1
            return CharacterSet(categories=(name,), negated=escaped == "P")
        if escaped in "sS":
            return CharacterSet(white_space=True, negated=escaped == "S")
        if escaped in "dD":
            return CharacterSet(categories=("Nd",), negated=escaped == "D")
        if escaped in ESCAPES:
            return self.literal(ESCAPES[escaped])
        if escaped.isalnum():
            raise Unsupported(f"\\{escaped}")
        return self.literal(escaped)

    def literal(self, character: str) -> CharacterSet:
        single = CharacterSet(((ord(character), ord(character)),))
        if not self.ignore_case or not character.isalpha():
            return single
        if not character.isascii():
            raise Unsupported("letters outside ASCII where case is ignored")
        spellings = {character.lower(), character.upper(), FOLDED.get(character.lower(), character)}
        return replace(single, ranges=tuple((ord(spelling), ord(spelling)) for spelling in sorted(spellings)))


GENERAL_CATEGORIES = frozenset(
    name
    for major, minors in {
        "L": "ultmo",
        "M": "nce",
        "N": "dlo",
        "P": "cdseifo",
        "S": "mcko",
        "Z": "slp",
        "C": "cfosn",
    }.items()
    for name in (major, *(major + minor for minor in minors))
)
