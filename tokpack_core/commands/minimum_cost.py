"""`tokpack minimum-cost`: a tokenizer that encodes with the fewest tokens of another one's vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokpack_core.commands.opened_tokenizer import OpenedTokenizer, open_tokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.run_manifest import write_manifest
from tokpack_core.tokenizers.minimum_cost.tokenizer import fewest_tokens_of


def minimum_cost(opened: OpenedTokenizer, output: Path) -> dict[str, Any]:
    """Writes the folder `output` and its manifest; returns the manifest.

    Raises:
        InputError: the vocabulary is not byte-level, or the output exists.
    """
    with new_output(output, ("", MANIFEST_ENDING)) as draft:
        draft.mkdir()
        tokenizer = fewest_tokens_of(opened.tokenizer)
        tokenizer.save(draft)
        described = open_tokenizer(draft).as_json() | {"path": str(output.absolute())}
        counts = {"vocab_size": tokenizer.vocab_size}
        return write_manifest(draft, "minimum_cost", {"base": opened.as_json()}, [], counts, described)
