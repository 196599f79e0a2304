"""BOS and EOD on flat arrays, against a plain loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.framing import framed

documents = st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=4), st.booleans()), max_size=8)


@given(documents, st.sampled_from([None, 77]))
def test_framed(given_documents: list[tuple[list[int], bool]], bos: int | None) -> None:
    ids = np.array([i for tokens, _ in given_documents for i in tokens], np.int32)
    offsets = np.cumsum([0, *(len(tokens) for tokens, _ in given_documents)]).astype(np.int64)
    chosen = np.array([mark for _, mark in given_documents], bool)
    found = framed(Encoded(ids, offsets), chosen, bos, 99)
    start = [] if bos is None else [bos]
    expected = [[*start, *tokens, 99] if mark else tokens for tokens, mark in given_documents]
    assert found.ids.tolist() == [i for tokens in expected for i in tokens]
    assert np.diff(found.offsets).tolist() == [len(tokens) for tokens in expected]
    assert (found.ids.dtype, found.offsets.dtype) == (np.int32, np.int64)
