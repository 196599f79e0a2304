"""The checks of vocabulary_report/<tokenizer>: a report's figures against the limits of the configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tokpack_core.config import TokenizerChecks, TokenizerConfig
from tokpack_core.tokenizers.agreement.round_trip import EXAMPLES, LOSSY, place_of
from tokpack_core.verdict import Verdict
from tokpack_core.vocabulary.gates import evaluate
from tokpack_core.vocabulary.pits import REMEDIES
from tokpack_core.vocabulary.visible import printable

SHOWN_CHARACTERS = 60
"""Of a document that a verdict names by its text."""
CHECKS = {
    "rare_token_share": True,
    "vocabulary_utilization": True,
    "unreachable_tokens": True,
    "round_trip": True,
    "normalization_agreement": False,
    "pits": False,
}


def checks(config: TokenizerConfig) -> dict[str, bool]:
    """Names of the checks, and whether each blocks what is downstream."""
    fairness = {} if config.checks.max_premium is None else {"fairness": True}
    own = {
        "round_trip": config.family not in LOSSY,
        "normalization_agreement": config.checks.normalization_agreement == "block",
        "pits": config.checks.pits == "block",
    }
    known = CHECKS | fairness | own
    return known | {name: False for name in config.checks.warn if name in known}


def judge(report: dict[str, Any], limits: TokenizerChecks) -> list[Verdict]:
    agreement = agreement_verdict(report, blocking=limits.normalization_agreement == "block")
    found = [*evaluate(report, limits), round_trip_verdict(report), agreement]
    found.append(pits_verdict(report, blocking=limits.pits == "block"))
    return [replace(verdict, blocking=False) if verdict.name in limits.warn else verdict for verdict in found]


def round_trip_verdict(report: dict[str, Any]) -> Verdict:
    trip, family = report["round_trip"], report["tokenizer"]["family"]
    explanation = f"{trip['failures']} of {trip['documents']} test documents do not come back from encode and decode"
    if trip["failures"]:
        explanation += f": {', '.join(map(place_of, trip['examples'][:EXAMPLES]))}. {round_trip_remedy(family)}"
    passed = trip["failures"] == 0
    return Verdict("round_trip", passed, float(trip["failures"]), 0.0, explanation, blocking=family not in LOSSY)


def round_trip_remedy(family: str) -> str:
    if family in LOSSY:
        return f"{family} does not keep all text, by its nature: take byte_bpe or a sentencepiece family if it must."
    cause = "The tokenizer's file changes text" if family == "pretrained" else "Some of the text has no token"
    other = "take another tokenizer" if family == "pretrained" else "use `alphabet: all_bytes`, or another family"
    return f"{cause}: {other}, or accept the loss with checks.warn: [round_trip]."


def agreement_verdict(report: dict[str, Any], blocking: bool) -> Verdict:
    found = report["normalization_agreement"]
    form = report["tokenizer"]["unicode"]
    passed = form == "none" or found["failures"] == 0
    if form == "none":
        explanation = "the tokenizer's file carries no unicode form: give it normalized text"
    else:
        explanation = (
            f"the tokenizer's file carries {form}: of {found['documents']} documents that normalization changed, "
            f"{found['failures']} get other ids from their raw text"
        )
    if not passed:
        named = ", ".join(f"“{printable(text[:SHOWN_CHARACTERS])}”" for text in found["examples"][:EXAMPLES])
        explanation += f": {named}. Give this tokenizer normalized text alone, as the shards have it, or train another."
    return Verdict("normalization_agreement", passed, float(found["failures"]), 0.0, explanation, blocking)


def pits_verdict(report: dict[str, Any], blocking: bool) -> Verdict:
    pretrained = report["tokenizer"]["family"] == "pretrained"
    failed = []
    for pit in report["pits"]:
        remedy = None if pretrained else REMEDIES.get(pit["name"])
        if not pit["passed"]:
            failed.append(f"{pit['name']}: {pit['explanation']}" + (f": {remedy}" if remedy else ""))
    explanation = "; ".join(failed) or f"none of {len(report['pits'])} common faults was found"
    if failed and pretrained:
        explanation += ". They are of the file: take another tokenizer, or live with them"
    return Verdict("pits", not failed, float(len(failed)), 0.0, explanation, blocking=blocking)
