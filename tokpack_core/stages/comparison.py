"""Tokenizers of the configuration against one another, on the test splits of the corpora that they train on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.comparison.comparison import Comparison, compare
from tokpack_core.comparison.held_out import Candidate, measure
from tokpack_core.errors import InputError
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.stages.asset import Workplace
from tokpack_core.stages.normalize import read_part
from tokpack_core.stages.sample import corpus_parts
from tokpack_core.store import leases


def compare_tokenizers(work: Workplace, tokenizers: Sequence[str], baseline: str) -> Comparison:
    """The newest versions of built tokenizers; what is read stays until it is read.

    Raises InputError if the test splits hold no document.
    """
    with leases.hold(work.store):
        candidates = [
            Candidate(name, tokenizer_stage.load(tokenizer_stage.current_tokenizer(work, name)[1]))
            for name in tokenizers
        ]
        corpora = dict.fromkeys(corpus for name in tokenizers for corpus in work.project.training_corpora(name))
        return compare(candidates, measure(candidates, held_out_batches(work, list(corpora))), baseline)


def held_out_batches(work: Workplace, corpora: Sequence[str]) -> Iterator[pa.RecordBatch]:
    found = False
    for corpus in corpora:
        for part in corpus_parts(work, corpus):
            for batch in read_part(part.path, ["text", "lang", "split"]):
                chosen = batch.filter(pc.equal(batch["split"], "test"))
                found |= len(chosen) > 0
                if len(chosen):
                    yield chosen
    if not found:
        raise InputError(f"the test splits of {', '.join(corpora)} hold no document: raise `splits: {{test: ...}}`")
