"""`tokpack litetoken`: a tokenizer whose residues are taken out, found on plain files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokpack_core.commands.opened_tokenizer import OpenedTokenizer, open_tokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.progress import progress
from tokpack_core.commands.reading import Reading
from tokpack_core.commands.run_manifest import write_manifest
from tokpack_core.commands.train import texts
from tokpack_core.tokenizers.residues.litetoken_training import without_residues_of
from tokpack_core.tokenizers.residues.residues import ResidueLimits


def litetoken(
    opened: OpenedTokenizer, limits: ResidueLimits, reading: Reading, output: Path, quiet: bool
) -> dict[str, Any]:
    """Writes the folder `output` and its manifest; returns the manifest.

    Raises:
        InputError: the text cannot be read, the tokenizer has no residues to find, or the output exists.
    """
    with new_output(output, ("", MANIFEST_ENDING)) as draft:
        draft.mkdir()
        base = opened.tokenizer
        with progress("reading", reading.bytes, "B", quiet) as on_done:
            tokenizer = without_residues_of(base, limits, texts(reading, base.unicode, on_done))
        tokenizer.save(draft)
        report = tokenizer.report
        counts = {
            "vocab_size": tokenizer.vocab_size,
            "residues_removed": len(report["removed"]),
            "reading": reading.as_json(),
            **report["text"],
        }
        described = open_tokenizer(draft).as_json() | {"path": str(output.absolute())}
        parameters = {"base": opened.as_json(), **vars(limits)} | reading.parameters()
        return write_manifest(draft, "litetoken", parameters, reading.inputs, counts, described)
