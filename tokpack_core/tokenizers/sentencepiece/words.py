"""What SentencePiece learns from, as counted words: text is split wherever no piece can cross, and nowhere else.

The library lets a space stand only at the start of a piece or among spaces, a digit only alone, and, with its default
`split_by_unicode_script`, never two scripts in one piece (Hiragana, Katakana and Han count as one, punctuation and
symbols as another; combining marks belong to what they follow). Both its criteria see text only through the pieces
that fit, so the pairs of BPE and the lattices of Unigram are the same on these words as on whole sentences, and a word
that occurs a thousand times costs once. Where a script is not in SCRIPTS this splits less, and the library
makes it good.

Words are cut after LONGEST characters. Characters that the library reserves for itself make words that are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import regex

from tokpack_core.bpe.pretoken_counts import NO_COUNTS, PretokenCounts, as_counts, in_byte_order
from tokpack_core.bpe.unicode_categories import CODE_POINTS
from tokpack_core.bpe.word_table import WordTable
from tokpack_core.bpe.word_table_kernels import add_counts
from tokpack_core.corpus.text_buffers import text_array, text_buffers
from tokpack_core.tokenizers.sentencepiece.words_kernels import ALONE, INHERITED, LEFT_OUT, SPACE, word_ends
from tokpack_core.tokenizers.text_batches import text_batches
from tokpack_core.tokenizers.wordpiece.kernels import count_characters, only_of

LONGEST = 2048
RESERVED = "\u2581\u2585\x1f\0"
"""Meta space, unknown character, the library's own boundary, and the end of its strings."""
PROLONGED_SOUND = "\u30fc"
"""Of no script, but to the library a Katakana letter."""
SCRIPTS = [
    "Common,Unknown",
    "Han,Hiragana,Katakana",
    "Latin",
    "Cyrillic",
    "Greek",
    "Arabic",
    "Hebrew",
    "Devanagari",
    "Bengali",
    "Gurmukhi",
    "Gujarati",
    "Oriya",
    "Tamil",
    "Telugu",
    "Kannada",
    "Malayalam",
    "Sinhala",
    "Thai",
    "Lao",
    "Tibetan",
    "Myanmar",
    "Georgian",
    "Hangul",
    "Ethiopic",
    "Khmer",
    "Mongolian",
    "Armenian",
    "Cherokee",
    "Syriac",
    "Thaana",
    "Nko",
    "Javanese",
    "Balinese",
    "Bopomofo",
    "Yi",
    "Coptic",
    "Tifinagh",
    "Braille",
]


@dataclass
class SeenText:
    documents: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Words:
    counted: PretokenCounts
    """In byte order; none is left out but those of reserved characters."""
    characters: npt.NDArray[np.int64]
    """Occurrences of each code point in them: int64 [0x110000]."""
    reserved_characters: int
    reserved_bytes: int


def count_words(texts: Iterator[pa.Array], seen: SeenText) -> Words:
    """Words of string arrays (no nulls), which are read once, and how often each occurs."""
    table = WordTable()
    classes = character_classes()
    for array in texts:
        seen.documents += len(array)
        for batch in text_batches(array):
            data, offsets = text_buffers(batch)
            seen.bytes += int(offsets[-1])
            ends = np.empty(data.size, np.int64)
            count = word_ends(data, offsets, classes, LONGEST, ends)
            count_ends(table, data, ends[:count])
    return without_reserved(in_byte_order(as_counts(table)))


def count_ends(table: WordTable, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> None:
    table.reserve(ends.size, data.size)
    table.used, table.filled = add_counts(
        data, 0, ends, NO_COUNTS, table.slots, table.entries, table.arena, table.used, table.filled
    )


def without_reserved(words: PretokenCounts) -> Words:
    known = np.ones(CODE_POINTS, bool)
    known[[ord(character) for character in RESERVED]] = False
    kept = only_of(words.data, words.offsets, known)
    reserved_characters = int(words.counts[~kept].sum())
    reserved_bytes = int((np.diff(words.offsets) * words.counts)[~kept].sum())
    if reserved_characters:
        array = text_array(words.data, words.offsets, pa.large_binary())
        words = PretokenCounts(*text_buffers(array.filter(pa.array(kept))), words.counts[kept])
    characters = np.zeros(CODE_POINTS, np.int64)
    count_characters(words.data, words.offsets, words.counts, characters)
    return Words(words, characters, reserved_characters, reserved_bytes)


@cache
def character_classes() -> npt.NDArray[np.uint8]:
    """uint8 [0x110000]: a number a script, 0 for all others together, or one of the kernel's own classes."""
    classes = np.zeros(CODE_POINTS, np.uint8)
    text = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x34000), *range(0xE0000, 0xE1000))))
    sets = ["".join(rf"\p{{Script={name}}}" for name in names.split(",")) for names in (*SCRIPTS, "Inherited")]
    kinds = [*range(1, len(SCRIPTS) + 1), INHERITED]
    for match in regex.finditer("|".join(f"([{members}]+)" for members in sets), text):
        classes[ord(match[0][0]) : ord(match[0][-1]) + 1] = kinds[match.lastindex - 1]
    classes[ord(PROLONGED_SOUND)] = classes[ord("ア")]
    classes[[ord(match[0]) for match in regex.finditer(r"\p{Nd}", text)]] = ALONE
    classes[[ord(character) for character in RESERVED]] = LEFT_OUT
    classes[ord(" ")] = SPACE
    return classes
