"""What merges made of a tokenizer's tokens on some text, as the definition of residues takes it."""

from __future__ import annotations

from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.residues.residues import MergeUse, merged_parts
from tokpack_core.vocabulary.counting import exact_bpe
from tokpack_core.vocabulary.counts import TokenCounts


def merge_use(tokenizer: Tokenizer | None, counts: TokenCounts) -> MergeUse | None:
    """None for a tokenizer whose merges cannot be watched, or counts that did not watch them."""
    exact = None if tokenizer is None or counts.merges is None else exact_bpe(tokenizer)
    if tokenizer is None or exact is None or counts.merges is None:
        return None
    parts = merged_parts(exact, tokenizer.vocabulary(), counts.vocab_size)
    return MergeUse(parts, counts.tokens, counts.merges.consumed)
