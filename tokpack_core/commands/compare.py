"""`tokpack compare`: tokenizers against one another on held-out files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.commands.opened_tokenizer import OpenedTokenizer, open_tokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.progress import OnDone, progress
from tokpack_core.commands.reading import Reading, normalized
from tokpack_core.commands.run_manifest import describe_file, write_manifest
from tokpack_core.commands.train import texts, train_config
from tokpack_core.comparison.comparison import Comparison, compare
from tokpack_core.comparison.comparison_page import render_comparison
from tokpack_core.comparison.findings import findings
from tokpack_core.comparison.held_out import Candidate, HeldOut, measure
from tokpack_core.comparison.morphemes import read_gold_words
from tokpack_core.comparison.sweep import Trained, sweep
from tokpack_core.comparison.tables import tables
from tokpack_core.config import UnicodeForm
from tokpack_core.config.families import DERIVED, MODULAR, Family
from tokpack_core.errors import InputError
from tokpack_core.stages.asset import write_json
from tokpack_core.tokenizers import registry
from tokpack_core.vocabulary.parallel_text import read_parallel

FORM: UnicodeForm = "nfc"
SWEPT = ("byte_bpe", "wordpiece", "sentencepiece_unigram")
DOCUMENTS = pa.schema([("text", pa.large_string()), ("lang", pa.string())])
SEEDED = "seeded_unigram"
"""sentencepiece_unigram that starts from a vocabulary of one's own."""
SWEEPABLE = (*(one for one in get_args(Family) if one not in (*DERIVED, *MODULAR, "pretrained")), SEEDED)


@dataclass(frozen=True)
class Extras:
    """What is compared besides the tokens of the held-out text.

    seeds, model_bytes: of the small models, none for 0 seeds; sizes, families: of the sweep, which trains on the files
    of `training`.
    """

    parallel: Path | None = None
    morphemes: Path | None = None
    seeds: int = 0
    model_bytes: int = 0
    sizes: tuple[int, ...] = ()
    families: tuple[str, ...] = ()
    training: Reading | None = None
    seed_vocabulary: Path | None = None

    def files(self) -> list[Path]:
        return [path for path in (self.parallel, self.morphemes, self.seed_vocabulary) if path]


def compare_files(
    named: dict[str, OpenedTokenizer], baseline: str, reading: Reading, extras: Extras, output: Path, quiet: bool
) -> dict[str, Any]:
    """Writes the folder `output` with comparison.json, comparison.html and a .csv a table; returns the manifest.

    Raises:
        InputError: text cannot be read, or is none for one of the tokenizers, a size of the sweep cannot be trained,
            or the output exists.
    """
    with new_output(output, ("", MANIFEST_ENDING)) as draft:
        draft.mkdir()
        candidates = [Candidate(name, opened.tokenizer) for name, opened in named.items()]
        trained = train_sweep(extras, quiet)
        others = [one for one, _ in trained]
        kept = KeptDocuments(extras.model_bytes if extras.seeds else 0)
        with progress("measuring", reading.bytes, "B", quiet) as on_done:
            batches = kept.passing(normalized(reading.batches(on_done), FORM))
            held_out = measure([*candidates, *others], batches)
        comparison = compare_all(candidates, baseline, held_out, trained, kept.documents(), extras, quiet)
        write_outputs(draft, comparison)
        inputs = reading.inputs + [describe_file(path) for path in extras.files()]
        inputs += extras.training.inputs if extras.training else []
        described = {name: opened.as_json() for name, opened in named.items()}
        parameters = {"tokenizers": described, "baseline": baseline} | reading.parameters()
        counts = {"documents": comparison["documents"], "bytes": comparison["bytes"], "findings": findings(comparison)}
        return write_manifest(draft, "compare", parameters, inputs, counts | {"reading": reading.as_json()})


def compare_all(
    candidates: list[Candidate],
    baseline: str,
    held_out: HeldOut,
    trained: list[tuple[Candidate, Trained]],
    model_documents: pa.Table,
    extras: Extras,
    quiet: bool,
) -> Comparison:
    parallel = read_parallel(extras.parallel) if extras.parallel else None
    gold = read_gold_words(extras.morphemes) if extras.morphemes else None
    if not candidates:
        candidates = [one for one, _ in trained]
    comparison = compare(candidates, held_out, baseline or candidates[0].name, parallel, gold)
    if trained:
        comparison["sweep"] = sweep(trained, held_out)
    if extras.seeds:
        lossy = frozenset(candidate.name for candidate in candidates if candidate.name not in held_out.fewest)
        comparison["small_model"] = small_models(
            candidates, model_documents, extras.seeds, comparison["baseline"], lossy, quiet
        )
    return comparison


