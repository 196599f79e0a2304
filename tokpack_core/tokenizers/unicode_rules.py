"""NFC as a SentencePiece rule table, which has `nfkc` built in but no `nfc`.

SentencePiece normalizes by replacing, from left to right, the longest prefix that has a rule. For every character
that decomposes canonically (Unicode Standard Annex 15) there is a rule for each string equivalent to it: the
character itself where it is a singleton or excluded from composition, its full and partial decompositions, and its
marks in any order that canonical ordering undoes. Hangul syllables compose from two or three jamo, or from an LV
syllable and a final. Two or three marks after one another in the wrong order get a rule if they are of one script,
with or without a base that takes one of them.

A finite table cannot sort a row of marks of any length: four or more out of order, or two from different scripts,
stay as they are. `normalization_agreement` finds such texts on a sample.

The table is that of Unicode 14.0 whatever Python runs: characters that were encoded later are left out, and the
stability policy forbids any change to the others.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import permutations, product

LATER_THAN_14 = (
    range(0x105C0, 0x10600),  # Todhri
    range(0x11380, 0x11400),  # Tulu-Tigalari
    range(0x16100, 0x16140),  # Gurung Khema
    range(0x16D40, 0x16D80),  # Kirat Rai
)
"""Blocks of later versions that hold characters with canonical decompositions."""

MARKS_BY_SCRIPT = (
    (*range(0x0300, 0x0330), 0x0331, 0x0338, 0x0342, 0x0345),  # Latin, Greek, Cyrillic
    (*range(0x0591, 0x05BE), 0x05BF, 0x05C1, 0x05C2, 0x05C4, 0x05C5, 0x05C7),  # Hebrew
    (*range(0x0610, 0x061B), *range(0x064B, 0x0660), 0x0670, *range(0x06D6, 0x06EE)),  # Arabic
    (0x0711, *range(0x0730, 0x074B)),  # Syriac
    (*range(0x07EB, 0x07F4), 0x07FD),  # N'Ko
    (0x093C, 0x094D, *range(0x0951, 0x0955)),  # Devanagari
    (0x09BC, 0x09CD, 0x09FE),  # Bengali
    (0x0A3C, 0x0A4D),  # Gurmukhi
    (0x0ABC, 0x0ACD),  # Gujarati
    (0x0B3C, 0x0B4D),  # Oriya
    (0x0C3C, 0x0C4D, 0x0C55, 0x0C56),  # Telugu
    (0x0CBC, 0x0CCD),  # Kannada
    (0x0E38, 0x0E39, 0x0E3A, *range(0x0E48, 0x0E4C)),  # Thai
    (0x0EB8, 0x0EB9, 0x0EBA, *range(0x0EC8, 0x0ECC)),  # Lao
    (0x0F39, *range(0x0F71, 0x0F85), 0x0F86, 0x0F87),  # Tibetan
    (0x1037, 0x1039, 0x103A),  # Burmese
    (0x17D2, 0x17DD),  # Khmer
    (0x1B34, 0x1B44),  # Balinese
    (0xA9B3, 0xA9C0),  # Javanese
)
"""Marks that stand together in running text, and often in an order that is not the canonical one."""

TRIPLE_MARKS = (
    (*range(0x064B, 0x0656), 0x0670),  # Arabic vowel signs
    (0x05B0, 0x05B4, 0x05B5, 0x05B6, 0x05B7, 0x05B8, 0x05B9, 0x05BC, 0x05C1, 0x05C2),  # Hebrew points
)

HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)
LEADING, VOWELS, TRAILING = range(0x1100, 0x1113), range(0x1161, 0x1176), range(0x11A8, 0x11C3)


def nfc_rules_tsv() -> str:
    """The table as SentencePiece reads it: a line a rule, source and target in hexadecimal code points."""
    lines = [f"{hexadecimal(source)}\t{hexadecimal(target)}\n" for source, target in sorted(nfc_rules().items())]
    return "".join(lines)


@cache
def nfc_rules() -> dict[str, str]:
    """source → NFC(source), without the rules that shorter ones make needless."""
    rules = {source: unicodedata.normalize("NFC", source) for source in candidates()}
    return without_needless({source: target for source, target in rules.items() if source != target})


def candidates() -> Iterator[str]:
    bases: defaultdict[str, set[str]] = defaultdict(set)
    decomposed = canonical_decompositions()
    spellings = spellings_by_decomposition(decomposed)
    for full in spellings:
        yield from equivalents(full, spellings)
        if len(full) > 1:
            for spelling in equivalents(full[:-1], spellings) | {full[:-1]}:
                if len(spelling) == 1:
                    bases[full[-1]].add(spelling)
    for marks in MARKS_BY_SCRIPT:
        characters = [chr(mark) for mark in marks]
        for first, second in product(characters, repeat=2):
            yield first + second
            for mark in {first, second}:
                for base in bases.get(mark, ()):
                    yield base + first + second
                    yield unicodedata.normalize("NFC", base + first) + second
    for marks in TRIPLE_MARKS:
        yield from ("".join(map(chr, triple)) for triple in product(marks, repeat=3))
    yield from hangul_sequences()


def canonical_decompositions() -> dict[str, str]:
    """character → full canonical decomposition, for those that have one in Unicode 14.0 and are no Hangul syllable."""
    found = {}
    for code in range(0x110000):
        if code in HANGUL_SYLLABLES or any(code in block for block in LATER_THAN_14):
            continue
        full = unicodedata.normalize("NFD", chr(code))
        if full != chr(code):
            found[chr(code)] = full
    return found


def spellings_by_decomposition(decomposed: dict[str, str]) -> dict[str, list[str]]:
    spellings: defaultdict[str, list[str]] = defaultdict(list)
    for character, full in decomposed.items():
        spellings[full].append(character)
    return dict(spellings)


def equivalents(full: str, spellings: dict[str, list[str]]) -> set[str]:
    """All strings whose canonical decomposition is `full`: its marks reordered, its parts written as one character."""
    orders = {full[0] + "".join(marks) for marks in permutations(full[1:])}
    orders = {order for order in orders if unicodedata.normalize("NFD", order) == full}
    found: set[str] = set()
    for order in orders:
        found |= segmentations(order, spellings)
    return found


def segmentations(text: str, spellings: dict[str, list[str]]) -> set[str]:
    """`text` with any of its substrings replaced by a character that decomposes to it."""
    if not text:
        return {""}
    found = set()
    for length in range(1, len(text) + 1):
        heads = spellings.get(text[:length], []) + ([text] if length == len(text) == 1 else [])
        if length == 1:
            heads = [*heads, text[0]]
        for head, tail in product(heads, segmentations(text[length:], spellings) if heads else ()):
            found.add(head + tail)
    return found


def hangul_sequences() -> Iterator[str]:
    for leading, vowel in product(LEADING, VOWELS):
        pair = chr(leading) + chr(vowel)
        yield pair
        for trailing in TRAILING:
            yield pair + chr(trailing)
            yield unicodedata.normalize("NFC", pair) + chr(trailing)


def without_needless(rules: dict[str, str]) -> dict[str, str]:
    """Drop each rule whose target the shorter kept rules give already."""
    kept: dict[str, str] = {}
    for source in sorted(rules, key=lambda source: (len(source), source)):
        if apply_rules(source, kept) != rules[source]:
            kept[source] = rules[source]
    return kept


def apply_rules(text: str, rules: dict[str, str]) -> str:
    """What SentencePiece does with a table: replace the longest prefix that has a rule, else keep one character."""
    parts = []
    while text:
        length = next((length for length in range(min(len(text), 4), 0, -1) if text[:length] in rules), 0)
        parts.append(rules[text[:length]] if length else text[0])
        text = text[max(length, 1) :]
    return "".join(parts)


def hexadecimal(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)
