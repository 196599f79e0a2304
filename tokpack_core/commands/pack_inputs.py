"""The documents of several prefixes, as blocks of bounded size.

A block is a run of documents, in the order of the prefixes given, of at most BLOCK_DOCUMENTS and about BLOCK_TOKENS
(never fewer than BLOCK_PACKS packs, so that little is lost at its end), or one larger document. Memory is bounded by
a block and does not grow with the prefixes, whose files are mapped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tokpack_core.commands.run_manifest import RunManifest, manifest_of
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import Index, bin_path
from tokpack_core.megatron.indexed_reader import IndexedReader, Tokens
from tokpack_core.megatron.verify import verify
from tokpack_core.packing.image_spans import ImageSpans

Int64 = npt.NDArray[np.int64]

BLOCK_DOCUMENTS = 10**5
BLOCK_TOKENS = 2**25
BLOCK_PACKS = 256


@dataclass(frozen=True)
class TokenInput:
    """One prefix; its documents lie back to back in `tokens`."""

    prefix: Path
    index: Index
    tokens: Tokens
    manifest: RunManifest | None

    @property
    def documents(self) -> int:
        return self.index.document_indices.size - 1

    def starts(self, first: int, last: int) -> Int64:
        """First token of the documents first .. last - 1, and where the last of them ends: [last - first + 1]."""
        edges = self.index.document_indices[first : last + 1]
        starts = np.full(edges.size, self.tokens.size, np.int64)
        inside = edges < self.index.sequence_lengths.size
        starts[inside] = self.index.sequence_pointers[edges[inside]] // self.index.dtype.itemsize
        return starts

    def images(self, first: int, last: int) -> ImageSpans:
        """The images of the documents first .. last - 1; none where the index has no modes."""
        edges = self.index.document_indices[first : last + 1]
        if self.index.modes is None:
            return ImageSpans(np.zeros(last - first + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
        length = self.index.sequence_lengths[edges[0] : edges[-1]].astype(np.int64)
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(length)])
        image = np.flatnonzero(self.index.modes[edges[0] : edges[-1]])
        offsets = np.searchsorted(image, edges - edges[0]).astype(np.int64)
        begins = np.repeat(ends[edges[:-1] - edges[0]], np.diff(offsets))
        return ImageSpans(offsets, ends[image] - begins, length[image])


@dataclass(frozen=True)
class Run:
    """Documents first .. last - 1 of one prefix."""

    prefix: int
    first: int
    last: int


def open_inputs(prefixes: list[Path], eod: int, append_eod: bool) -> list[TokenInput]:
    """The prefixes, sound and in agreement.

    Raises:
        InputError: a prefix is damaged, they differ in dtype or tokenizer, `eod` is not theirs, or documents do not
            end in it though nothing is to be appended.
    """
    inputs = [open_input(prefix) for prefix in prefixes]
    first = inputs[0]
    for other in inputs[1:]:
        if other.index.dtype != first.index.dtype:
            raise InputError(
                f"{other.prefix} holds {other.index.dtype.name} tokens and {first.prefix} {first.index.dtype.name}: "
                "encode both with the same tokenizer"
            )
    if eod > np.iinfo(first.index.dtype).max:
        raise InputError(f"--eod {eod} is no {first.index.dtype.name}, which the tokens of {first.prefix} are")
    check_manifests(inputs, eod)
    for prefix in () if append_eod else prefixes:
        for unended in verify(prefix, eod=eod):
            fault, _, _ = unended.rpartition(": append it")
            raise InputError(f"{fault}: give --append-eod, or the --eod that they end in")
    return inputs


def open_input(prefix: Path) -> TokenInput:
    """Raises InputError when the prefix is damaged."""
    problems = verify(prefix)
    if problems:
        raise InputError(problems[0])
    reader = IndexedReader(prefix)
    return TokenInput(prefix, reader.index, reader.tokens, manifest_of(bin_path(prefix)))


def check_manifests(inputs: list[TokenInput], eod: int) -> None:
    """What the manifests beside the prefixes say must fit together; a prefix without one says nothing."""
    digests: dict[str, Path] = {}
    for item in inputs:
        if item.manifest is None:
            continue
        if item.manifest.content["command"] == "pack":
            raise InputError(f"{item.prefix} is packed already: name the prefixes that `tokpack encode` wrote")
        tokenizer = item.manifest.content["tokenizer"]
        if tokenizer is None:
            continue
        digests.setdefault(tokenizer["digest"], item.prefix)
        known = tokenizer["special_tokens"].get("eod")
        if known is not None and eod != known:
            raise InputError(f"--eod {eod} is not the EOD of the tokenizer of {item.prefix}, which is {known}")
        if eod >= tokenizer["vocab_size"]:
            raise InputError(f"--eod {eod} is outside the vocabulary of {tokenizer['vocab_size']} of {item.prefix}")
    if len(digests) > 1:
        one, other, *_ = digests.values()
        raise InputError(f"{one} and {other} were encoded with different tokenizers: encode both with the same one")


def block_tokens(sequence_length: int) -> int:
    """About how many tokens a block has at most."""
    return max(BLOCK_TOKENS, BLOCK_PACKS * sequence_length)


def cut_blocks(inputs: list[TokenInput], most_documents: int, most_tokens: int) -> Iterator[list[Run]]:
    """The blocks, in order; a document of more than `most_tokens` shares its block with empty ones at most."""
    block: list[Run] = []
    documents = tokens = 0
    for number, item in enumerate(inputs):
        first = 0
        while first < item.documents:
            starts = item.starts(first, min(first + most_documents - documents, item.documents))
            fitting = max(int(np.searchsorted(starts - starts[0], most_tokens - tokens, side="right")) - 1, 0)
            if fitting == 0 and not block:
                fitting = 1
            if fitting:
                block.append(Run(number, first, first + fitting))
                documents += fitting
                tokens += int(starts[fitting] - starts[0])
                first += fitting
            if documents == most_documents or first < item.documents:
                yield block
                block, documents, tokens = [], 0, 0
    if block:
        yield block
