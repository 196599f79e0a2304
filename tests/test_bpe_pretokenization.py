"""Automata split as the `regex` module does, over all code points and at any size of the buffer."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from tests.tokenizer_samples import HOSTILE, documents, ordinary_text
from tokpack_core.bpe.automaton import compile_splits
from tokpack_core.bpe.pretokenization import automaton_chunks
from tokpack_core.bpe.pretokenization_kernels import documents_ends
from tokpack_core.bpe.regex_splitting import compiled, isolated
from tokpack_core.bpe.regex_splitting import pretokens as pretokens_of_16
from tokpack_core.bpe.regex_syntax import Unsupported
from tokpack_core.bpe.unicode_categories import CODE_POINTS, UnicodeVersion, category_ranges
from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts
from tokpack_core.tokenizers.pretokenizers import SPLITS

CHARACTERS = [chr(code) for code in range(0x33480) if not 0xD800 <= code < 0xE000]
CHARACTERS += [chr(code) for code in [*range(0xE0000, 0xE0200), *range(0x33480, CODE_POINTS, 97)]]
"""All that are assigned or reserved for scripts, and some of the others."""
OTHERS = {
    "a set of its own": (r"[^\W_]?[aeiou]{2,3}|.",),
    "gaps": (r"[ab]+|\d{2}",),
    "a positive look-ahead": (r"\p{L}+(?=\s)|\p{L}|\s+",),
    "counted": (r"(?:ab){2,}|a{3}|b?c|\P{L}",),
    "two stages and gaps": (r"\p{N}", r"[a-c]+(?!x)|x"),
}


def by_automaton(texts: list[str], splits: tuple[str, ...], version: UnicodeVersion = "18.0") -> list[str]:
    data, offsets = text_buffers(pa.array(texts, pa.large_string()))
    pieces = []
    for chunk in automaton_chunks(data, offsets, compile_splits(splits, version)):
        borders = [chunk.begin, *chunk.ends.tolist()]
        pieces += [bytes(data[first:stop]).decode() for first, stop in pairwise(borders)]
    return pieces


def by_regex(text: str, splits: tuple[str, ...]) -> list[str]:
    pieces = [(0, len(text))]
    for pattern in compiled(splits):
        pieces = [part[:2] for first, stop in pieces for part in isolated(pattern, text[first:stop], first)]
    return [text[first:stop] for first, stop in pieces]


def categories(version: UnicodeVersion) -> np.ndarray:
    ranges = category_ranges(version)
    return np.repeat(ranges.categories, np.diff(np.append(ranges.starts, CODE_POINTS)))


def characters_by_category(version: UnicodeVersion) -> dict[str, str]:
    """Each code point has one category, so it is enough that each library finds it in that one."""
    table = categories(version)
    names = sorted(set(table.tolist()) - {"Cs"})
    return {name: "".join(map(chr, np.flatnonzero(table == name).tolist())) for name in names}


def test_categories_of_18_are_those_of_regex() -> None:
    for name, text in characters_by_category("18.0").items():
        assert regex.fullmatch(rf"\p{{{name}}}+", text), name


def test_categories_of_16_are_those_of_hugging_face() -> None:
    for name, text in characters_by_category("16.0").items():
        split = pre_tokenizers.Split(Regex(rf"\p{{{name}}}+"), "removed")
        for start in range(0, len(text), 10_000):
            assert split.pre_tokenize_str(text[start : start + 10_000]) == [], name


@pytest.mark.parametrize("name", SPLITS)
def test_every_code_point_in_every_place(name: str) -> None:
    step = [CHARACTERS[start : start + 4000] for start in range(0, len(CHARACTERS), 4000)]
    for between in ("", " a"):
        texts = [between.join(block) for block in step]
        assert by_automaton(texts, SPLITS[name]) == [piece for text in texts for piece in by_regex(text, SPLITS[name])]


@pytest.mark.parametrize("name", SPLITS)
def test_real_and_hostile_text(name: str) -> None:
    texts = [*HOSTILE, *documents(), *hard_texts(["<|endoftext|>"])]
    assert by_automaton(texts, SPLITS[name]) == [piece for text in texts for piece in by_regex(text, SPLITS[name])]


@pytest.mark.parametrize("name", SPLITS)
def test_any_text(name: str) -> None:
    @settings(max_examples=200, deadline=None)
    @given(ordinary_text())
    def same(text: str) -> None:
        assert by_automaton([text], SPLITS[name]) == by_regex(text, SPLITS[name])

    same()


@settings(max_examples=300, deadline=None)
@given(st.text("aAxÉǅʰ1½१ \n\r\t'sStrevlLd.!/你のー\u0301\u200b\x00", max_size=40))
def test_dense_text(text: str) -> None:
    for splits in SPLITS.values():
        assert by_automaton([text], splits) == by_regex(text, splits)


@settings(max_examples=200, deadline=None)
@given(st.text("abcx12 é\n", max_size=30))
def test_other_regexes(text: str) -> None:
    for splits in OTHERS.values():
        try:
            found = by_automaton([text], splits)
        except Unsupported:
            continue
        assert found == by_regex(text, splits)


def test_most_of_the_other_regexes_have_an_automaton() -> None:
    supported = {name for name, splits in OTHERS.items() if has_automaton(splits)}
    assert supported == set(OTHERS) - {"a set of its own"}


def has_automaton(splits: tuple[str, ...]) -> bool:
    try:
        compile_splits(splits, "16.0")
    except Unsupported:
        return False
    return True


@pytest.mark.parametrize(
    "pattern",
    [r"a+?", r"a++", r"(?<=a)b", r"a$", r"\bx", r"a*", r"(a", r"[a", r"(?!ab)c", r"\1", r"a{2", r"\p{Greek}", "*"],
)
def test_what_has_no_automaton_is_told(pattern: str) -> None:
    assert not has_automaton((pattern,))


@pytest.mark.parametrize("unit", ["a", "A", " ", "\n", "1", "你", "\u0301", " \n", "!", "\x00", "'s"])
def test_long_runs(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    for splits in SPLITS.values():
        assert by_automaton([text], splits) == by_regex(text, splits)


@pytest.mark.parametrize("name", SPLITS)
def test_a_small_buffer_changes_nothing(name: str) -> None:
    texts = ["", "a\x00\x01\x00b  c", "", "don't 12345\n\n x", "\x00" * 9, "你好,の12"]
    data, offsets = text_buffers(pa.array(texts))
    automaton = compile_splits(SPLITS[name], "18.0")
    ends, borders = np.empty(5, np.int64), np.zeros(len(texts), np.int64)
    found, finished, document, begin = [0], [], 0, 0
    while document < len(texts):
        count, following, begin = documents_ends(
            data,
            offsets,
            document,
            begin,
            automaton.classes,
            automaton.transitions,
            automaton.stages,
            automaton.start,
            ends,
            borders,
            np.zeros(1, np.int64),
        )
        finished += [len(found) - 1 + border for border in borders[document:following].tolist()]
        found += ends[:count].tolist()
        document = following
    expected = [by_regex(text, SPLITS[name]) for text in texts]
    assert [bytes(data[a:b]).decode() for a, b in pairwise(found)] == [piece for pieces in expected for piece in pieces]
    assert finished == np.cumsum([len(pieces) for pieces in expected]).tolist()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=30))
def test_bytes_that_are_no_text_are_all_covered(content: bytes) -> None:
    data, offsets = text_buffers(pa.array([content], pa.binary()))
    for splits in SPLITS.values():
        ends = [end for chunk in automaton_chunks(data, offsets, compile_splits(splits, "16.0")) for end in chunk.ends]
        assert ends == sorted(set(ends))
        assert ends[-1:] == ([len(content)] if content else [])


def test_python_splits_new_characters_as_the_automata_do() -> None:
    """`regex` knows characters that Unicode 16.0 does not: they are unassigned to both."""
    for splits in SPLITS.values():
        changed = np.flatnonzero(categories("16.0") != categories("18.0")).tolist()
        for between in ("", "a", " "):
            text = between.join(map(chr, changed[::3]))
            assert pretokens_of_16(text, compiled(splits)) == by_automaton([text], splits, "16.0")
