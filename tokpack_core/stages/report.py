"""vocabulary_report/<tokenizer>: counts over the training sample, figures on the test splits, and the gate.

A unit counts one part: its share of the recorded training sample, or its test documents. The asset's object holds the
sums (`token_counts.parquet`, `language_counts.parquet`), `report.json` and `report.html`. Limits and verdicts are part
of neither: `verdicts` evaluates the stored figures against the current configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tokpack_core.config import ModelConfig, TokenizerConfig
from tokpack_core.corpus.content import per_text_block, text_blocks
from tokpack_core.errors import ConfigError, GateError, StoreError
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.stages.asset import Built, Workplace, current, finish, read_json, write_json
from tokpack_core.stages.normalize import CHANGED, Part, read_part
from tokpack_core.stages.report_checks import judge
from tokpack_core.stages.sample import SamplePart, corpus_parts, sample_texts, sampled_batches
from tokpack_core.stages.unit import Unit, run_units
from tokpack_core.store import actions, objects
from tokpack_core.store.actions import Action, library_versions
from tokpack_core.store.files import sha256_of
from tokpack_core.store.objects import ObjectFile, ObjectRef
from tokpack_core.store.store import Store
from tokpack_core.tokenizers.agreement.normalization import agrees_with_normalized
from tokpack_core.tokenizers.agreement.round_trip import EXAMPLES, RoundTrips
from tokpack_core.tokenizers.protocol import Tokenizer, describe
from tokpack_core.tokenizers.tiktoken.ranks import regex_of_ranks
from tokpack_core.verdict import Verdict
from tokpack_core.vocabulary.counting import text_counter
from tokpack_core.vocabulary.counts import TokenCounts
from tokpack_core.vocabulary.findings import findings
from tokpack_core.vocabulary.parallel_text import read_parallel
from tokpack_core.vocabulary.pits import pit_rows
from tokpack_core.vocabulary.report import build_report
from tokpack_core.vocabulary.report_page import render_page
from tokpack_core.vocabulary.scaling import USUAL_SHAPES, ModelShape
from tokpack_core.vocabulary.sizes import first_texts

STAGE = "vocabulary_report"
UNIT_STAGE = "token_counts"
VERSION = 14
REPORT, PAGE = "report.json", "report.html"
ROUND_TRIP_DOCUMENTS = 200
"""Documents of a part whose round trip is tried."""
AGREEMENT_DOCUMENTS = 1_000
"""Documents, of all, on which raw text is compared with normalized text."""


@dataclass(frozen=True)
class Inputs:
    """What a report is made from: counts of the sample and of the test splits, and the units of normalized text."""

    tokenizer: ObjectRef
    parallel: str | None
    """sha256"""
    sample: list[ObjectRef]
    test: list[ObjectRef]
    normalized: list[ObjectRef]

    def files(self) -> Iterator[ObjectFile]:
        yield from map(ObjectFile, [self.tokenizer, *self.sample, *self.test])
        yield from (ObjectFile(ref, CHANGED) for ref in self.normalized)

    def as_json(self) -> dict[str, Any]:
        lists = {"sample": self.sample, "test": self.test, "normalized": self.normalized}
        return {"tokenizer": str(self.tokenizer), "parallel": self.parallel} | {
            name: list(map(str, refs)) for name, refs in lists.items()
        }


@dataclass(frozen=True)
class Given:
    """What a report reads besides counts: the sample's documents, parallel text, and the model it is for.

    tried: objects of the test units with the keys of their actions, of which round trips are summed.
    """

    sample: list[SamplePart]
    seed: int
    tried: list[tuple[ObjectRef, str]]
    parallel: Path | None
    model: ModelConfig | None


def asset_key(tokenizer: str) -> str:
    return f"vocabulary_report/{tokenizer}"


def build(work: Workplace, tokenizer: str) -> Built:
    ref, folder = tokenizer_stage.current_tokenizer(work, tokenizer)
    seed = work.project.tokenizers[tokenizer].seed
    sample = tokenizer_stage.recorded_sample(work, tokenizer)
    parts = [part for corpus in work.project.training_corpora(tokenizer) for part in corpus_parts(work, corpus)]
    by_language = work.project.tokenizers[tokenizer].encode_by_language
    units = [sample_unit(work.store, ref, folder, part, seed, by_language) for part in sample]
    units += [test_unit(ref, folder, part, by_language) for part in parts]
    results = run_units(work.store, work.engine, units, work.on_progress)
    config = work.project.tokenizers[tokenizer]
    parallel = work.project.base / config.parallel if config.parallel else None
    read = Inputs(
        ref,
        parallel=require_parallel(parallel, tokenizer),
        sample=results.refs[: len(sample)],
        test=results.refs[len(sample) :],
        normalized=list(dict.fromkeys(part.object for part in parts)),
    )
    shaping = {"name": tokenizer} | parameters(config)
    action = Action(STAGE, VERSION, shaping, read.as_json(), library_versions(*tokenizer_stage.LIBRARIES))
    tried = [(ref, unit.action.key) for ref, unit in zip(results.refs, units, strict=True)][len(sample) :]
    given = Given(sample, seed, tried, parallel, config.model)
    drawn = (part.read for part in sample)
    unit = Unit(action, partial(write_report, work.store, tokenizer, read, given), reads=(*read.files(), *drawn))
    return finish(work, asset_key(tokenizer), unit, results)


def parameters(config: TokenizerConfig) -> dict[str, Any]:
    """What shapes a report besides the tokenizer and its text."""
    return {"model": config.model.model_dump() if config.model else None, "parallel": config.parallel}


def require_parallel(path: Path | None, tokenizer: str) -> str | None:
    """The sha256 of the parallel text. Raises ConfigError if there is no such file."""
    if path is None:
        return None
    if not path.is_file():
        raise ConfigError(f"tokenizers.{tokenizer}: there is no file {path}; correct `parallel` in the configuration")
    return sha256_of(path)


def sample_unit(
    store: Store, tokenizer: ObjectRef, folder: Path, part: SamplePart, seed: int, by_language: bool
) -> Unit:
    drawn = {"split": "train", "fraction": part.fraction, "seed": seed}
    action = count_action(tokenizer, part.sha256, drawn | by_language_parameter(by_language))
    counting = partial(count_sample, folder, part.path(store), part.fraction, seed, by_language)
    return Unit(action, counting, part.train_bytes, (ObjectFile(tokenizer), part.read))


def test_unit(tokenizer: ObjectRef, folder: Path, part: Part, by_language: bool) -> Unit:
    tried = {"split": "test", "round_trip_documents": ROUND_TRIP_DOCUMENTS}
    action = count_action(tokenizer, part.sha256, tried | by_language_parameter(by_language))
    reads = ObjectFile(tokenizer), part.file
    return Unit(action, partial(count_test, folder, part.path, by_language), part.split_bytes["test"], reads)


def by_language_parameter(by_language: bool) -> dict[str, bool]:
    """How text is counted that is not encoded by the whole vocabulary."""
    return {"by_language": True} if by_language else {}


def count_action(tokenizer: ObjectRef, part: str, parameters: dict[str, Any]) -> Action:
    inputs = {"tokenizer": str(tokenizer), "part": part}
    return Action(UNIT_STAGE, VERSION, parameters, inputs, library_versions(*tokenizer_stage.LIBRARIES, "pyarrow"))


def count_sample(
    tokenizer_folder: Path, part: Path, fraction: float, seed: int, by_language: bool, folder: Path
) -> dict[str, Any]:
    tokenizer = tokenizer_stage.load(tokenizer_folder)
    counter = text_counter(tokenizer, by_language)
    for batch in sampled_batches(part, fraction, seed, ["text", "lang"]):
        counter.add(text_blocks(batch), per_text_block(batch, "lang"))
    counts = counter.total()
    counts.write(folder)
    return {"tokens": int(counts.tokens.sum())}


def count_test(tokenizer_folder: Path, part: Path, by_language: bool, folder: Path) -> dict[str, Any]:
    tokenizer = tokenizer_stage.load(tokenizer_folder)
    counter = text_counter(tokenizer, by_language)
    trips = RoundTrips()
    for batch in read_part(part, ["id", "text", "lang", "split"]):
        chosen = batch.filter(pc.equal(batch["split"], "test"))
        counter.add(text_blocks(chosen), per_text_block(chosen, "lang"))
        tried = chosen.slice(0, ROUND_TRIP_DOCUMENTS - trips.documents)
        trips.add(tokenizer, tried["text"], partial(document_id, tried))
    counts = counter.total()
    counts.write(folder)
    return {"tokens": int(counts.tokens.sum()), "round_trip": trips.as_json()}


def document_id(batch: pa.RecordBatch, row: int) -> str:
    return str(batch["id"][row].as_py())


def write_report(store: Store, name: str, read: Inputs, given: Given, folder: Path) -> dict[str, Any]:
    tokenizer = tokenizer_stage.load(objects.folder_of(store, read.tokenizer))
    sample, test = (sum_counts(store, refs, tokenizer.vocab_size) for refs in (read.sample, read.test))
    facts = describe(tokenizer) | regex_of_ranks(tokenizer) | {"digest": str(read.tokenizer)}
    report = build_report(
        name,
        facts,
        tokenizer.vocabulary(),
        sample,
        test,
        tokenizer,
        first_texts(sample_texts(store, given.sample, given.seed)),
        read_parallel(given.parallel) if given.parallel else None,
        model_shapes(given.model),
    )
    report["round_trip"] = sum_round_trips(store, given.tried)
    report["normalization_agreement"] = judge_agreement(store, tokenizer, read.normalized)
    report["pits"] = pit_rows(tokenizer, [row["lang"] for row in report["sample"]["languages"]])
    report["findings"] = [finding.as_json() for finding in findings(report)]
    write_json(folder / REPORT, report)
    (folder / PAGE).write_text(render_page(report), encoding="utf-8")
    sample.write(folder)
    return {"tokenizer": str(read.tokenizer), "sample_tokens": int(sample.tokens.sum())}


def model_shapes(model: ModelConfig | None) -> Sequence[ModelShape]:
    return [ModelShape("configured", model.parameters, model.d_model)] if model else USUAL_SHAPES


def judge_agreement(store: Store, tokenizer: Tokenizer, normalized: list[ObjectRef]) -> dict[str, Any]:
    """Whether raw text gets the ids of normalized text, on documents that the unicode form changed."""
    tried = 0
    failures: list[str] = []
    for ref in normalized if tokenizer.unicode != "none" else []:
        table = pq.ParquetFile(objects.folder_of(store, ref) / CHANGED).read()
        batch = table.slice(0, AGREEMENT_DOCUMENTS - tried).combine_chunks()
        raw, expected = (batch[name].combine_chunks() for name in ("cleaned", "normalized"))
        failures += [expected[row].as_py() for row in agrees_with_normalized(tokenizer, raw, expected)]
        tried += batch.num_rows
    return {"documents": tried, "failures": len(failures), "examples": [text[:200] for text in failures[:5]]}


def sum_counts(store: Store, refs: Iterable[ObjectRef], vocab_size: int) -> TokenCounts:
    total = TokenCounts.zero(vocab_size)
    for ref in refs:
        total += TokenCounts.read(objects.folder_of(store, ref))
    return total


def sum_round_trips(store: Store, tried: Iterable[tuple[ObjectRef, str]]) -> dict[str, Any]:
    """Of the counts of the test splits, each given with the key of its action."""
    found = [actions.counts_of(store, ref, key)["round_trip"] for ref, key in tried]
    examples = [example for one in found for example in one["examples"]]
    totals = {name: sum(one[name] for one in found) for name in ("documents", "failures")}
    return totals | {"examples": examples[:EXAMPLES]}


def verdicts(work: Workplace, tokenizer: str) -> list[Verdict]:
    """The stored figures of the newest report against the current limits.

    Raises:
        StoreError: there is no report, or it is one of another version of the tokenizer.
    """
    _, folder = current(work, asset_key(tokenizer))
    report = read_json(folder / REPORT)
    tokenizer_ref, _ = tokenizer_stage.current_tokenizer(work, tokenizer)
    if report["tokenizer"]["digest"] != str(tokenizer_ref):
        raise StoreError(
            f"vocabulary_report/{tokenizer} is of another version of the tokenizer; "
            f"run `tokpack build vocabulary_report/{tokenizer}`"
        )
    return judge(report, work.project.tokenizers[tokenizer].checks)


def require_passed(work: Workplace, tokenizer: str) -> None:
    """The gate before the shards.

    Raises:
        GateError: a figure is beyond its limit.
    """
    failed = [verdict for verdict in verdicts(work, tokenizer) if verdict.blocking and not verdict.passed]
    if failed:
        raise GateError(f"vocabulary_report/{tokenizer} stops here: " + " ".join(v.explanation for v in failed))
