"""Row groups are encoded in slices, and come together again in documents.parquet."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.stages import shards


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=9), max_size=5))
def test_slices_are_all_documents_in_order_and_end_with_their_batch(sizes: list[list[int]]) -> None:
    batches = [pa.record_batch([pa.array(["x" * size for size in batch])], names=["text"]) for batch in sizes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "SLICE_BYTES", 50)
        found = list(shards.in_slices(batches))
    assert [len(text) for piece, _ in found for text in piece["text"].to_pylist()] == [n for b in sizes for n in b]
    ends = [place for place, (_, last) in enumerate(found) if last]
    assert len(ends) == len(batches)
    starts = [0, *(end + 1 for end in ends)][: len(ends)]
    for batch, start, end in zip(batches, starts, ends, strict=True):
        assert pa.concat_batches([piece for piece, _ in found[start : end + 1]]).equals(batch)
        # As many slices as hold 50 bytes each of text and offsets, by the mean.
        assert end + 1 - start <= -(-batch["text"].nbytes // 50)
