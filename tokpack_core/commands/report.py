"""`tokpack report`: how a tokenizer's vocabulary is used by the text of plain files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tokpack_core.commands.opened_tokenizer import OpenedTokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.progress import progress
from tokpack_core.commands.reading import Reading, normalized
from tokpack_core.commands.run_manifest import describe_file, write_manifest
from tokpack_core.corpus.content import per_text_block, text_blocks
from tokpack_core.errors import InputError
from tokpack_core.stages.asset import write_json
from tokpack_core.tokenizers.agreement.round_trip import RoundTrips, place_of
from tokpack_core.vocabulary.counting import text_counter
from tokpack_core.vocabulary.counts import TokenCounts
from tokpack_core.vocabulary.findings import findings
from tokpack_core.vocabulary.parallel_text import read_parallel
from tokpack_core.vocabulary.pits import pit_rows
from tokpack_core.vocabulary.report import Report, build_report
from tokpack_core.vocabulary.report_page import render_page
from tokpack_core.vocabulary.scaling import USUAL_SHAPES, ModelShape
from tokpack_core.vocabulary.sizes import SIZE_BYTES, first_texts

ROUND_TRIP_DOCUMENTS = 1_000


@dataclass(frozen=True)
class Options:
    """What a report may hold besides the text: parallel text, and the model that the tokenizer is for."""

    parallel: Path | None = None
    shape: ModelShape | None = None

    def parameters(self) -> dict[str, Any]:
        shape = {"parameters": self.shape.parameters, "d_model": self.shape.d_model} if self.shape else None
        return {"parallel": str(self.parallel.absolute()) if self.parallel else None, "model": shape}


def model_shape(parameters: float | None, d_model: int | None) -> ModelShape | None:
    """Raises InputError when one is given without the other."""
    if parameters is None and d_model is None:
        return None
    if parameters is None or d_model is None:
        raise InputError("--parameters and --d-model describe one model: give both")
    return ModelShape("given", parameters, d_model)


def report(opened: OpenedTokenizer, reading: Reading, options: Options, output: Path, quiet: bool) -> dict[str, Any]:
    """Writes the folder `output` with report.json and report.html, and its manifest; returns the manifest.

    All text counts as the sample; there is no test text.

    Raises:
        InputError: text cannot be read, or the output exists.
    """
    with new_output(output, ("", MANIFEST_ENDING)) as draft:
        draft.mkdir()
        content = measure(opened, reading, options, quiet)
        write_json(draft / "report.json", content)
        (draft / "report.html").write_text(render_page(content), encoding="utf-8")
        counts = headline(content) | {"reading": reading.as_json()}
        parameters = reading.parameters() | options.parameters()
        inputs = reading.inputs + ([describe_file(options.parallel)] if options.parallel else [])
        return write_manifest(draft, "report", parameters, inputs, counts, opened.as_json())


def measure(opened: OpenedTokenizer, reading: Reading, options: Options, quiet: bool) -> Report:
    tokenizer = opened.tokenizer
    parallel = read_parallel(options.parallel) if options.parallel else None
    counter = text_counter(tokenizer)
    first: list[pa.Array] = []
    trips = RoundTrips()
    with progress("counting", reading.bytes, "B", quiet) as on_done:
        for batch in normalized(reading.batches(on_done), tokenizer.unicode):
            texts = text_blocks(batch)
            counter.add(texts, per_text_block(batch, "lang"))
            if sum(part.nbytes for part in first) < SIZE_BYTES:
                first.append(first_texts([texts]))
            tried = batch.slice(0, ROUND_TRIP_DOCUMENTS - trips.documents)
            trips.add(tokenizer, tried["text"], partial(document_name, tried, reading.inputs[-1]["path"]))
    facts = opened.as_json()
    named = ("family", "vocab_size", "special_tokens", "unicode", "pretokenizer", "digest")
    described = {name: facts[name] for name in named if name in facts}
    nothing = TokenCounts.zero(tokenizer.vocab_size)
    name = opened.path.resolve().name
    content = build_report(
        name,
        described,
        tokenizer.vocabulary(),
        counter.total(),
        nothing,
        tokenizer,
        first_texts(first),
        parallel,
        [options.shape] if options.shape else USUAL_SHAPES,
    )
    content["round_trip"] = trips.as_json()
    content["pits"] = pit_rows(tokenizer, [row["lang"] for row in content["sample"]["languages"]])
    content["findings"] = [finding.as_json() for finding in findings(content)]
    return content


def verdict(pit: dict[str, Any]) -> str:
    return f"{'passed' if pit['passed'] else 'FAILED'}: {pit['explanation']}"


def document_name(batch: pa.RecordBatch, path: str, row: int) -> str:
    named = batch["id"][row].as_py()
    return named if named is not None else f"{Path(path).name}, document {batch['row'][row].as_py()}"


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
        "round_trip": content["round_trip"] | {"examples": list(map(place_of, content["round_trip"]["examples"]))},
        "pits": {pit["name"]: verdict(pit) for pit in content["pits"]},
    }
