"""The families that are made from another tokenizer: `litetoken`, `supertokens`, `minimum_cost`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tokpack_core.config import TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.residues.residues import ResidueLimits


@dataclass(frozen=True)
class Derived:
    tokenizer: Tokenizer
    figures: dict[str, Any]
    """What the training has to say."""
    save_report: Callable[[Path], None]
    """Writes what belongs beside the tokenizer's own files into a folder."""


def derive(config: TrainConfig, base: Tokenizer, texts: Iterator[pa.Array]) -> Derived:
    """`texts`: string arrays without nulls, read once, or not at all for `minimum_cost`.

    Raises InputError for a base of another kind, or a text that holds nothing.
    """
    if config.family == "litetoken":
        # These load kernels, each of which the others have no use for.
        from tokpack_core.tokenizers.residues.litetoken_training import without_residues_of

        limits = ResidueLimits(config.max_residue_ratio, config.max_neighbor_entropy, config.min_count)
        cleaned = without_residues_of(base, limits, texts)
        figures = dict(cleaned.report["text"]) | {"residues_removed": len(cleaned.report["removed"])}
        return Derived(cleaned, figures, nothing)
    if config.family == "supertokens":
        from tokpack_core.tokenizers.supertokens import ExtensionLimits, extend, write_report

        if not isinstance(base, HuggingFaceTokenizer):
            raise InputError(
                f"a base of family {base.family} cannot be extended: only the tokenizer.json of a byte-level BPE can"
            )
        longer, report = extend(base, ExtensionLimits(config.top_k, config.min_frequency, config.max_words), texts)
        figures = dict(report["text"]) | {"tokens_added": len(report["added"])}
        return Derived(longer, figures, lambda folder: write_report(folder, report))
    from tokpack_core.tokenizers.minimum_cost.tokenizer import fewest_tokens_of

    return Derived(fewest_tokens_of(base), {}, nothing)


def nothing(folder: Path) -> None:
    """All is in the tokenizer's own files."""