def small_models(
    candidates: list[Candidate], documents: pa.Table, seeds: int, baseline: str, lossy: frozenset[str], quiet: bool
) -> list[dict[str, Any]]:
    try:
        from tokpack_core.comparison.small_model import small_model_rows
    except ImportError:
        raise InputError("--model-seeds needs torch: pip install 'tokpack[train]'") from None
    total = int(pc.sum(pc.binary_length(documents["text"])).as_py() or 0) * seeds * len(candidates)
    with progress("training small models", total, "B", quiet) as on_done:
        done = Sum(on_done)
        return small_model_rows(candidates, documents, seeds, baseline, lossy, done.add)


class Sum:
    """Tells how much there is so far, of amounts that it is told one by one."""

    def __init__(self, on_done: OnDone) -> None:
        self._on_done = on_done
        self._done = 0

    def add(self, amount: int) -> None:
        self._done += amount
        self._on_done(self._done)


def write_outputs(folder: Path, comparison: Comparison) -> None:
    write_json(folder / "comparison.json", comparison)
    (folder / "comparison.html").write_text(render_comparison(comparison), encoding="utf-8")
    for name, table in tables(comparison).items():
        table.to_csv(folder / f"{name}.csv", index=False)


class KeptDocuments:
    """The first documents that pass by, up to an amount of bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: list[pa.Table] = []
        self._bytes = 0

    def passing(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if self._bytes < self._limit:
                self._kept.append(pa.Table.from_batches([batch.select(["text", "lang"])]).cast(DOCUMENTS))
                self._bytes += batch["text"].nbytes
            yield batch

    def documents(self) -> pa.Table:
        """Of DOCUMENTS."""
        whole = pa.concat_tables([DOCUMENTS.empty_table(), *self._kept])
        sizes = pc.binary_length(whole["text"]).to_numpy()
        return whole.slice(0, int((np.cumsum(sizes) <= self._limit).sum()))


def train_sweep(extras: Extras, quiet: bool) -> list[tuple[Candidate, Trained]]:
    """Every family at every size, each trained on all of the training files."""
    if extras.training is None:
        return []
    trained = []
    for size in extras.sizes:
        for family in extras.families:
            reading = Reading(extras.training.files, extras.training.options, extras.training.lang)
            name = f"{family}_{size}"
            with progress(f"training {name}", reading.bytes, "B", quiet) as on_done:
                seeds = {"seed_vocabulary": str(extras.seed_vocabulary)} if family == SEEDED else {}
                try:
                    config = train_config("sentencepiece_unigram" if seeds else family, size, [], seeds)
                    tokenizer = registry.train(config, texts(reading, FORM, on_done), FORM)
                except InputError as error:
                    raise InputError(f"{family} of --sweep-size {size}: {error}") from None
            trained.append((Candidate(name, tokenizer), Trained(name, family, size)))
            extras.training.inputs[:] = reading.inputs
    return trained


def swept_families(named: list[str] | None, seed_vocabulary: Path | None) -> tuple[str, ...]:
    """Raises InputError for a family that the sweep does not train, and for a seeded one without seeds."""
    families = tuple(dict.fromkeys(named or SWEPT))
    for family in families:
        if family not in SWEEPABLE:
            raise InputError(f"--sweep-family {family}: the sweep trains {', '.join(SWEEPABLE)}")
    if seed_vocabulary is not None and SEEDED not in families:
        families = (*families, SEEDED)
    if SEEDED in families and seed_vocabulary is None:
        raise InputError(f"{SEEDED} starts from entries of yours: name their file with --sweep-seeds")
    return families


def open_candidates(named: Sequence[str], pretokenizer: str | None = None) -> dict[str, OpenedTokenizer]:
    """Tokenizers by name, from `NAME=PATH` or a path alone, whose last part is the name.

    `pretokenizer`: the regex of those that are bare rank files.

    Raises InputError for a name given twice or a path without a tokenizer.
    """
    found: dict[str, OpenedTokenizer] = {}
    for text in named:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            name, path = Path(text).resolve().name, text
        if name in found:
            raise InputError(f"two tokenizers are named {name}: give one another name, as NAME=PATH")
        regex = pretokenizer if registry.is_bare_rank_file(Path(path)) else None
        found[name] = open_tokenizer(Path(path), pretokenizer=regex)
    return found
