"""The training sample of a tokenizer: which documents of which parts, and the text of them as a stream.

From each corpus, documents of the train split are kept by a keyed hash of their id with the probability that gives
its share of `sample_bytes`, or all of them when there are fewer: the choice of one document depends on no other.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.corpus.content import has_content, per_text_block, text_blocks
from tokpack_core.corpus.splits import sample_mask
from tokpack_core.stages import normalize as normalize_stage
from tokpack_core.stages.asset import Workplace, current
from tokpack_core.stages.normalize import Part, read_part, read_parts
from tokpack_core.store import objects
from tokpack_core.store.objects import ObjectFile, ObjectRef
from tokpack_core.store.store import Store
from tokpack_core.tokenizers.domains import by_domain


@dataclass(frozen=True)
class SamplePart:
    """A part and how much of its train split is drawn."""

    corpus: str
    object: str
    file: str
    sha256: str
    fraction: float
    train_bytes: int

    @property
    def read(self) -> ObjectFile:
        return ObjectFile(ObjectRef.parse(self.object), self.file)

    def path(self, store: Store) -> Path:
        return objects.folder_of(store, ObjectRef.parse(self.object)) / self.file


def plan_sample(work: Workplace, tokenizer: str) -> list[SamplePart]:
    """The sample that the configuration and the newest normalized corpora give."""
    config = work.project.tokenizers[tokenizer]
    sample: list[SamplePart] = []
    for corpus, share in work.project.training_corpora(tokenizer).items():
        parts = corpus_parts(work, corpus)
        available = sum(part.split_bytes["train"] for part in parts)
        fraction = min(1.0, share * config.sample_bytes / max(available, 1))
        sample += [
            SamplePart(corpus, str(p.object), p.path.name, p.sha256, fraction, p.split_bytes["train"]) for p in parts
        ]
    return sample


def corpus_parts(work: Workplace, corpus: str) -> list[Part]:
    _, folder = current(work, normalize_stage.asset_key(corpus))
    return read_parts(work.store, folder)


def sample_inputs(sample: list[SamplePart]) -> list[dict[str, Any]]:
    """What an action records of a sample: enough to draw it again."""
    return [vars(part).copy() for part in sample]


def sampled_batches(path: Path, fraction: float, seed: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The drawn documents of one part, a row group at a time."""
    for batch in read_part(path, sorted({"id", "split", *columns})):
        chosen = pc.equal(batch["split"], "train")
        if fraction < 1.0:
            chosen = pc.and_(chosen, pa.array(sample_mask(batch["id"], seed, fraction)))
        drawn = batch.filter(chosen)
        yield drawn.select([*columns, "content"] if has_content(batch) else columns)


def sample_texts(store: Store, sample: list[SamplePart], seed: int) -> Iterator[pa.Array]:
    """The text of the sample, part by part."""
    for texts, _ in labelled_texts(store, sample, seed):
        yield texts


def labelled_texts(store: Store, sample: list[SamplePart], seed: int) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The same with the language of each text, which may be null."""
    for part in sample:
        for batch in sampled_batches(part.path(store), part.fraction, seed, ["text", "lang"]):
            texts = text_blocks(batch)
            if len(texts):
                yield texts, per_text_block(batch, "lang")


def sample_domains(
    store: Store, sample: list[SamplePart], seed: int, domains: Container[str]
) -> Iterator[tuple[str, pa.Array]]:
    """The same with the domain of each text: its corpus or its language."""
    for part in sample:
        for batch in sampled_batches(part.path(store), part.fraction, seed, ["text", "lang"]):
            texts = text_blocks(batch)
            if len(texts):
                yield from by_domain(texts, per_text_block(batch, "lang"), (part.corpus,), domains)
