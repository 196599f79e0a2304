"""Findings and gates of a report: worded by hand from made figures, most serious first, limits in neither file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tokpack_core.config import SpecialTokens, TokenizerChecks, TokenizerConfig, TrainConfig
from tokpack_core.tokenizers.registry import train
from tokpack_core.vocabulary.counting import text_counter
from tokpack_core.vocabulary.counts import TokenCounts
from tokpack_core.vocabulary.findings import SEVERITIES, findings, foreign_scripts
from tokpack_core.vocabulary.gates import evaluate
from tokpack_core.vocabulary.parallel_text import ParallelText
from tokpack_core.vocabulary.report import build_report

TEXTS = pa.array(["the cat sat on the mat and the dog sat by the cat 1234567"] * 30)


def report_on(premium: int = 1) -> dict[str, Any]:
    config = TrainConfig(family="byte_bpe", vocab_size=270, special_tokens=SpecialTokens(eod="<|eod|>"))
    tokenizer = train(config, iter([TEXTS]), "nfc")
    counter = text_counter(tokenizer)
    counter.add(TEXTS, pa.array(["en"] * len(TEXTS)))
    zero = TokenCounts.zero(tokenizer.vocab_size)
    sentences = {"en": pa.array(["zzzz"]), "xx": pa.array(["zzzz" * premium])}
    parallel = ParallelText(1, sentences)
    facts = {"family": "byte_bpe", "unicode": "nfc"}
    made = build_report("t", facts, tokenizer.vocabulary(), counter.total(), zero, tokenizer, None, parallel)
    return made | {"round_trip": {"documents": 30, "failures": 0}}


REPORT = report_on(premium=4)


def changed(part: str, **figures: Any) -> dict[str, Any]:
    return {**REPORT, part: {**REPORT[part], **figures}}


def test_five_findings_the_most_serious_first() -> None:
    found = findings(REPORT)
    assert len(found) == 5
    levels = [SEVERITIES.index(finding.severity) for finding in found]
    assert levels == sorted(levels)
    assert all(finding.title and finding.evidence and finding.action for finding in found)


def test_unfairness_is_told_in_context_and_cost() -> None:
    unfair = next(finding for finding in findings(REPORT) if "xx" in finding.title)
    assert unfair.severity == "bad"
    assert unfair.title == "The same content costs 4.0 × in xx"
    # 4 tokens a sentence in English, 16 in xx.
    assert "a context of 4,096 holds 256 sentences in place of 1,024" in unfair.evidence
    assert unfair.action.startswith("Give xx a larger share of train_on")


def test_lost_text_and_injection_come_first() -> None:
    failed = {"strings": 9, "failures": [{"name": "tabs", "text": "\t", "gives": " "}]}
    injection = {**REPORT["robustness"]["injection"], "matched": [{"id": 0, "text": "<|eod|>"}]}
    found = findings(changed("robustness", layout=failed, injection=injection))
    assert [finding.title for finding in found[:2]] == ["Text can inject special tokens", "Text is lost"]
    assert "<|eod|>" in found[0].evidence
    assert found[1].evidence.startswith("0 of 30 documents and 1 of 47 hard strings do not come back")
    assert "tabs" in found[1].evidence


def test_rare_entries_give_the_advice_of_their_reason() -> None:
    rare = [{**row, "entries": 90, "share": 0.333} for row in REPORT["rare"]]
    for reason, advice in (("seldom", "Lower vocab_size to about 180"), ("absent_script", "Add text of their scripts")):
        rows = [{**row, "reasons": dict.fromkeys(row["reasons"], 0) | {reason: 90}} for row in rare]
        found = findings({**REPORT, "rare": rows})
        one = next(finding for finding in found if finding.title == "Part of the vocabulary is hardly used")
        assert one.severity == "bad"
        assert one.evidence.startswith("90 of 269 entries (33.3 %)")
        assert one.action.startswith(advice)


def test_unreachable_tokens_fail_their_gate_by_name() -> None:
    found = {"entries": 27, "undecided": 0, "examples": [{"id": 1, "gives": [2]}]}
    report = changed("structure", unreachable=found)
    checks = TokenizerChecks(max_unreachable_share=0.1)
    name = report["tokens"]["token"][1]
    verdict = evaluate(report, checks)[2]
    assert (verdict.name, verdict.passed, verdict.value, verdict.limit) == ("unreachable_tokens", False, 27 / 269, 0.1)
    assert f"such as {name} (id 1)" in verdict.explanation
    assert verdict.explanation.endswith("or correct pretokenizer and normalizer.")
    assert evaluate(report, TokenizerChecks(max_unreachable_share=0.101))[2].passed
    assert evaluate(REPORT, TokenizerChecks())[2].value == 0.0


def test_fairness_is_judged_where_it_has_a_limit() -> None:
    assert [verdict.name for verdict in evaluate(REPORT, TokenizerChecks())] == [
        "rare_token_share",
        "vocabulary_utilization",
        "unreachable_tokens",
    ]
    verdict = evaluate(REPORT, TokenizerChecks(max_premium=3.9))[3]
    assert (verdict.name, verdict.passed, verdict.value) == ("fairness", False, 4.0)
    assert "xx 4.00 ×" in verdict.explanation
    assert evaluate(REPORT, TokenizerChecks(max_premium=4.0))[3].passed
    missing = evaluate({**REPORT, "fairness": None}, TokenizerChecks(max_premium=9.0))[3]
    assert not missing.passed
    assert "build it again with `parallel`" in missing.explanation


def test_a_limit_on_the_premium_needs_parallel_text() -> None:
    keys = {"family": "byte_bpe", "vocab_size": 300, "train_on": {"a": 1.0}, "special_tokens": {"eod": "<e>"}}
    with pytest.raises(ValueError, match=r"`checks\.max_premium` needs `parallel`"):
        TokenizerConfig.model_validate({**keys, "checks": {"max_premium": 2.0}})
    config = TokenizerConfig.model_validate({**keys, "checks": {"max_premium": 2.0}, "parallel": "p.jsonl"})
    assert config.checks.max_premium == 2.0


def test_a_small_sample_is_told() -> None:
    growth = {**REPORT["growth"], "saturated": False, "new_if_doubled": 26.9}
    found = findings({**REPORT, "growth": growth})
    small = next(finding for finding in found if finding.title == "The sample is too small to judge by")
    assert small.evidence == "As much text again would show about 27 entries for the first time (10 % of all)."
    assert np.isclose(REPORT["growth"]["utilization"][-1], REPORT["sample"]["vocabulary_utilization"])


def test_scripts_that_the_sample_lacks_are_named_and_no_others() -> None:
    """Half of the Latin entries are never seen, but the sample is of Latin script."""
    scripts = REPORT["scripts"]
    latin, greek, khmer = (scripts.index(name) for name in ("Latin", "Greek", "Khmer"))
    columns = {
        "script": [latin, latin, greek, khmer, khmer, khmer],
        "reason": [5, 5, 4, 4, 4, 4],
        "kind": [0] * 5 + [4],
    }
    rare = [row | {"reasons": row["reasons"] | {"absent_script": 9}} for row in REPORT["rare"]]
    made = {**REPORT, "tokens": columns, "rare": rare}
    [found] = foreign_scripts(made)
    assert found.evidence == "9 entries are of scripts that the sample lacks: Khmer, Greek."
