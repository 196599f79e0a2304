"""`encode` gives its encoder larger batches than it reads."""

from itertools import pairwise

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.commands.encode_run import gathered, weight

LIMIT = 150


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=4), max_size=12))
def test_batches_are_gathered_in_order_up_to_a_limit(sizes: list[list[int]]) -> None:
    texts = [["x" * size for size in batch] for batch in sizes]
    read = [pa.record_batch([pa.array(batch, pa.string())], names=["text"]) for batch in texts]
    found = list(gathered(iter(read), LIMIT))
    assert [text for batch in found for text in batch["text"].to_pylist()] == [
        text for batch in texts for text in batch
    ]
    weights = {weight(batch) for batch in read}
    assert all(weight(batch) <= LIMIT or weight(batch) in weights for batch in found)
    # 4 bytes for each batch that was joined to another: their offsets have an end each.
    for number, (one, other) in enumerate(pairwise(found)):
        # A quarter of the limit, a half, then all of it.
        assert weight(one) + weight(other) > min(LIMIT // 4 * 2**number, LIMIT) - 4 * len(read)
