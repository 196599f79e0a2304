"""Token shards: documents as sequences of one indexed dataset, in the order in which they come.

Documents with images may be cut at image borders, each run a sequence with a mode: see `indexed_dataset`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import CODES, IndexWriter, bin_path, idx_path
from tokpack_core.megatron.token_writer import TokenWriter
from tokpack_core.packing.image_spans import ModeRuns


class TokenDocuments(Protocol):
    """Documents as flat arrays: document d is ids[offsets[d] : offsets[d + 1]]."""

    @property
    def ids(self) -> npt.NDArray[np.int32]:
        """[tokens]"""

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """[documents + 1], from 0"""


class ShardWriter(AbstractContextManager["ShardWriter"]):
    """Streams documents into `prefix.bin`; `close` completes `prefix.idx`.

    A document without tokens is a repeated document index and no sequence, so documents stay in step with their
    metadata. As a context manager it removes both files when the body raises.
    """

    def __init__(self, prefix: Path, dtype: np.dtype, vocab_size: int) -> None:
        if dtype not in CODES or vocab_size > np.iinfo(dtype).max + 1:
            raise ValueError(f"{dtype} cannot hold {vocab_size} ids in a Megatron file: take dtype_for(vocab_size)")
        self.prefix = prefix
        self.dtype = dtype
        self.vocab_size = vocab_size
        self.documents = 0
        self._tokens = TokenWriter(bin_path(prefix).open("w+b"), dtype)
        self._index = IndexWriter(idx_path(prefix), dtype)

    def append(self, encoded: TokenDocuments, runs: ModeRuns | None = None) -> None:
        """Append documents; raises InputError naming the first one that has an id outside the vocabulary.

        With `runs` of each document, its sequences are these and have modes, as Megatron's multimodal files have it;
        either all calls have them or none.
        """
        ids, offsets = encoded.ids, encoded.offsets
        check_ids(self.prefix, encoded, self.vocab_size, self.documents)
        if offsets[0] != 0 or offsets[-1] != ids.size:
            raise ValueError(f"{self.prefix}: offsets run from {offsets[0]} to {offsets[-1]} over {ids.size} ids")
        lengths = np.diff(offsets)
        self._tokens.write(ids)
        if runs is None:
            self._index.add_sequences(lengths[lengths > 0])
            self._index.add_documents(lengths > 0)
        else:
            self._index.add_sequences(runs.length, runs.mode)
            self._index.add_documents(np.diff(runs.offsets))
        self.documents += lengths.size

    @property
    def hashed(self) -> dict[str, str]:
        """sha256 of the `.bin` by its name."""
        return {bin_path(self.prefix).name: self._tokens.sha256}

    def close(self) -> None:
        self._tokens.file.close()
        self._index.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
            return
        self._tokens.file.close()
        self._index.abandon()
        bin_path(self.prefix).unlink(missing_ok=True)


def check_ids(prefix: Path, encoded: TokenDocuments, vocab_size: int, first: int) -> None:
    """Raises InputError naming the document, counted from `first`, that has an id outside the vocabulary."""
    ids = encoded.ids
    if not ids.size or 0 <= int(ids.min()) <= int(ids.max()) < vocab_size:
        return
    bad = int(np.argmax((ids < 0) | (ids >= vocab_size)))
    document = first + int(np.searchsorted(encoded.offsets, bad, side="right")) - 1
    raise InputError(
        f"{prefix}: document {document} (counted from 0) has token id {int(ids[bad])}, "
        f"outside the vocabulary of {vocab_size}: encode it with the tokenizer of this shard"
    )
