"""Counting through pretokens equals encoding every document; merges cut short equal the smaller tokenizer."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer as Engine

from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.registry import load, train
from tokpack_core.tokenizers.tiktoken.ranks import write_rank_file
from tokpack_core.vocabulary import counting
from tokpack_core.vocabulary.counting import EncodingCounter, PretokenCounter, exact_bpe, text_counter
from tokpack_core.vocabulary.counts import TokenCounts
from tokpack_core.vocabulary.growth import alternating_weights, growth
from tokpack_core.vocabulary.sizes import merge_sizes, size_row

TEXTS = [
    "the cat sat on the mat, the cat thought 1234567",
    "die Katze saß auf der Matte\n\n\tund schlief",
    "貓坐在墊子上,貓坐在墊子上",
    "",
    "the the the  there then" + "aaaa" * 40,
    "cafe\u0301 the",
    "<|endoftext|> the mat",
]
LANGS = ["en", "de", "zh", "en", None, "fr", "en"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    config = TrainConfig(family="byte_bpe", vocab_size=330, special_tokens=SpecialTokens(eod="<|endoftext|>"))
    return train(config, iter([pa.array(TEXTS[:5] * 3)]), "nfc")


def counted(tokenizer: Tokenizer, kind: type[EncodingCounter] | None = None) -> TokenCounts:
    counter = text_counter(tokenizer) if kind is None else kind(tokenizer)
    for start in (0, 3, 7):
        counter.add(pa.array(TEXTS[start : start + 4], pa.string()), pa.array(LANGS[start : start + 4], pa.string()))
    return counter.total()


def assert_same(left: TokenCounts, right: TokenCounts) -> None:
    assert left.tokens.tolist() == right.tokens.tolist()
    assert left.languages.equals(right.languages)
    assert left.by_language.equals(right.by_language)


@pytest.mark.parametrize("most_words", [2**20, 0])
def test_pretokens_give_the_counts_of_encoding(
    tokenizer: Tokenizer, most_words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "MOST_WORDS", most_words)
    assert isinstance(text_counter(tokenizer), PretokenCounter)
    assert_same(counted(tokenizer), counted(tokenizer, EncodingCounter))


@pytest.mark.parametrize("most_rows", [2**22, 0])
def test_encoding_counts_what_a_plain_count_of_ids_does(
    tokenizer: Tokenizer, most_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "MOST_ROWS", most_rows)
    found = counted(tokenizer, EncodingCounter)
    expected: Counter[tuple[str | None, int]] = Counter()
    for text, lang in zip(TEXTS, LANGS, strict=True):
        expected.update((lang, token) for token in tokenizer.encode(pa.array([text])).ids.tolist())
    rows = {(row["lang"], row["id"]): row["count"] for row in found.by_language.to_pylist()}
    assert rows == expected
    assert sum(found.languages["tokens"].to_pylist()) == found.tokens.sum() == expected.total()


def test_a_rank_file_and_ignored_merges_are_counted_like_they_encode(tokenizer: Tokenizer, tmp_path: Path) -> None:
    vocabulary = tokenizer.vocabulary().filter(pa.compute.invert(tokenizer.vocabulary()["special"]))
    write_rank_file(
        tmp_path / "x.tiktoken", {token: rank for rank, token in enumerate(vocabulary["token"].to_pylist())}
    )
    ranks = load(tmp_path / "x.tiktoken", pretokenizer="cl100k")
    assert isinstance(text_counter(ranks), PretokenCounter)
    assert_same(counted(ranks), counted(ranks, EncodingCounter))
    tokenizer.save(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["model"]["vocab"]["sat"] = 330
    content["model"]["ignore_merges"] = True
    (tmp_path / "whole.json").write_text(json.dumps(content))
    (tmp_path / "tokenizer_config.json").unlink()
    whole = load(tmp_path / "whole.json")
    assert isinstance(text_counter(whole), PretokenCounter)
    assert counted(whole).tokens[330] == 0  # " sat" is the pretoken, not "sat"
    assert_same(counted(whole), counted(whole, EncodingCounter))
    counter = text_counter(whole)
    counter.add(pa.array(["sat sat", "\nsat"]), pa.array(["en", "en"]))
    assert counter.total().tokens[330] == 2


def test_other_families_are_encoded() -> None:
    config = TrainConfig(family="sentencepiece_unigram", vocab_size=300, special_tokens=SpecialTokens(eod="<eod>"))
    unigram = train(config, iter([pa.array(TEXTS[:5] * 3)]), "nfc")
    assert exact_bpe(unigram) is None
    total = counted(unigram)
    assert total.merges is None
    assert total.tokens.sum() == sum(len(unigram.encode(pa.array([t])).ids) for t in [*TEXTS[:4], *TEXTS[3:7]])


def cut_short(tokenizer: Tokenizer, merges: int) -> Engine:
    """The library's tokenizer with the first merges alone."""
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    content = json.loads(vars(tokenizer)["_engine"].to_str())
    content["model"]["merges"] = content["model"]["merges"][:merges]
    engine = Engine.from_str(json.dumps(content))
    engine.encode_special_tokens = True
    return engine


