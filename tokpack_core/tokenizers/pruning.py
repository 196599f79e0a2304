"""A tokenizer without some of its entries, such that every entry that stays can still be made.

BPE makes an entry by merging two others, so what an entry is made through stays with it. Special and added tokens,
single bytes and single characters always stay, so that whatever could be encoded still can. Ids keep their order and
close up; text whose tokens all stay has the same tokens as before.

By file: a tokenizer.json with a BPE model (merges whose three tokens stay) or a Unigram model, a SentencePiece model of
either kind, and a tiktoken rank file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tokpack_core.errors import InputError
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.huggingface.pruning import prune_huggingface
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer
from tokpack_core.tokenizers.sentencepiece.pruning import prune_sentencepiece
from tokpack_core.tokenizers.tiktoken.pruning import prune_ranks
from tokpack_core.tokenizers.tiktoken.ranks import TiktokenTokenizer

ID_MAP_SCHEMA = pa.schema([("old", pa.int32()), ("new", pa.int32())])


@dataclass(frozen=True, eq=False)
class Pruned:
    """kept: bool [vocab_size of the old tokenizer]."""

    tokenizer: Tokenizer
    kept: NDArray[np.bool_]

    def id_map(self) -> pa.Table:
        """One row an old id, in its order, of ID_MAP_SCHEMA; `new` is null for what was removed."""
        new = np.cumsum(self.kept) - 1
        columns = [np.arange(len(new), dtype=np.int32), pa.array(new.astype(np.int32), mask=~self.kept)]
        return pa.table(columns, schema=ID_MAP_SCHEMA)


def prune(tokenizer: Tokenizer, removable: NDArray[np.bool_]) -> Pruned:
    """removable: bool [vocab_size], entries that may go; those that others are made through stay.

    Raises InputError for a tokenizer that cannot be pruned.
    """
    vocabulary = tokenizer.vocabulary()
    kept = np.zeros(tokenizer.vocab_size, bool)
    kept[vocabulary["id"].to_numpy()] = True
    if not kept.all():
        raise InputError("its ids have holes, which pruning would close and so move special tokens: prune another file")
    wanted = kept & ~removable
    wanted[vocabulary["id"].to_numpy()[vocabulary["special"].to_numpy()]] = True
    smaller: Tokenizer
    if isinstance(tokenizer, HuggingFaceTokenizer):
        smaller, kept = prune_huggingface(tokenizer, wanted)
    elif isinstance(tokenizer, SentencePieceTokenizer):
        smaller, kept = prune_sentencepiece(tokenizer, wanted)
    elif isinstance(tokenizer, TiktokenTokenizer):
        smaller, kept = prune_ranks(tokenizer, wanted)
    else:
        raise InputError(f"{tokenizer.family} tokenizers cannot be pruned: give one of BPE or Unigram")
    return Pruned(smaller, kept)
