"""Fairness on parallel text, robustness and what a vocabulary costs a model: values derived by hand."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard

from tests.command_line import tokpack
from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.registry import load, train
from tokpack_core.vocabulary.fairness import draws, fairness, gini, premium_interval, reference_language
from tokpack_core.vocabulary.parallel_text import ParallelText, read_parallel
from tokpack_core.vocabulary.probe_texts import FORMS, HOSTILE, LAYOUT
from tokpack_core.vocabulary.robustness import concatenation, kind_of_cut, robustness, shared_end
from tokpack_core.vocabulary.scaling import ModelShape, model_costs, optimal_vocabulary
from tokpack_core.vocabulary.sizes import first_texts, piece_sizes


@pytest.fixture(scope="module")
def letters() -> Tokenizer:
    """Every byte is a token: no merges."""
    config = TrainConfig(family="byte_bpe", vocab_size=258, special_tokens=SpecialTokens(eod="<|eod|>", pad="<|pad|>"))
    return train(config, iter([pa.array(["a"])]), "none")


def parallel_of(**texts: list[str | None]) -> ParallelText:
    sentences = len(next(iter(texts.values())))
    return ParallelText(sentences, {lang: pa.array(column, pa.string()) for lang, column in sorted(texts.items())})


def test_premium_is_tokens_over_english_on_sentences_that_both_have(letters: Tokenizer) -> None:
    found = fairness(
        letters, parallel_of(en=["abcd", "ab", None], de=["abcdef", "abc", "x" * 99], fr=["ab", None, "a"])
    )
    rows = {row["lang"]: row for row in found["languages"]}
    assert list(rows) == ["de", "en", "fr"]
    assert (rows["de"]["tokens"], rows["de"]["reference_tokens"], rows["de"]["premium"]) == (9, 6, 1.5)
    assert (rows["fr"]["sentences"], rows["fr"]["premium"]) == (1, 0.5)
    assert (rows["en"]["premium"], rows["en"]["low"], rows["en"]["high"]) == (1.0, 1.0, 1.0)
    assert rows["de"]["tokens_per_sentence"] == 4.5
    assert rows["de"]["sentences_in_context"] == [910, 7281, 29127]
    assert rows["de"]["bytes_per_token"] == rows["de"]["characters_per_token"] == 1.0
    assert (found["reference"], found["worst"], found["sentences"]) == ("en", "de", 3)
    # Means 4.5, 3 and 2: differences 1.5, 2.5, 1, each pair twice, over 2 * 9 * 9.5 / 3.
    assert found["gini"] == pytest.approx(2 * 5 / (2 * 9 * 9.5 / 3))


def test_gini_by_hand() -> None:
    assert gini(np.array([2.0, 2.0, 2.0])) == 0.0
    assert gini(np.array([1.0, 0.0])) == 0.5
    assert gini(np.array([0.0, 0.0])) == 0.0
    values = np.array([1.0, 4.0, 2.5, 9.0])
    pairs = np.abs(values[:, None] - values[None, :]).sum()
    assert gini(values) == pytest.approx(pairs / (2 * 16 * values.mean()))


def test_the_interval_is_that_of_a_bootstrap() -> None:
    generator = np.random.default_rng(3)
    reference = generator.integers(10, 40, 400)
    tokens = (reference * 1.5 + generator.integers(-5, 6, 400)).astype(np.int64)
    low, high = premium_interval(tokens, reference)
    ratio = tokens.sum() / reference.sum()
    assert low < ratio < high
    # Delta method: the standard error of a ratio of means.
    error = np.sqrt(np.var(tokens - ratio * reference) / 400) / reference.mean()
    assert (high - low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.1)
    assert premium_interval(tokens, reference) == (low, high)
    assert premium_interval(np.array([3, 3]), np.array([2, 2])) == (1.5, 1.5)


def test_draws_are_splitmix64() -> None:
    # The first outputs of the published generator from seed 0.
    assert [int(x) for x in draws(3, 2**32)] == [
        0xE220A8397B1DCDAF >> 32,
        0x6E789E6AA1B965F4 >> 32,
        0x06C45D188009454F >> 32,
    ]
    counts = np.bincount(draws(60_000, 6), minlength=6)
    assert counts.min() > 9_600


def test_english_is_the_reference_however_it_is_written() -> None:
    for name in ("en", "eng", "eng_Latn", "en-US"):
        assert reference_language(ParallelText(1, {name: pa.array(["a"]), "aa": pa.array(["b"])})) == name
    assert reference_language(parallel_of(enm=["a", None], fr=["a", "b"])) == "fr"


def test_both_forms_of_parallel_text_are_read(tmp_path: Path) -> None:
    rows = [{"id": "1", "text": {"en": "a", "hi": "b", "xx": None}}, {"text": {"en": "c"}}]
    path = tmp_path / "p.jsonl.zst"
    path.write_bytes(zstandard.compress("\n".join(map(json.dumps, rows)).encode()))
    wide = read_parallel(path)
    assert {lang: column.to_pylist() for lang, column in wide.texts.items()} == {"en": ["a", "c"], "hi": ["b", None]}
    long = [
        {"id": 1, "lang": "en", "text": "a"},
        {"id": 2, "lang": "en", "text": "c"},
        {"id": 1, "lang": "hi", "text": "b"},
    ]
    (tmp_path / "p.jsonl").write_text("\n\n".join(map(json.dumps, long)) + "\n")
    read = read_parallel(tmp_path / "p.jsonl")
    assert read.sentences == wide.sentences == 2
    assert all(read.texts[lang].equals(wide.texts[lang]) for lang in wide.texts)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": {"en": "a", "hi": "b"}}\n{"te', "line 2: not JSON"),
        ("[1]", "line 1: not an object"),
        ('{"text": "a"}', "line 1: no texts by language"),
        ('{"text": {"en": 1}}', "line 1: no texts by language"),
        ('{"text": {"en": "a"}}', "holds 1 languages"),
        (
            '{"id": 1, "lang": "en", "text": "a"}\n{"id": 1, "lang": "en", "text": "b"}',
            "sentence 1 has a text in en already",
        ),
    ],
)
def test_bad_parallel_text_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "p.jsonl").write_text(content)
    with pytest.raises(InputError, match=message):
        read_parallel(tmp_path / "p.jsonl")


def test_other_files_are_no_parallel_text(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("a")
    with pytest.raises(InputError, match=r"is no \.jsonl"):
        read_parallel(tmp_path / "p.txt")


def test_bytes_are_robust(letters: Tokenizer) -> None:
    found = robustness(letters)
    assert found["hostile"] == {"strings": len(HOSTILE), "failures": []}
    assert found["layout"] == {"strings": len(LAYOUT), "failures": []}
    assert found["injection"]["matched"] == []
    assert found["injection"]["special_tokens"] == 2
    assert found["injection"]["look_alikes"][0] == {"text": "<|endoftext|>", "tokens": 13}
    # No merge crosses anything; but a cut inside a character cannot be tried.
    assert found["concatenation"]["stable"] == 1.0
    forms = {row["text"]: row for row in found["forms"]["pairs"]}
    assert forms["é"] == {"text": "é", "nfc_tokens": 2, "nfd_tokens": 3, "same": False}
    assert found["forms"]["same"] == sum(
        unicodedata.normalize("NFC", text) == unicodedata.normalize("NFD", text) for text in FORMS
    )
    hello = found["leading_space"][0]
    assert (len(hello["ids"]), len(hello["with_space"]), hello["shared_end"]) == (5, 6, 5)


def test_what_a_tokenizer_loses_is_shown(tmp_path: Path) -> None:
    texts = pa.array(["the quick brown fox"] * 9)
    special = SpecialTokens(eod="<e>", unk="<u>")
    train(TrainConfig(family="wordpiece", vocab_size=60, special_tokens=special), iter([texts]), "nfc").save(tmp_path)
    found = robustness(load(tmp_path))
    assert {failure["name"] for failure in found["layout"]["failures"]} >= {"tabs", "four spaces"}
    assert found["injection"]["matched"] == []


def test_special_tokens_that_text_can_inject_are_named(tmp_path: Path, letters: Tokenizer) -> None:
    letters.save(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    (tmp_path / "tokenizer_config.json").unlink()
    content["model"]["vocab"] |= {"<": content["model"]["vocab"]["<"]}
    content["added_tokens"].append({**content["added_tokens"][0], "id": 257, "content": "e"})
    merged = {name: row for name, row in content["model"]["vocab"].items() if row != 257}
    content["model"]["vocab"] = {**merged, "e": 257}
    (tmp_path / "t.json").write_text(json.dumps(content))
    matched = robustness(load(tmp_path / "t.json"))["injection"]["matched"]
    assert matched == [{"id": 257, "text": "e"}]


def test_concatenation_is_stable_where_the_parts_tokens_are_those_of_the_whole() -> None:
    config = TrainConfig(family="byte_bpe", vocab_size=258, special_tokens=SpecialTokens(eod="<|eod|>"))
    tokenizer = train(config, iter([pa.array(["ab ab ab"])]), "none")
    # The one merge is "ab"; of "ab ab" the cuts a|b are unstable, b|␣ and ␣|a are stable.
    found = concatenation(tokenizer, ["ab ab"])
    assert found == {
        "cuts": 4,
        "stable": 0.5,
        "before_space": 1.0,
        "after_space": 1.0,
        "line_end": None,
        "within_word": 0.0,
        "elsewhere": None,
    }
    assert [kind_of_cut(*pair) for pair in ("a ", " a", "\na", "ab", "a.")] == [
        "before_space",
        "after_space",
        "line_end",
        "within_word",
        "elsewhere",
    ]
    assert (shared_end([1, 2, 3], [9, 2, 3]), shared_end([1], [1]), shared_end([1], [2])) == (2, 1, 0)


def test_optimal_vocabulary_is_that_of_the_paper() -> None:
    # At 33 M non-vocabulary parameters the law gives 3,145,728 vocabulary parameters, 6,144 entries of d_model 512.
    assert optimal_vocabulary(33e6, 512) == 6144
    assert 60_000 <= optimal_vocabulary(7e9, 4096) <= 67_500
    assert 212_000 <= optimal_vocabulary(70e9, 8192) <= 231_000


def test_model_costs_by_hand() -> None:
    sizes = [{"entries": 10, "tokens": 300}, {"entries": 20, "tokens": 200}]
    (row,) = model_costs(20, sizes, [ModelShape("m", 1000.0, 10)])
    assert (row["embedding_parameters"], row["embedding_share"], row["softmax_share"]) == (200, 0.2, 0.2)
    assert row["untied_share"] == 400 / 1200
    # (800 + 10 * 10) * 300 against (800 + 20 * 10) * 200.
    assert row["relative_cost"] == [270_000 / 200_000, 1.0]
    assert model_costs(20, None, [ModelShape("m", 1000.0, 10)])[0]["relative_cost"] is None


@pytest.mark.parametrize("family", ["sentencepiece_bpe", "sentencepiece_unigram"])
def test_sizes_of_sentencepiece_models_leave_out_the_lowest_scores(family: str) -> None:
    texts = pa.array(["the thinking thinker thought of other things, lower lowest newer newest"] * 9)
    size = {"sentencepiece_bpe": 330, "sentencepiece_unigram": 282}[family]
    config = TrainConfig.model_validate({"family": family, "vocab_size": size, "special_tokens": {"eod": "<e>"}})
    tokenizer = train(config, iter([texts]), "nfc")
    rows = piece_sizes(tokenizer, texts)  # type: ignore[arg-type]
    assert rows[-1]["entries"] == size - tokenizer.vocabulary()["special"].to_pylist().count(True)
    assert rows[-1]["tokens"] == tokenizer.encode(texts).ids.size
    entries, tokens = ([row[name] for row in rows] for name in ("entries", "tokens"))
    assert entries == sorted(entries)
    assert tokens == sorted(tokens, reverse=True)
    if family == "sentencepiece_bpe":
        smaller = train(config.model_copy(update={"vocab_size": rows[-2]["entries"] + 2}), iter([texts]), "nfc")
        assert smaller.encode(texts).ids.size == rows[-2]["tokens"]


def test_first_texts_are_bounded() -> None:
    batches = (pa.array([letter * 10] * 4) for letter in "abc")
    assert first_texts(batches, 64).to_pylist() == ["a" * 10] * 4 + ["b" * 10] * 3
    assert len(first_texts(iter([]))) == 0


def test_the_report_of_the_command_line_takes_parallel_text_and_a_model(tmp_path: Path, letters: Tokenizer) -> None:
    (tmp_path / "t").mkdir()
    letters.save(tmp_path / "t")
    (tmp_path / "a.txt").write_text("some text")
    (tmp_path / "p.jsonl").write_text('{"text": {"en": "abcd", "hi": "abcdef"}}')
    options = ("--parallel", "p.jsonl", "--parameters", "1e6", "--d-model", "100")
    run = tokpack(tmp_path, "report", "--tokenizer", "t", *options, "--output", "r", "a.txt", "--json")
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    assert [row["premium"] for row in report["fairness"]["languages"]] == [1.5, 1.0]
    assert report["models"][0]["embedding_share"] == 258 * 100 / 1e6
    assert [Path(entry["path"]).name for entry in run.json["inputs"]] == ["a.txt", "p.jsonl"]
    alone = tokpack(tmp_path, "report", "--tokenizer", "t", "--d-model", "9", "--output", "s", "a.txt", may_fail=True)
    assert "give both" in alone.err


def test_a_tokenizer_without_special_tokens_has_none_to_inject() -> None:
    tokenizer = train(TrainConfig(family="byte_bpe", vocab_size=260), iter([pa.array(["the cat sat"] * 9)]), "nfc")
    found = robustness(tokenizer)["injection"]
    assert (found["special_tokens"], found["matched"]) == (0, [])