def test_counts_at_a_cut_are_those_of_the_tokenizer_with_the_first_merges(tokenizer: Tokenizer) -> None:
    counter = text_counter(tokenizer)
    texts = [text for text in TEXTS if "\u0301" not in text]
    counter.add(pa.array(texts), pa.nulls(len(texts), pa.string()))
    total = counter.total()
    assert total.merges is not None
    assert total.merges.cuts.tolist() == [73 // 32, 73 // 16, 73 // 8, 73 // 4, 73 // 2]
    for cut, at_cut in zip(total.merges.cuts, total.merges.at_cut, strict=True):
        engine = cut_short(tokenizer, int(cut))
        ids = [token for text in texts for token in engine.encode(text, add_special_tokens=False).ids]
        assert at_cut.tolist() == np.bincount(ids, minlength=330).tolist()
    exact = exact_bpe(tokenizer)
    assert exact is not None
    rows = merge_sizes(exact.model, total.merges, total.tokens[1:], 0, 1000)
    assert [row["entries"] for row in rows] == [258, 260, 265, 274, 292, 329]
    assert rows[-1]["tokens"] == total.tokens.sum()
    assert rows[0]["seen"] == np.count_nonzero(total.merges.at_cut[0])


def test_consumed_counts_every_merge_applied(tokenizer: Tokenizer) -> None:
    text = "the cat"
    counter = text_counter(tokenizer)
    counter.add(pa.array([text, text]), pa.array(["en", "en"]))
    merges = counter.total().merges
    assert merges is not None
    names = {token: row for row, token in enumerate(tokenizer.vocabulary()["token"].to_pylist())}
    # Each merge takes two tokens and leaves one: 7 bytes become as many tokens as are left.
    final = Counter(tokenizer.encode(pa.array([text])).ids.tolist())
    assert merges.consumed.sum() == 2 * 2 * (len(text) - final.total())
    assert merges.consumed[names[b"h"]] == 2
    assert merges.consumed[names[b"the"]] == 0


def test_merge_counts_add_up_and_survive_their_file(tokenizer: Tokenizer, tmp_path: Path) -> None:
    one, whole = counted(tokenizer), counted(tokenizer) + counted(tokenizer)
    assert one.merges is not None
    assert whole.merges is not None
    assert whole.merges.at_cut.tolist() == (2 * one.merges.at_cut).tolist()
    one.write(tmp_path)
    read = TokenCounts.read(tmp_path)
    assert_same(read, one)
    assert read.merges is not None
    assert read.merges.consumed.tolist() == one.merges.consumed.tolist()
    assert read.merges.at_cut.tolist() == one.merges.at_cut.tolist()
    assert (TokenCounts.zero(330) + one).merges is one.merges


def test_size_row_by_hand() -> None:
    assert size_row(4, np.array([0, 1, 5, 14]), 40) == {
        "entries": 4,
        "seen": 3,
        "utilization": 0.75,
        "rare_share": 0.5,
        "tokens": 20,
        "bytes_per_token": 2.0,
    }


def test_growth_is_the_expected_number_of_entries_seen() -> None:
    curve = growth(np.array([0, 1, 2, 7]))
    expected = [sum(1 - (1 - share) ** count for count in (1, 2, 7)) for share in curve.share]
    np.testing.assert_allclose(curve.seen, expected, rtol=1e-9)
    assert (curve.share[-1], curve.seen[-1]) == (1.0, 3.0)
    assert curve.chance_of_new == 1 / 10


def test_the_text_doubled_shows_what_good_and_toulmin_expect() -> None:
    # Poisson: an entry of rate 1 is seen once with e^-1 …; the sum f1 - f2 + f3 … of its chances is e^-1 (1 - e^-1).
    weights = alternating_weights()
    assert weights[0] == pytest.approx(1 - 2**-20)
    assert weights[1] == pytest.approx(-(1 - 21 * 2**-20))
    assert weights[-1] == pytest.approx(-(2**-20))
    generator = np.random.default_rng(7)
    rates = generator.exponential(2.0, 40_000)
    first, second = generator.poisson(rates), generator.poisson(rates)
    fresh = np.count_nonzero((first == 0) & (second > 0))
    curve = growth(first)
    assert curve.new_if_doubled == pytest.approx(fresh, rel=0.05)
    assert not curve.saturated(40_000)
    assert growth(np.full(100, 50)).saturated(100)
    assert growth(np.zeros(9, np.int64)).chance_of_new is None


def test_white_space_between_line_ends_goes_across_no_words() -> None:
    """Code is full of it; a tokenizer that has learned it is still counted by pretokens."""
    text = "def f():\n    return 1\n \n \ndef g():\n    return 2\n \n \n" * 40
    config = TrainConfig(family="byte_bpe", vocab_size=300)
    tokenizer = train(config, iter([pa.array([text])]), "none")
    assert b"\n \n" in tokenizer.vocabulary()["token"].to_pylist()
    assert exact_bpe(tokenizer) is not None
