"""BOS and EOD on flat arrays, against a plain loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokpack_core.tokenizers import framing
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


def test_a_long_document_is_framed_whoever_holds_its_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "LARGE", 3)
    one = np.array([0, 4], np.int64)
    for bos, expected in ((None, [0, 1, 2, 3, 99]), (77, [77, 0, 1, 2, 3, 99])):
        alone = framed(Encoded(np.arange(4, dtype=np.int32), one), np.ones(1, bool), bos, 99)
        assert (alone.ids.tolist(), alone.offsets.tolist()) == (expected, [0, len(expected)])
    ids = np.arange(8, dtype=np.int32)
    first = ids[:4]
    assert framed(Encoded(first, one), np.ones(1, bool), None, 99).ids.tolist() == [0, 1, 2, 3, 99]
    kept = first.copy()
    view = kept[1:]
    assert framed(Encoded(kept, one), np.ones(1, bool), None, 99).ids.tolist() == [0, 1, 2, 3, 99]
    assert (ids.tolist(), kept.tolist(), view.tolist()) == (list(range(8)), [0, 1, 2, 3], [1, 2, 3])
    two = Encoded(np.arange(8, dtype=np.int32), np.array([0, 4, 8]))
    assert framed(two, np.array([True, False]), None, 99).ids.tolist() == [0, 1, 2, 3, 99, 4, 5, 6, 7]
