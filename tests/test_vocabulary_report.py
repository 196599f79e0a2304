"""The report as data and the gates that judge it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest

from tokpack_core.config import SpecialTokens, TokenizerChecks, TrainConfig
from tokpack_core.tokenizers.protocol import VOCABULARY_SCHEMA, Tokenizer
from tokpack_core.tokenizers.registry import train
from tokpack_core.vocabulary.counts import LANGUAGE_SCHEMA, TokenCounts, count
from tokpack_core.vocabulary.gates import evaluate
from tokpack_core.vocabulary.probe_texts import PASSAGES
from tokpack_core.vocabulary.report import SCHEMA_VERSION, build_report, token_bytes

TEXTS = pa.array(["the cat sat on the mat, the end", "die Katze saß auf der Matte", "貓坐在墊子上,貓坐在墊子上"])
LANGS = pa.array(["en", "de", None])


def trained(family: str) -> Tokenizer:
    config = TrainConfig.model_validate(
        {"family": family, "vocab_size": 285, "special_tokens": SpecialTokens(eod="<|endoftext|>")}
    )
    return train(config, iter([TEXTS]), "nfc")


def report_of(tokenizer: Tokenizer) -> dict[str, Any]:
    counts = count(tokenizer.encode(TEXTS), TEXTS, LANGS, tokenizer.vocab_size)
    facts = {"family": tokenizer.family, "special_tokens": dict(tokenizer.special_tokens)}
    zero = TokenCounts.zero(tokenizer.vocab_size)
    return build_report("tiny", facts, tokenizer.vocabulary(), counts, zero, tokenizer)


def report_with(frequencies: list[int], family: str = "byte_bpe", single_bytes: int = 0) -> dict[str, Any]:
    """A report on one special token, then `single_bytes` bytes, then ordinary entries, seen so often."""
    size = len(frequencies) + 1
    tokens = [b"<eod>", *(bytes([65 + i]) if i < single_bytes else b"w%02d" % i for i in range(size - 1))]
    columns = [range(size), tokens, [True] + [False] * (size - 1), [False] * size]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, VOCABULARY_SCHEMA, strict=True)]
    total = sum(frequencies)
    row = {"lang": "en", "documents": 1, "bytes": 9, "characters": 9, "words": 1, "tokens": total}
    counts = TokenCounts(np.array([99, *frequencies]), pa.Table.from_pylist([row], LANGUAGE_SCHEMA))
    vocabulary = pa.table(arrays, VOCABULARY_SCHEMA)
    return build_report("made", {"family": family}, vocabulary, counts, TokenCounts.zero(size))


@pytest.mark.parametrize("family", ["byte_bpe", "sentencepiece_unigram"])
def test_report_of_a_trained_tokenizer(family: str) -> None:
    tokenizer = trained(family)
    report = report_of(tokenizer)
    vocabulary, ids = tokenizer.vocabulary(), tokenizer.encode(TEXTS).ids
    special = set(vocabulary.filter(vocabulary["special"])["id"].to_pylist())
    entries = set(vocabulary["id"].to_pylist()) - special
    assert report["schema_version"] == SCHEMA_VERSION == 3
    assert report["vocabulary"]["entries"] == len(entries) == sum(report["vocabulary"]["kinds"].values())
    assert report["vocabulary"]["special"] == len(special) > 0
    assert report["sample"]["vocabulary_utilization"] == len(set(ids.tolist()) & entries) / len(entries)
    assert report["sample"]["tokens"] == len(ids)
    assert report["sample"]["bytes"] == sum(len(text.encode()) for text in TEXTS.to_pylist())
    assert [row["lang"] for row in report["sample"]["languages"]] == ["und", "en", "de"]
    assert sum(report["tokens"]["sample"]) == len(ids)
    assert [token_bytes(token) for token in report["tokens"]["token"]] == vocabulary["token"].to_pylist()
    english = report["passages"][0]
    assert english["title"] == "English"
    assert english["ids"] == tokenizer.encode(pa.array([PASSAGES["English"]])).ids.tolist()
    assert report["test"]["bytes_per_token"] is None
    assert report["test"]["vocabulary_utilization"] == 0.0


def test_report_is_strict_json_and_deterministic() -> None:
    tokenizer = trained("byte_bpe")
    report = report_of(tokenizer)
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert orjson.loads(orjson.dumps(report)) == report
    assert orjson.dumps(report_of(tokenizer)) == orjson.dumps(report)


def test_report_holds_no_limits() -> None:
    text = orjson.dumps({**report_of(trained("byte_bpe")), "tokens": None}).decode()
    assert not any(word in text for word in (*TokenizerChecks.model_fields, "passed", "verdict", "limit"))


def test_counts_of_another_vocabulary_are_refused() -> None:
    tokenizer = trained("byte_bpe")
    short, whole = TokenCounts.zero(tokenizer.vocab_size - 1), TokenCounts.zero(tokenizer.vocab_size)
    with pytest.raises(ValueError, match=f"the vocabulary has id {tokenizer.vocab_size - 1}"):
        build_report("tiny", {}, tokenizer.vocabulary(), whole, short)


def test_figures_exactly_at_the_limit_pass_and_beyond_it_fail() -> None:
    # 10 entries: one never seen, one seen 4 times, eight seen 5 times.
    report = report_with([0, 4] + [5] * 8)
    for rare_below, share in ((1, 0.1), (4, 0.1), (5, 0.2), (6, 1.0)):
        at_limit = TokenizerChecks(rare_below=rare_below, max_rare_token_share=share)
        below_it = TokenizerChecks(rare_below=rare_below, max_rare_token_share=share - 0.001)
        verdict, failed = evaluate(report, at_limit)[0], evaluate(report, below_it)[0]
        assert (verdict.name, verdict.passed, verdict.value) == ("rare_token_share", True, share)
        assert (failed.passed, failed.limit) == (False, share - 0.001)
    at_limit, above_it = (TokenizerChecks(min_vocabulary_utilization=share) for share in (0.9, 0.901))
    verdict, failed = evaluate(report, at_limit)[1], evaluate(report, above_it)[1]
    assert (verdict.name, verdict.passed, verdict.value) == ("vocabulary_utilization", True, 0.9)
    assert not failed.passed


def test_explanations_name_offenders_and_what_to_change() -> None:
    rare, unused, _ = evaluate(report_with([0, 4] + [5] * 8), TokenizerChecks(min_vocabulary_utilization=0.95))
    # Eight entries are not rare: at most 10 % rare allows 8 / 0.9 = 8.9 entries and the special token.
    assert rare.explanation == (
        "2 of 10 entries (20 %) were seen fewer than 5 times in the training sample; at most 10 % may be, "
        "rarest: w00 (id 1), w01 (id 2). Lower vocab_size to about 9, or enlarge the sample (sample_bytes, train_on)."
    )
    # Nine are seen: 9 / 0.95 = 9.5 entries and the special token.
    assert unused.explanation == (
        "9 of 10 entries (90 %) occur in the training sample; at least 95 % must, rarest: w00 (id 1). "
        "Lower vocab_size to about 10, or enlarge the sample (sample_bytes, train_on)."
    )


def test_a_passed_gate_gives_no_advice() -> None:
    rare, used, _ = evaluate(report_with([7] * 4), TokenizerChecks())
    assert rare.explanation == (
        "0 of 4 entries (0 %) were seen fewer than 5 times in the training sample; at most 10 % may be."
    )
    assert used.explanation == "4 of 4 entries (100 %) occur in the training sample; at least 90 % must."


@pytest.mark.parametrize(
    ("report", "advice"),
    [
        (report_with([0, 0, 0]), "The sample holds no tokens: check what train_on names."),
        (report_with([0, 9], family="pretrained"), "or change its limit (checks) or the tokenizer."),
        (report_with([0, 0, 0, 9], single_bytes=3), "at any vocab_size most entries would be bytes."),
    ],
)
def test_advice_fits_the_cause(report: dict[str, Any], advice: str) -> None:
    assert evaluate(report, TokenizerChecks())[1].explanation.endswith(advice)


def test_offenders_are_named_visibly() -> None:
    report = report_with([0, 0])
    report["tokens"]["token"][1:] = [{"hex": "e4b8"}, "\u202e\n"]
    explanation = evaluate(report, TokenizerChecks())[1].explanation
    assert "⟨U+202E⟩⏎ (id 2), ⟨E4 B8⟩ (id 1)." in explanation


def test_rare_below_beyond_the_report_is_a_configuration_error() -> None:
    report = report_with([1000, 1001, 7])
    assert evaluate(report, TokenizerChecks(rare_below=1001))[0].value == 2 / 3
    assert len(report["sample"]["frequency_of_frequencies"]) == 1001
    with pytest.raises(ValueError, match="less than or equal to 1001"):
        TokenizerChecks(rare_below=1002)
