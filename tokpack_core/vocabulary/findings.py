"""The five findings of a report that matter most, each with its evidence and what to do about it.

Findings read figures and no limits, so a report can hold them; whether a figure passes is for `gates` to say. The most
serious come first: `bad` loses text or wastes much, `warn` is worth a change, `note` is worth knowing, `good` needs
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokpack_core.vocabulary.number_format import percent
from tokpack_core.vocabulary.rare_tokens import REASONS
from tokpack_core.vocabulary.report import Report, token_bytes
from tokpack_core.vocabulary.utilization import SPECIAL
from tokpack_core.vocabulary.visible import visible

SEVERITIES = ("bad", "warn", "note", "good")
SHOWN = 5
MANY_RARE, SOME_RARE = 0.10, 0.03
HIGH_PREMIUM, NOTABLE_PREMIUM = 3.0, 1.5
MANY_RESIDUES, MANY_ABSENT = 0.05, 0.01
EXAMPLES = 4


@dataclass(frozen=True)
class Finding:
    severity: str
    title: str
    evidence: str
    action: str

    def as_json(self) -> dict[str, str]:
        return vars(self).copy()


def findings(report: Report) -> list[Finding]:
    """At most SHOWN, the most serious first; of equals, in the order of the questions below."""
    found = [
        finding
        for ask in (injected, lost, rare, unreachable, unfair, unsaturated, foreign_scripts, leftover, numbers, model)
        for finding in ask(report)
    ]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))[:SHOWN]


def injected(report: Report) -> Iterator[Finding]:
    robust = report["robustness"]
    if robust and robust["injection"]["matched"]:
        names = ", ".join(visible(row["text"]) for row in robust["injection"]["matched"][:EXAMPLES])
        yield Finding(
            "bad",
            "Text can inject special tokens",
            f"The strings {names} in ordinary text give the ids of special tokens, so whoever writes a document can "
            "end or forge one.",
            "Encode with special tokens off, or rename them to strings that text does not hold.",
        )


def lost(report: Report) -> Iterator[Finding]:
    robust, trip = report["robustness"], report.get("round_trip") or {"failures": 0, "documents": 0}
    if not robust:
        return
    failed = [row["name"] for part in ("layout", "hostile") for row in robust[part]["failures"]]
    strings = robust["layout"]["strings"] + robust["hostile"]["strings"]
    if failed or trip["failures"]:
        names = ", ".join(failed[:EXAMPLES]) + (" …" if len(failed) > EXAMPLES else "")
        yield Finding(
            "bad" if trip["failures"] or robust["layout"]["failures"] else "warn",
            "Text is lost",
            f"{trip['failures']:,} of {trip['documents']:,} documents and {len(failed)} of {strings} hard strings do "
            f"not come back from encode and decode{': ' + names if names else ''}.",
            "Take a family that keeps all bytes (byte_bpe), or byte fallback and no clean-up of white space.",
        )
    else:
        yield Finding(
            "good",
            "No text is lost",
            f"All of {trip['documents']:,} documents and {strings} hard strings (indentation, line ends, invisible and "
            "rare characters) come back from encode and decode.",
            "Nothing to do.",
        )


def rare(report: Report) -> Iterator[Finding]:
    entries, row = report["vocabulary"]["entries"], next(row for row in report["rare"] if row["below"] == 5)
    if not report["sample"]["tokens"]:
        return
    reason = max(row["reasons"], key=lambda name: row["reasons"][name])
    severity = "bad" if row["share"] > MANY_RARE else "warn" if row["share"] > SOME_RARE else "good"
    evidence = (
        f"{row['entries']:,} of {entries:,} entries ({percent(row['share'])}) are seen fewer than 5 times in the sample"
        + (f", most of them {REASON_WORDS[reason]}" if row["entries"] else "")
        + f"; without them the text would take {percent(row['removal_share'] or 0.0)} more tokens."
    )
    if severity == "good":
        yield Finding(severity, "The vocabulary is used", evidence, "Nothing to do.")
        return
    smaller = report["vocabulary"]["special"] + entries - row["entries"]
    advice = {
        "unreachable": "Remove them with `tokpack prune`.",
        "reserved": "They are kept free on purpose; leave them out of the judgement.",
        "absent_script": "Add text of their scripts to train_on, or prune them.",
        "byte_fragment": "Bytes stay at any size; a larger sample dilutes them.",
    }
    action = advice.get(reason, f"Lower vocab_size to about {smaller:,}, or train on more text (sample_bytes).")
    yield Finding(severity, "Part of the vocabulary is hardly used", evidence, action)


REASON_WORDS = {
    "reserved": "reserved names",
    "byte_fragment": "bytes that are no whole characters",
    "unreachable": "unreachable",
    "residue": "steps on the way to longer tokens",
    "absent_script": "of scripts that the sample lacks",
    "seldom": "words that the text just does not hold",
}


def unreachable(report: Report) -> Iterator[Finding]:
    found = report["structure"]["unreachable"]
    if found["entries"]:
        rows = {token: row for row, token in enumerate(report["tokens"]["id"])}
        tokens = (report["tokens"]["token"][rows[example["id"]]] for example in found["examples"][:EXAMPLES])
        names = ", ".join(visible(token_bytes(token)) for token in tokens)
        share = found["entries"] / report["vocabulary"]["entries"]
        yield Finding(
            "bad" if share > MANY_ABSENT else "warn",
            "Some tokens can never occur",
            f"{found['entries']:,} entries never come out of encoding their own text{': ' + names if names else ''}.",
            "Remove them with `tokpack prune`; if many, pretokenizer or normalizer are not those of training.",
        )


def unfair(report: Report) -> Iterator[Finding]:
    fair = report["fairness"]
    if fair is None:
        return
    worst = fair["languages"][0]
    base = next(row for row in fair["languages"] if row["lang"] == fair["reference"])
    held, others = worst["sentences_in_context"][0], base["sentences_in_context"][0]
    severity = "warn" if worst["premium"] > NOTABLE_PREMIUM else "good"
    yield Finding(
        "bad" if worst["premium"] > HIGH_PREMIUM else severity,
        f"The same content costs {worst['premium']:.1f} × in {worst['lang']}",
        f"On {worst['sentences']:,} parallel sentences {worst['lang']} takes {worst['premium']:.2f} × the tokens of "
        f"{fair['reference']} (95 % interval {worst['low']:.2f} to {worst['high']:.2f}): a context of "
        f"{fair['contexts'][0]:,} holds {held:,} sentences in place of {others:,}. Gini {fair['gini']:.2f}.",
        "Nothing to do."
        if severity == "good"
        else f"Give {worst['lang']} a larger share of train_on, or a larger vocabulary.",
    )


def unsaturated(report: Report) -> Iterator[Finding]:
    growth, entries = report["growth"], report["vocabulary"]["entries"]
    if not report["sample"]["tokens"]:
        return
    evidence = (
        f"As much text again would show about {growth['new_if_doubled']:,.0f} entries for the first time "
        f"({percent(growth['new_if_doubled'] / entries)} of all)."
    )
    if growth["saturated"]:
        yield Finding("good", "The sample is large enough to judge by", evidence, "Nothing to do.")
    else:
        yield Finding("warn", "The sample is too small to judge by", evidence, "Raise sample_bytes, or add corpora.")


def foreign_scripts(report: Report) -> Iterator[Finding]:
    entries = report["vocabulary"]["entries"]
    row = next(row for row in report["rare"] if row["below"] == 5)
    absent = row["reasons"]["absent_script"]
    if report["sample"]["tokens"] and absent / entries > MANY_ABSENT:
        yield Finding(
            "warn",
            "The vocabulary has scripts that the text has not",
            f"{absent:,} entries are of scripts that the sample lacks: {', '.join(absent_scripts(report)[:EXAMPLES])}.",
            "Add such text to train_on, or remove the entries with `tokpack prune`.",
        )


def absent_scripts(report: Report) -> list[str]:
    """Scripts of entries whose reason is that the sample lacks their script, those of most entries first."""
    tokens, names = report["tokens"], report["scripts"]
    script, why, kind = (np.array(tokens[column]) for column in ("script", "reason", "kind"))
    entries = np.bincount(script[(why == REASONS.index("absent_script")) & (kind != SPECIAL)], minlength=len(names))
    order = np.argsort(-entries, kind="stable")
    return [names[place].replace("_", " ") for place in order.tolist() if entries[place]]


def leftover(report: Report) -> Iterator[Finding]:
    residues = report["structure"]["residues"]
    if residues and residues["entries"]:
        yield Finding(
            "warn" if residues["share"] > MANY_RESIDUES else "note",
            "Entries that are only steps to longer ones",
            f"Merges nearly always consume {residues['entries']:,} entries ({percent(residues['share'])}).",
            "`tokpack litetoken` keeps them out of encoded text; a trainer that drops them (PickyBPE) wins places.",
        )


def numbers(report: Report) -> Iterator[Finding]:
    policy = report["structure"]["digits"]["policy"]
    if policy == "left to the merges":
        yield Finding(
            "note",
            "Numbers are cut as the merges fall",
            f"{report['structure']['digits']['entries']:,} entries are digits alone, of any length.",
            "For arithmetic take a pretokenizer that groups digits (cl100k, o200k: three; qwen2: one).",
        )
    elif policy:
        text = f"{report['structure']['digits']['entries']:,} entries are digits alone."
        yield Finding("good", f"Numbers are cut in {policy}", text, "Nothing to do.")


def model(report: Report) -> Iterator[Finding]:
    row: dict[str, Any] = report["models"][len(report["models"]) // 2]
    size, best = report["vocabulary"]["size"], row["optimal_vocabulary"]
    far = best > 2 * size or size > 2 * best
    name = "the model" if len(report["models"]) == 1 else f"a model of {row['model']}"
    yield Finding(
        "note",
        f"For {name}, scaling laws advise {best:,} entries",
        f"With d_model {row['d_model']:,} the {size:,} entries are {percent(row['embedding_share'])} of parameters.",
        f"Consider a {'larger' if best > size else 'smaller'} vocabulary for it." if far else "The size is near.",
    )
