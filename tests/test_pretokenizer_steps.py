"""The pretokenizers that tokenizer.json files come with are split by our regexes as the library splits."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, normalizers
from tokenizers import pre_tokenizers as steps

from tests.test_bpe_encoder import assert_equal, by_library, engine_of, file_of
from tests.tokenizer_samples import HOSTILE, documents
from tokpack_core.bpe.regex_splitting import compiled, pretokens
from tokpack_core.tokenizers.byte_bpe.engine import equal_encoder
from tokpack_core.tokenizers.byte_bpe.pretokenizer_steps import matches_everything, pretokenizer_steps
from tokpack_core.tokenizers.pretokenizers import DEEPSEEK_V3, PRETOKENIZERS

DIGIT_OF_17 = "\U00011de0"
"""A character that has no category in Unicode 16.0."""
THREES = steps.Split(Regex(r"(?=(\d{3})+(?!\d))"), "isolated")
BYTES = steps.ByteLevel(False, use_regex=False)
WORDS = steps.ByteLevel(False, use_regex=True)
FORMS = {
    "digits one by one": [steps.Digits(True), WORDS],
    "runs of digits": [steps.Digits(False), BYTES],
    "threes from the right": [steps.Digits(False), THREES, BYTES],
    "threes of runs by a regex": [steps.Split(Regex(r"\p{N}+"), "isolated"), THREES, BYTES],
    "what matches is kept": [steps.Split(Regex(PRETOKENIZERS["cl100k"]), "removed", True), BYTES],
}


def description_of(stages: list[Any]) -> dict[str, Any]:
    description: dict[str, Any] = json.loads(steps.Sequence(stages).__getstate__())
    return description


@pytest.mark.parametrize("form", FORMS)
def test_our_encoder_gives_the_librarys_ids(form: str) -> None:
    engine = engine_of("gpt2")
    engine.pre_tokenizer = steps.Sequence(FORMS[form])
    encoder = equal_encoder(engine, lambda texts: by_library(engine, texts))
    assert encoder is not None
    numbers = ["1234567 12 and 1,234 of the 5678½ ones", "①②③④⑤", f"12{DIGIT_OF_17}"]
    texts = pa.array([*documents(), *HOSTILE, *numbers])
    assert_equal(encoder.encode(texts), by_library(engine, texts))


@pytest.mark.parametrize("inner", [[], [normalizers.NFC()], [normalizers.Sequence([normalizers.NFKC()])]])
def test_a_sequence_of_no_more_than_one_normalizer(inner: list[Any]) -> None:
    """DeepSeek's files have one of none."""
    engine = engine_of("gpt2")
    engine.normalizer = normalizers.Sequence(inner)
    encoder = equal_encoder(engine, lambda texts: by_library(engine, texts))
    assert encoder is not None
    texts = pa.array([*documents(), *HOSTILE, "e\u0301 ﬁ"])
    assert_equal(encoder.encode(texts), by_library(engine, texts))


@pytest.mark.parametrize("form", FORMS)
def test_our_regexes_split_as_the_library_wherever_it_is_not_asked(form: str) -> None:
    understood = pretokenizer_steps(description_of(FORMS[form]))
    assert understood is not None
    patterns = compiled(understood.patterns)
    by_steps = steps.Sequence([step for step in FORMS[form] if step is not BYTES and step is not WORDS])
    own = patterns[:-1] if FORMS[form][-1] is WORDS else patterns

    @settings(max_examples=400, deadline=None)
    @given(st.text(f"0123٣४½²①Ⅷ{DIGIT_OF_17}a .,\n-", max_size=12))
    def same(text: str) -> None:
        apart = understood.for_library and understood.for_library(pa.array([text]))
        if apart is None:
            assert pretokens(text, own) == [piece for piece, _ in by_steps.pre_tokenize_str(text)]

    same()


@pytest.mark.parametrize(
    ("text", "asked"),
    [("12 345", False), ("2½", True), ("²3", True), ("½ and ①②③", False), ("①②③④", True), (DIGIT_OF_17, True)],
)
def test_what_the_library_counts_otherwise_is_left_to_it(text: str, asked: bool) -> None:
    understood = pretokenizer_steps(description_of(FORMS["threes from the right"]))
    assert understood is not None
    assert understood.for_library is not None
    found = understood.for_library(pa.array(["", text]))
    assert (found is not None and found.tolist()) == (asked and [False, True])


@pytest.mark.parametrize(
    "stages",
    [
        [steps.Split(Regex(r"\p{L}+|\p{N}+"), "removed", True), BYTES],
        [steps.Split(Regex(r"\s+"), "removed"), BYTES],
        [steps.Split("a", "isolated"), BYTES],
        [THREES, BYTES],
        [steps.Punctuation(), BYTES],
        [steps.Digits(True), steps.ByteLevel(True)],
        [BYTES],
        [WORDS, steps.Digits(True)],
    ],
)
def test_other_steps_are_left_to_the_library(stages: list[Any]) -> None:
    assert pretokenizer_steps(description_of(stages)) is None
    assert pretokenizer_steps(None) is None


@pytest.mark.parametrize(
    ("pattern", "everything"),
    [
        *((pattern, True) for pattern in PRETOKENIZERS.values()),
        (DEEPSEEK_V3[0], False),
        (r"[\s\S]", True),
        (r"\S+|\s", True),
        (r"\S+|\s+(?!\S)", False),
        (r"\p{L}+|\P{L}{2}", False),
        (r"\p{L}+|(?!a)\P{L}", True),
        (r"(?<=a)b|[\s\S]", False),
    ],
)
def test_whether_a_regex_leaves_something_unmatched(pattern: str, everything: bool) -> None:
    """The last one does not, but has no automaton that could tell."""
    assert matches_everything(pattern) is everything


def test_an_alphabet_needs_the_bytes_of_text_alone() -> None:
    """Of text, UTF-8, a trainer never sees the bytes C0, C1 and F5 to FF."""
    content = json.loads(file_of("gpt2"))
    for byte in (0xC0, 0xC1, *range(0xF5, 0x100)):
        del content["model"]["vocab"][chr(byte)]
    engine = Tokenizer.from_str(json.dumps(content))
    engine.encode_special_tokens = True
    encoder = equal_encoder(engine, lambda texts: by_library(engine, texts))
    assert encoder is not None
    texts = pa.array([*documents(), *HOSTILE, "\U0010ffff\u00ff\U000c0000"])
    assert_equal(encoder.encode(texts), by_library(engine, texts))
    del content["model"]["vocab"]["¿"]
    lacking = Tokenizer.from_str(json.dumps(content))
    assert equal_encoder(lacking, lambda texts: by_library(lacking, texts)) is None
