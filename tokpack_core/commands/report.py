"""`tokpack report`: how a tokenizer's vocabulary is used by the text of plain files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokpack_core.commands.opened_tokenizer import OpenedTokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.progress import progress
from tokpack_core.commands.reading import Reading, normalized
from tokpack_core.commands.run_manifest import write_manifest
from tokpack_core.corpus.content import per_text_block, text_blocks
from tokpack_core.stages.asset import write_json
from tokpack_core.tokenizers.round_trip import round_trip_failures
from tokpack_core.vocabulary.counting import text_counter
from tokpack_core.vocabulary.counts import TokenCounts
from tokpack_core.vocabulary.pits import pit_rows
from tokpack_core.vocabulary.report import Report, build_report
from tokpack_core.vocabulary.report_page import render_page

ROUND_TRIP_DOCUMENTS = 1_000


def report(opened: OpenedTokenizer, reading: Reading, output: Path, quiet: bool) -> dict[str, Any]:
    """Writes the folder `output` with report.json and report.html, and its manifest; returns the manifest.

    All text counts as the sample; there is no test text.

    Raises:
        InputError: text cannot be read, or the output exists.
    """
    with new_output(output, ("", MANIFEST_ENDING)) as draft:
        draft.mkdir()
        content = measure(opened, reading, quiet)
        write_json(draft / "report.json", content)
        (draft / "report.html").write_text(render_page(content), encoding="utf-8")
        counts = headline(content) | {"reading": reading.problems.to_json()}
        return write_manifest(draft, "report", reading.parameters(), reading.inputs, counts, opened.as_json())


def measure(opened: OpenedTokenizer, reading: Reading, quiet: bool) -> Report:
    tokenizer = opened.tokenizer
    counter = text_counter(tokenizer)
    tried = failures = 0
    with progress("counting", reading.bytes, "B", quiet) as on_done:
        for batch in normalized(reading.batches(on_done), tokenizer.unicode):
            counter.add(text_blocks(batch), per_text_block(batch, "lang"))
            tried_now = batch["text"].slice(0, ROUND_TRIP_DOCUMENTS - tried)
            failures += len(round_trip_failures(tokenizer, tried_now))
            tried += len(tried_now)
    facts = opened.as_json()
    described = {name: facts[name] for name in ("family", "vocab_size", "special_tokens", "unicode", "digest")}
    nothing = TokenCounts.zero(tokenizer.vocab_size)
    name = opened.path.resolve().name
    content = build_report(name, described, tokenizer.vocabulary(), counter.total(), nothing, tokenizer=tokenizer)
    content["round_trip"] = {"documents": tried, "failures": failures}
    content["pits"] = pit_rows(tokenizer, [row["lang"] for row in content["sample"]["languages"]])
    return content


def headline(content: Report) -> dict[str, Any]:
    sample = content["sample"]
    return {
        "documents": sample["documents"],
        "bytes": sample["bytes"],
        "tokens": sample["tokens"],
        "bytes_per_token": sample["bytes_per_token"],
        "bytes_per_token_by_language": {row["lang"] or "none": row["bytes_per_token"] for row in sample["languages"]},
        "vocabulary_utilization": sample["vocabulary_utilization"],
        "rare_token_share": {f"below_{row['below']}": row["share"] for row in sample["rare"]},
        "round_trip": content["round_trip"],
        "pits": {pit["name"]: pit["explanation"] for pit in content["pits"] if not pit["passed"]},
    }
