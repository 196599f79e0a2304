"""Judges a stored report by today's limits.

Nothing here is stored: a verdict is worked out from the report's figures and the configuration whenever it is needed.
"""

from __future__ import annotations

import math

import numpy as np

from tokpack_core.config import TokenizerChecks
from tokpack_core.verdict import Verdict
from tokpack_core.vocabulary.number_format import percent
from tokpack_core.vocabulary.report import Report, token_bytes
from tokpack_core.vocabulary.visible import visible

EXAMPLES = 5


def evaluate(report: Report, checks: TokenizerChecks) -> list[Verdict]:
    """Verdicts `rare_token_share`, `vocabulary_utilization` (both over the training sample), `unreachable_tokens`, and
    `fairness` where it has a limit, in this order."""
    verdicts = [judge_rare_tokens(report, checks), judge_utilization(report, checks), judge_unreachable(report, checks)]
    return verdicts if checks.max_premium is None else [*verdicts, judge_fairness(report, checks.max_premium)]


def judge_rare_tokens(report: Report, checks: TokenizerChecks) -> Verdict:
    """Passes when at most `max_rare_token_share` of the entries were seen fewer than `rare_below` times."""
    entries = report["vocabulary"]["entries"]
    rare = sum(report["sample"]["frequency_of_frequencies"][: checks.rare_below])
    limit = checks.max_rare_token_share
    passed = rare / entries <= limit
    times = f"fewer than {checks.rare_below} times" if checks.rare_below > 1 else "not once"
    return Verdict(
        name="rare_token_share",
        passed=passed,
        value=rare / entries,
        limit=limit,
        explanation=(
            f"{rare:,} of {entries:,} entries ({percent(rare / entries)}) were seen {times} in the training sample; "
            f"at most {percent(limit)} may be{examples(report, checks.rare_below)}. "
            + ("" if passed else remedy(report, entries - rare, 1 - limit))
        ).strip(),
    )


def judge_utilization(report: Report, checks: TokenizerChecks) -> Verdict:
    """Passes when at least `min_vocabulary_utilization` of the entries were seen."""
    entries = report["vocabulary"]["entries"]
    seen = entries - report["sample"]["frequency_of_frequencies"][0]
    limit = checks.min_vocabulary_utilization
    passed = seen / entries >= limit
    return Verdict(
        name="vocabulary_utilization",
        passed=passed,
        value=seen / entries,
        limit=limit,
        explanation=(
            f"{seen:,} of {entries:,} entries ({percent(seen / entries)}) occur in the training sample; "
            f"at least {percent(limit)} must{examples(report, 1)}. " + ("" if passed else remedy(report, seen, limit))
        ).strip(),
    )


def judge_unreachable(report: Report, checks: TokenizerChecks) -> Verdict:
    """Passes when at most `max_unreachable_share` of the entries never come out of encoding."""
    found, entries = report["structure"]["unreachable"], report["vocabulary"]["entries"]
    share, limit = found["entries"] / entries, checks.max_unreachable_share
    names = named(report, [example["id"] for example in found["examples"][:EXAMPLES]])
    passed = share <= limit
    return Verdict(
        name="unreachable_tokens",
        passed=passed,
        value=share,
        limit=limit,
        explanation=(
            f"{found['entries']:,} of {entries:,} entries ({percent(share)}) come out of no text; at most "
            f"{percent(limit)} may{f', such as {names}' if names else ''}."
            + ("" if passed else " Remove them with `tokpack prune`, or correct pretokenizer and normalizer.")
        ),
    )


def judge_fairness(report: Report, limit: float) -> Verdict:
    """Passes when no language of the parallel text takes more than `limit` times the tokens of the reference."""
    fair = report["fairness"]
    if fair is None:
        explanation = "there is no parallel text in this report: build it again with `parallel`"
        return Verdict("fairness", False, 0.0, limit, explanation)
    over = [f"{row['lang']} {row['premium']:.2f} ×" for row in fair["languages"] if row["premium"] > limit]
    worst = fair["languages"][0]
    return Verdict(
        name="fairness",
        passed=not over,
        value=worst["premium"],
        limit=limit,
        explanation=(
            f"the same sentences take {worst['premium']:.2f} × the tokens of {fair['reference']} in {worst['lang']}; "
            f"at most {limit:g} × may be"
            + (f", over it: {', '.join(over[:EXAMPLES])}. Give them more of train_on." if over else ".")
        ),
    )


def examples(report: Report, below: int) -> str:
    """The first few of the rarest entries seen fewer than `below` times, as the end of a clause."""
    offenders = [entry for entry in report["rarest"] if entry["count"] < below][:EXAMPLES]
    if not offenders:
        return ""
    return f", rarest: {named(report, [entry['id'] for entry in offenders])}"


def named(report: Report, ids: list[int]) -> str:
    """Tokens as people see them, with their ids."""
    rows = np.searchsorted(report["tokens"]["id"], ids)
    tokens = (visible(token_bytes(report["tokens"]["token"][row])) for row in rows)
    return ", ".join(f"{token} (id {number})" for token, number in zip(tokens, ids, strict=True))


def remedy(report: Report, used: int, used_share: float) -> str:
    """What to change so that the `used` entries become at least `used_share` of all."""
    if report["sample"]["tokens"] == 0:
        return "The sample holds no tokens: check what train_on names."
    if report["tokenizer"].get("family") in ("pretrained", "minimum_cost"):
        return "Judge it on text it is for (train_on, sample_bytes), or change its limit (checks) or the tokenizer."
    vocabulary = report["vocabulary"]
    size = vocabulary["special"] + math.floor(used / used_share)
    irreducible = vocabulary["special"] + vocabulary["kinds"]["single_byte"] + vocabulary["kinds"]["byte_fallback"]
    if size <= irreducible:
        return "Enlarge the sample (sample_bytes, train_on): at any vocab_size most entries would be bytes."
    return f"Lower vocab_size to about {size:,}, or enlarge the sample (sample_bytes, train_on)."
