"""`tokpack supertokens`: a tokenizer with cross-word tokens appended, mined from plain files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokpack_core.commands.opened_tokenizer import OpenedTokenizer, open_tokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.progress import progress
from tokpack_core.commands.reading import Reading
from tokpack_core.commands.run_manifest import write_manifest
from tokpack_core.commands.train import texts
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.supertokens import ExtensionLimits, extend, write_report


def supertokens(
    opened: OpenedTokenizer, limits: ExtensionLimits, reading: Reading, output: Path, quiet: bool
) -> dict[str, Any]:
    """Writes the folder `output` and its manifest; returns the manifest.

    Raises:
        InputError: the text cannot be read, the tokenizer cannot be extended, or the output exists.
    """
    base = opened.tokenizer
    if not isinstance(base, HuggingFaceTokenizer):
        raise InputError(
            f"{opened.path} is of family {base.family}: only the tokenizer.json of a byte-level BPE can be extended"
        )
    with new_output(output, ("", MANIFEST_ENDING)) as draft:
        draft.mkdir()
        with progress("reading", reading.bytes, "B", quiet) as on_done:
            tokenizer, report = extend(base, limits, texts(reading, base.unicode, on_done))
        tokenizer.save(draft)
        write_report(draft, report)
        counts = {
            "vocab_size": tokenizer.vocab_size,
            "tokens_added": len(report["added"]),
            "reading": reading.as_json(),
            **report["text"],
        }
        described = open_tokenizer(draft).as_json() | {"path": str(output.absolute())}
        parameters = {"base": opened.as_json(), **vars(limits)} | reading.parameters()
        return write_manifest(draft, "supertokens", parameters, reading.inputs, counts, described)
