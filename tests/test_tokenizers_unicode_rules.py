"""The NFC rule table, applied by SentencePiece itself, against unicodedata."""

from __future__ import annotations

import hashlib
import unicodedata
from functools import cache
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.tokenizers.unicode_rules import (
    LATER_THAN_14,
    MARKS_BY_SCRIPT,
    TRIPLE_MARKS,
    apply_rules,
    nfc_rules,
    nfc_rules_tsv,
)


@cache
def normalizer(folder: Path) -> sentencepiece.SentencePieceNormalizer:
    path = folder / "nfc.tsv"
    path.write_text(nfc_rules_tsv(), encoding="ascii")
    return sentencepiece.SentencePieceNormalizer(
        rule_tsv=str(path), add_dummy_prefix=False, escape_whitespaces=False, remove_extra_whitespaces=False
    )


@pytest.fixture(scope="module")
def nfc(tmp_path_factory: pytest.TempPathFactory) -> sentencepiece.SentencePieceNormalizer:
    return normalizer(tmp_path_factory.mktemp("rules"))


def test_every_code_point_and_its_decompositions_compose(nfc: sentencepiece.SentencePieceNormalizer) -> None:
    wrong = []
    for code in range(1, 0x110000):
        if 0xD800 <= code < 0xE000 or any(code in block for block in LATER_THAN_14):
            continue
        character = chr(code)
        for form in ("NFD", "NFKD"):
            spelling = unicodedata.normalize(form, character)
            for text in {character, spelling}:
                if nfc.normalize(text) != unicodedata.normalize("NFC", text):
                    wrong.append(ascii(text))
    assert wrong == []


def test_the_table_is_the_same_whatever_the_python() -> None:
    digest = hashlib.sha256(nfc_rules_tsv().encode()).hexdigest()
    assert digest == "5b52397148482990c85b39542b10d85b535213a395fda0ff23d51007fb84ba4f"


def test_characters_of_later_versions_have_no_rule() -> None:
    used = {ord(character) for source, target in nfc_rules().items() for character in source + target}
    assert not [code for code in used if any(code in block for block in LATER_THAN_14)]


def test_rules_known_by_hand() -> None:
    rules = nfc_rules()
    assert rules["e\u0301"] == "\u00e9"
    assert rules["\u212b"] == "\u00c5"
    assert rules["\u1112\u1161\u11ab"] == "\ud55c"
    assert rules["\ud558\u11ab"] == "\ud55c"
    assert rules["e\u0302\u0323"] == "\u1ec7"
    assert rules["\u00ea\u0323"] == "\u1ec7"
    assert rules["\u0651\u064e"] == "\u064e\u0651"
    assert rules["\u0958"] == "\u0915\u093c"
    assert "\ufb01" not in rules
    assert "\uff0c" not in rules


BASES = st.sampled_from("aeiouAEIOUyq 1αωιнגשבשمنกเ") | st.sampled_from(["ậ", "ê", "ệ", "ü", "ά", "각", "ㄱ", "你"])


def clusters(longest: int) -> st.SearchStrategy[str]:
    """A base with marks of one script, at most two in all."""
    marks = st.one_of(
        [st.text(st.sampled_from([chr(mark) for mark in script]), max_size=longest) for script in MARKS_BY_SCRIPT]
    )
    return st.builds(str.__add__, BASES, marks).filter(lambda text: len(unicodedata.normalize("NFD", text)) <= 3)


@settings(max_examples=400, deadline=None)
@given(st.lists(clusters(1)).map("".join))
def test_bases_that_take_one_mark(text: str) -> None:
    assert apply_rules(text, nfc_rules()) == unicodedata.normalize("NFC", text)


@settings(max_examples=400, deadline=None)
@given(st.lists(clusters(2)).map("".join))
def test_bases_with_two_marks_of_one_script_in_any_order(text: str) -> None:
    assert apply_rules(text, nfc_rules()) == unicodedata.normalize("NFC", text)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(TRIPLE_MARKS).flatmap(lambda marks: st.text([chr(mark) for mark in marks], max_size=3)))
def test_three_arabic_or_hebrew_marks_in_any_order(marks: str) -> None:
    assert apply_rules("ق" + marks, nfc_rules()) == unicodedata.normalize("NFC", "ق" + marks)


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_the_library_applies_the_table_as_described(text: str) -> None:
    assert applied(text) == apply_rules(text, nfc_rules())


def applied(text: str) -> str:
    return str(LIBRARY[0].normalize(text))


LIBRARY: list[sentencepiece.SentencePieceNormalizer] = []


@pytest.fixture(scope="module", autouse=True)
def shared_library(nfc: sentencepiece.SentencePieceNormalizer) -> None:
    LIBRARY.append(nfc)
