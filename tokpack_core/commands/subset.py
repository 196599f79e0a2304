"""`tokpack subset`: the sub-tokenizer of some languages of a modular tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokpack_core.commands.opened_tokenizer import OpenedTokenizer, saved_tokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.run_manifest import write_manifest
from tokpack_core.tokenizers.agreement.checked_export import save_checked
from tokpack_core.tokenizers.modular.sub_tokenizers import ids_of, probe_texts, sub_tokenizer


def subset(opened: OpenedTokenizer, languages: Sequence[str], output: Path) -> dict[str, Any]:
    """Writes the folder `output` and its manifest; returns the manifest.

    What other libraries read from its files is compared on texts made of its own entries.

    Raises:
        InputError: the tokenizer is not modular or lacks a language, the files mean something else to another library,
            or the output exists.
    """
    with new_output(output, ("", MANIFEST_ENDING)) as draft:
        draft.mkdir()
        ids = ids_of(opened.tokenizer, languages)
        tokenizer = sub_tokenizer(opened.tokenizer, languages)
        compared = save_checked(tokenizer, draft, probe_texts(tokenizer, ids))
        counts = {"entries": int(ids.size), "of": len(opened.tokenizer.vocabulary()), "export_check": compared}
        described = saved_tokenizer(draft, tokenizer).as_json() | {"path": str(output.absolute())}
        parameters = {"tokenizer": opened.as_json(), "languages": list(languages)}
        return write_manifest(draft, "subset", parameters, [], counts, described)
