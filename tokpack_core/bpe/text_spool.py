"""Text that is read twice though its source gives it once: kept in a temporary file, small texts in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pyarrow as pa

IN_MEMORY = 2**24
SCHEMA = pa.schema([("text", pa.large_binary())])


@contextmanager
def text_spool(in_memory: int = IN_MEMORY) -> Iterator[TextSpool]:
    """The file lies in the folder for temporary files (TMPDIR), has no name there, and is gone at the end.

    in_memory: bytes that are held before there is a file.
    """
    with tempfile.SpooledTemporaryFile(in_memory) as file:
        yield TextSpool(file)


class TextSpool:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._writer = pa.ipc.new_stream(file, SCHEMA, options=pa.ipc.IpcWriteOptions(compression="lz4"))

    def keeping(self, texts: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """The same arrays, which are kept on the way."""
        for array in texts:
            self.keep(array)
            yield array
        self.close()

    def keep(self, texts: pa.Array) -> None:
        self._writer.write_batch(pa.record_batch([texts.cast(pa.large_binary())], schema=SCHEMA))

    def close(self) -> None:
        """Before what was kept is read."""
        self._writer.close()

    def again(self) -> Iterator[pa.Array]:
        """What was kept, in its order, as binary arrays."""
        self._file.seek(0)
        for batch in pa.ipc.open_stream(self._file):
            yield batch["text"]
