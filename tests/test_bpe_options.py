"""What shapes byte-level BPE: digit policies, regexes of one's own, ties, limits, the alphabet."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from tokenizers.trainers import BpeTrainer
from typer.testing import CliRunner

from tests.tokenizer_samples import EOD, HOSTILE, documents, ids, ordinary_text, token_bytes, train
from tokpack_core.bpe import training
from tokpack_core.bpe.automaton import compile_splits
from tokpack_core.bpe.pretokenization import automaton_chunks
from tokpack_core.bpe.regex_splitting import compiled, count_pieces, pretokens
from tokpack_core.bpe.regex_syntax import Unsupported
from tokpack_core.cli.app import app
from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts
from tokpack_core.tokenizers.byte_bpe import engine as byte_bpe_engine
from tokpack_core.tokenizers.pretokenizers import DIGITS, SPLITS, splits_of

OWN = r"regex:[a-z]+|[A-Z]+|\s+|[^\sa-zA-Z]"
LETTERS_ONLY = r"regex:\p{L}+"
NUMBERS = [*documents(), "call 1234567 or 12, ١٢٣٤٥ times 1000000\n", *(f"{7**n} {13**n}" for n in range(90))]


def config(vocab_size: int = 1500, **keys: Any) -> TrainConfig:
    special = keys.pop("special_tokens", SpecialTokens(eod=EOD))
    return TrainConfig(family="byte_bpe", vocab_size=vocab_size, special_tokens=special, **keys)


def by_hugging_face(splits: tuple[str, ...], texts: list[str]) -> list[str]:
    split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in splits])
    return [piece for text in texts for piece, _ in split.pre_tokenize_str(text)]


def by_automaton(splits: tuple[str, ...], texts: list[str]) -> tuple[list[str], int]:
    data, offsets = text_buffers(pa.array(texts, pa.large_string()))
    pieces, finished, unmatched = [], [0], np.zeros(1, np.int64)
    for chunk in automaton_chunks(data, offsets, compile_splits(splits, "16.0"), unmatched):
        finished += (len(pieces) + chunk.borders).tolist()
        pieces += [bytes(data[a:b]).decode() for a, b in pairwise([chunk.begin, *chunk.ends.tolist()])]
    assert ["".join(pieces[a:b]) for a, b in pairwise(finished)] == texts
    return pieces, int(unmatched[0])


@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize("name", SPLITS)
def test_digit_policies_split_as_hugging_face_does(name: str, digits: Any) -> None:
    splits = splits_of(name, digits)
    texts = [*hard_texts([]), *NUMBERS[-95:]]
    expected = by_hugging_face(splits, texts)
    assert by_automaton(splits, texts)[0] == expected
    patterns = compiled(splits)
    assert [piece for text in texts for piece in pretokens(text, patterns)] == expected


@settings(max_examples=300, deadline=None)
@given(st.text("0123456789٣½ a\n.x", max_size=40))
def test_threes_from_the_right(text: str) -> None:
    for name in ("gpt2", "cl100k", "deepseek_v3", OWN):
        splits = splits_of(name, "groups_right")
        expected = by_hugging_face(splits, [text])
        assert pretokens(text, compiled(splits)) == expected
        if name != OWN:
            assert by_automaton(splits, [text])[0] == expected


def test_what_a_policy_means() -> None:
    found = {digits: pretokens("a 1234567", compiled(splits_of("cl100k", digits))) for digits in DIGITS}
    assert found == {
        "free": ["a", " ", "1234567"],
        "single": ["a", " ", *"1234567"],
        "groups_left": ["a", " ", "123", "456", "7"],
        "groups_right": ["a", " ", "1", "234", "567"],
    }
    assert splits_of("cl100k", "groups_left") == splits_of("cl100k")
    assert splits_of("qwen2", "single") == splits_of("qwen2")
    assert splits_of("gpt2", "free") == splits_of("gpt2")


@pytest.mark.parametrize(
    "pattern",
    [
        r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))x|\s",
        r"\w+|\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",
        r"(?:\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))+",
    ],
)
def test_threes_in_other_places_are_left_to_regex(pattern: str) -> None:
    with pytest.raises(Unsupported):
        compile_splits((pattern,), "16.0")
    text = "12345x 1234 a1234"
    assert pretokens(text, compiled((pattern,))) == by_hugging_face((pattern,), [text])


def test_a_long_run_of_digits_takes_linear_time() -> None:
    """In quadratic time this would take a quarter of an hour."""
    text = "1" * 300_001
    assert pretokens(text, compiled(splits_of("cl100k", "groups_right")))[:2] == ["1", "111"]
    assert len(by_automaton(splits_of("cl100k", "groups_right"), [text])[0]) == 100_001


@pytest.mark.parametrize("small", [0, 10**9])
@pytest.mark.parametrize(
    "keys",
    [
        {"pretokenizer": "gpt2", "digits": "groups_right"},
        {"pretokenizer": "deepseek_v3", "digits": "single", "max_token_length": 5},
        {"pretokenizer": OWN},
        {"pretokenizer": OWN, "digits": "groups_left"},
        {"pretokenizer": LETTERS_ONLY, "min_frequency": 3},
    ],
    ids=str,
)
def test_merges_and_ids_are_those_of_hugging_face(
    keys: dict[str, Any], small: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "SMALL", small)
    monkeypatch.setattr(byte_bpe_engine, "WORTH_LOADING", 2 * small)
    trained = registry.train(config(**keys), iter([pa.array(NUMBERS)]), "none")
    trained.save(tmp_path)
    loaded = registry.load(tmp_path)
    peer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    peer.encode_special_tokens = True
    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = peer.pre_tokenizer
    limits = {"min_frequency": 2} | {name: keys[name] for name in ("min_frequency", "max_token_length") if name in keys}
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    engine.train_from_iterator(
        NUMBERS, BpeTrainer(vocab_size=1499, initial_alphabet=alphabet, show_progress=False, **limits)
    )
    merged = json.loads(peer.to_str())["model"]["merges"]
    assert merged == json.loads(engine.to_str())["model"]["merges"]
    assert len(merged) > 500
    texts = [*HOSTILE, *NUMBERS[-50:], *documents()[:20]]
    for text in texts:
        assert ids(loaded, text) == peer.encode(text, add_special_tokens=False).ids


@settings(max_examples=100, deadline=None)
@given(st.lists(ordinary_text(), max_size=3))
def test_bytes_that_nothing_matches_are_counted(texts: list[str]) -> None:
    for splits in (splits_of(LETTERS_ONLY), splits_of(LETTERS_ONLY, "single")):
        pieces, unmatched = by_automaton(splits, texts)
        words, unmatched_by_regex = count_pieces(texts, splits)
        assert unmatched == unmatched_by_regex
        assert words == {piece.encode(): pieces.count(piece) for piece in pieces}


@pytest.mark.parametrize("small", [0, 10**9])
def test_a_regex_that_does_not_cover_the_text_is_counted(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "SMALL", small)
    text = "ab, cd; ef " * 9
    tokenizer = train(config(300, pretokenizer=LETTERS_ONLY, min_frequency=1), [text])
    assert tokenizer.training["bytes_unmatched"] == 9 * (2 + 2 + 1)
    assert token_bytes(tokenizer)[ids(tokenizer, ", ")[0]] == b", "


@pytest.mark.parametrize("pattern", [r"\p{N}{1,3}+|\P{N}", r"^a+|[\s\S]", r"\w+|\W"])
def test_a_regex_that_the_file_would_read_otherwise_is_refused(pattern: str) -> None:
    with pytest.raises(InputError, match="Oniguruma"):
        train(config(300, pretokenizer=f"regex:{pattern}"), ["1234567 a\nb"])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"pretokenizer": r"regex:\p{L}(a"}, r"`regex:\\p{L}\(a` is no regular expression"),
        ({"pretokenizer": "regex:a*"}, "empty string"),
        ({"pretokenizer": "gtp2"}, r"no pretokenizer `gtp2`; did you mean `gpt2`\? Known are gpt2, "),
        ({"pretokenizer": "sentences"}, r"no pretokenizer `sentences`\. Known are gpt2, "),
        ({"digits": "pairs"}, "groups_left"),
        ({"alphabet": "seen_bytes"}, "unk"),
        ({"family": "sentencepiece_bpe", "tie_break": "lexicographic_smallest"}, "`tie_break` has no effect"),
    ],
)
def test_settings_that_cannot_be(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TrainConfig(**{"family": "byte_bpe", "vocab_size": 300} | keys)


def test_words_take_the_same_regexes() -> None:
    settings_ = TrainConfig(family="word", vocab_size=300, pretokenizer=r"regex:[a-z]+|[^a-z]+", digits="groups_right")
    tokenizer = train(settings_, ["total 1234567 " * 9])
    assert {b"total", b"1", b"234", b"567"} <= set(token_bytes(tokenizer).values())


def test_what_was_set_is_recorded(tmp_path: Path) -> None:
    keys = {"digits": "single", "tie_break": "lexicographic_greatest", "max_token_length": 9, "max_pretoken_bytes": 12}
    tokenizer = train(config(400, pretokenizer="gpt2", **keys), documents())
    tokenizer.save(tmp_path)
    recorded = json.loads((tmp_path / "tokenizer_config.json").read_text())["tokpack"]
    assert recorded["settings"] == {"vocab_size": 400, "pretokenizer": "gpt2", "min_frequency": 2, **keys}
    words, _ = count_pieces(documents(), splits_of("gpt2", "single"))
    long = sum(len(word) * count for word, count in words.items() if len(word) > 12)
    assert tokenizer.training["bytes_dropped"] == long > 0
    assert config(400, **keys).parameters() == config(400).parameters() | keys


def test_bytes_that_were_not_seen_are_unk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    special = SpecialTokens(eod=EOD, unk="<unk>")
    train(config(60, alphabet="seen_bytes", special_tokens=special), ["abc abd é " * 5]).save(tmp_path)
    engine = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    engine.encode_special_tokens = True
    assert engine.get_vocab_size() < 20
    texts = ["abz", "é", "è ab", "zzz", *HOSTILE]
    expected = [engine.encode(text, add_special_tokens=False).ids for text in texts if EOD not in text]
    for worth in (10**9, -1):
        monkeypatch.setattr(byte_bpe_engine, "WORTH_LOADING", worth)
        loaded = registry.load(tmp_path)
        assert [ids(loaded, text) for text in texts if EOD not in text] == expected
    assert loaded.special_tokens["unk"] in expected[0]
    with pytest.raises(InputError, match="7 bytes and 2 special tokens need 9"):
        train(config(8, alphabet="seen_bytes", special_tokens=special), ["abcdefé"[:6] + "\n"])


def test_a_special_token_that_a_regex_of_ones_own_makes_a_word() -> None:
    keys = {"pretokenizer": r"regex:\S+|\s+", "min_frequency": 2}
    tokenizer = train(config(300, **keys), ["some words and more words " * 9])
    assert 0 not in ids(tokenizer, EOD)
    with pytest.raises(InputError, match="was learned"):
        train(config(300, **keys), [f"{EOD} words " * 9])


def test_special_tokens_in_the_text_and_a_vocabulary_that_is_too_large_are_counted() -> None:
    tokenizer = train(config(1000), [f"x{EOD}{EOD}", "abab abab"])
    assert tokenizer.training["special_tokens_in_text"] == 2
    assert tokenizer.training["entries_missing"] == 1000 - tokenizer.vocab_size > 0


def test_few_long_pretokens_are_refused_and_can_be_left_out() -> None:
    texts = ["x" * 3000 + f" {number}" for number in range(5)]
    with pytest.raises(InputError, match="max_pretoken_bytes"):
        train(config(300), texts)
    assert train(config(300, max_pretoken_bytes=1000), texts).training["bytes_dropped"] == 15_000
    train(config(300), [*texts[:1], "words that are short " * 400])


def test_the_command_takes_every_option(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one 12345 two 12345 " * 50)
    arguments = ["train", str(tmp_path / "a.txt"), "--family", "byte_bpe", "--vocab-size", "280", "--json"]
    arguments += [
        "--output",
        str(tmp_path / "out"),
        "--pretokenizer",
        r"regex:[a-z]+|[^a-z]+",
        "--digits",
        "groups_right",
    ]
    arguments += ["--tie-break", "lexicographic_smallest", "--max-token-length", "4", "--min-frequency", "3"]
    arguments += ["--max-pretoken-bytes", "100", "--alphabet", "seen_bytes", "--special-token", "unk=<unk>"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    parameters = json.loads(result.stdout)["parameters"]
    assert parameters["digits"] == "groups_right"
    assert parameters["tie_break"] == "lexicographic_smallest"
    tokens = token_bytes(registry.load(tmp_path / "out"))
    assert {b"345", b"12", b"one"} <= set(tokens.values())
    bad = CliRunner().invoke(app, [*arguments[:7], "--output", str(tmp_path / "bad"), "--pretokenizer", "gpt3"])
    assert bad.exit_code == 1
    assert "did you mean `gpt2`" in bad.stderr
