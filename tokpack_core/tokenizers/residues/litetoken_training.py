"""Finds the residues of a tokenizer on a text and takes them out: see `residues` and `litetoken`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.bpe.pretoken_counting import count_parts
from tokpack_core.bpe.text_spool import text_spool
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byteification.token_bytes import byte_level_name
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.residues.litetoken import LiteTokenTokenizer, exact_base
from tokpack_core.tokenizers.residues.residues import MergeUse, ResidueLimits, find_residues, merged_parts
from tokpack_core.vocabulary.merge_counts import MergeReplay

MOST_WORKERS = 8


def without_residues_of(base: Tokenizer, limits: ResidueLimits, texts: Iterator[pa.Array]) -> LiteTokenTokenizer:
    """`texts`: string arrays without nulls, which are read once and kept in a temporary file meanwhile.

    Raises InputError for an empty text, or a base that is no byte-level BPE.
    """
    exact = exact_base(base)
    rows = base.vocabulary()
    ordinary = rows.filter(pc.invert(rows["special"]))
    contents = dict(zip(ordinary["id"].to_pylist(), ordinary["token"].to_pylist(), strict=True))
    with text_spool() as spool:
        parts, _ = count_parts(spool.keeping(texts), exact.splits, min(os.cpu_count() or 1, MOST_WORKERS))
        if not parts:
            raise InputError("there is no text to find residues on: give files that hold some")
        replay = MergeReplay(exact.model, *exact.encoder.tables, base.vocab_size)
        final = sum((replay.add(part) for part in parts), np.zeros(base.vocab_size, np.int64))
        use = MergeUse(merged_parts(exact, rows, base.vocab_size), final, replay.counts.consumed)
        found = find_residues(use, limits)
        tokenizer = LiteTokenTokenizer(base, found)
        figures = {"documents": 0, "bytes": 0, "tokens_before": 0, "tokens_after": 0}
        for array in spool.again():
            kept = array.cast(pa.large_string())
            figures["documents"] += len(kept)
            figures["bytes"] += pc.sum(pc.binary_length(kept)).as_py() or 0
            figures["tokens_before"] += base.encode(kept).ids.size
            figures["tokens_after"] += tokenizer.encode(kept).ids.size
    removed = [{"token": byte_level_name(contents[row["id"]])} | row for row in found.report["removed"]]
    report = dict(found.report) | {"text": figures, "removed": removed}
    return LiteTokenTokenizer(base, replace(found, report=report))
