"""`tokpack prune`: a tokenizer without the entries that text hardly uses, with an id map and the measured cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tokpack_core.commands.opened_tokenizer import OpenedTokenizer, open_tokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.progress import progress
from tokpack_core.commands.reading import Reading, normalized
from tokpack_core.commands.run_manifest import write_manifest
from tokpack_core.corpus.content import per_text_block, text_blocks
from tokpack_core.corpus.problems import Problems
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.pruning import prune as prune_tokenizer
from tokpack_core.vocabulary.counting import text_counter
from tokpack_core.vocabulary.counts import TokenCounts

ID_MAP_FILE = "id_map.parquet"


def prune(opened: OpenedTokenizer, reading: Reading, below: int, output: Path, quiet: bool) -> dict[str, Any]:
    """Writes the folder `output` with the smaller tokenizer and id_map.parquet, and its manifest, which is returned.

    Removed are entries that occur fewer than `below` times in the files and are not needed to make others; there may be
    none, and the tokenizer is then the same.

    Raises:
        InputError: text cannot be read, the tokenizer cannot be pruned, or the output exists.
    """
    with new_output(output, ("", MANIFEST_ENDING)) as draft:
        draft.mkdir()
        before = count(opened.tokenizer, reading, "counting", quiet)
        pruned = prune_tokenizer(opened.tokenizer, before.tokens < below)
        removed = int((~pruned.kept).sum())
        again = replace(reading, problems=Problems(), inputs=[])
        after = count(pruned.tokenizer, again, "counting with the smaller one", quiet)
        pruned.tokenizer.save(draft)
        pq.write_table(pruned.id_map(), draft / ID_MAP_FILE, compression="zstd")
        counts = {
            "vocab_size": pruned.tokenizer.vocab_size,
            "removed": removed,
            "rare_but_needed": int((pruned.kept & (before.tokens < below)).sum()),
            "tokens_before": int(before.tokens.sum()),
            "tokens_after": int(after.tokens.sum()),
            "tokens_added_share": int(after.tokens.sum()) / max(int(before.tokens.sum()), 1) - 1,
            "reading": reading.as_json(),
        }
        made_from = {"tokenizer": opened.as_json()}
        described = open_tokenizer(draft).as_json() | {"path": str(output.absolute())}
        parameters = reading.parameters() | {"below": below} | made_from
        return write_manifest(draft, "prune", parameters, reading.inputs, counts, described)


def count(tokenizer: Tokenizer, reading: Reading, what: str, quiet: bool) -> TokenCounts:
    counter = text_counter(tokenizer)
    with progress(what, reading.bytes, "B", quiet) as on_done:
        for batch in normalized(reading.batches(on_done), tokenizer.unicode):
            counter.add(text_blocks(batch), per_text_block(batch, "lang"))
    return counter.total()
