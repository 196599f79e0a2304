"""`tokpack pack` cuts its input into blocks: every document once, in order, within the limits; EODs where missing."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.commands.pack import block_source, with_eod
from tokpack_core.commands.pack_inputs import TokenInput, cut_blocks
from tokpack_core.megatron.export import TokenSource
from tokpack_core.megatron.indexed_dataset import write_index
from tokpack_core.megatron.indexed_reader import IndexedReader

EOD = 7
DTYPE = np.dtype("<u2")

sequences = st.lists(st.integers(0, 9), min_size=1, max_size=30)
prefixes = st.lists(st.lists(st.lists(sequences, max_size=2), min_size=1, max_size=12), min_size=1, max_size=3)
"""Prefixes of documents of sequences of tokens."""


def write_prefix(prefix: Path, documents: list[list[list[int]]]) -> TokenInput:
    flat = [sequence for document in documents for sequence in document]
    np.array([token for sequence in flat for token in sequence], DTYPE).tofile(prefix.with_name(f"{prefix.name}.bin"))
    edges = np.cumsum([0, *map(len, documents)])
    write_index(prefix.with_name(f"{prefix.name}.idx"), DTYPE, np.array([len(s) for s in flat], np.int32), edges)
    reader = IndexedReader(prefix)
    return TokenInput(prefix, reader.index, reader.tokens, None)


def documents_of(source: TokenSource, lengths: np.ndarray) -> list[list[int]]:
    places = zip(source.part, source.position, lengths, strict=True)
    return [source.parts[part][at : at + length].tolist() for part, at, length in places]


@settings(max_examples=60, deadline=None)
@given(prefixes, st.integers(1, 6), st.integers(1, 40))
def test_blocks_hold_every_document_once_and_in_order(
    content: list[list[list[list[int]]]], most_documents: int, most_tokens: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        inputs = [write_prefix(Path(folder, str(n)), documents) for n, documents in enumerate(content)]
        sources = [block_source(inputs, block) for block in cut_blocks(inputs, most_documents, most_tokens)]
        found = [documents_of(*source) for source in sources]
        ended = [documents_of(*with_eod(*source, EOD)) for source in sources]
    expected = [[token for sequence in document for token in sequence] for item in content for document in item]
    assert [document for block in found for document in block] == expected
    assert [document for block in ended for document in block] == [
        document + [EOD] * (document != [] and document[-1] != EOD) for document in expected
    ]
    for block in found:
        assert 1 <= len(block) <= most_documents
        assert sum(map(len, block)) <= most_tokens or sum(map(bool, block)) == 1
    # No block could have taken the first document of the next one.
    for block, following in pairwise(found):
        assert len(block) == most_documents or sum(map(len, block)) + len(following[0]) > most_tokens
