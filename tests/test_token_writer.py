"""Token ids are written and hashed at once, in any pieces and behind what a file holds already."""

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.megatron import token_writer
from tokpack_core.megatron.token_writer import TokenWriter


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 65_535), max_size=30), max_size=6),
    st.binary(max_size=40).map(lambda content: content[: len(content) // 4 * 4]),
    st.sampled_from(["<u2", "<i4"]),
)
def test_the_sha256_is_that_of_the_file(pieces: list[list[int]], before: bytes, dtype: str) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_writer, "SENT_BYTES", 50)
        patch.setattr(token_writer, "READ_BYTES", 16)
        path = Path(folder, "x.bin")
        path.write_bytes(before)
        with path.open("r+b") as file:
            writer = TokenWriter(file, np.dtype(dtype))
            for piece in pieces:
                writer.write(np.array(piece, np.int32))
        expected = before + np.array([token for piece in pieces for token in piece], dtype).tobytes()
        assert path.read_bytes() == expected
        assert writer.sha256 == hashlib.sha256(expected).hexdigest()
