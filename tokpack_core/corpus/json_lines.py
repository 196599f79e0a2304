"""Batches of documents out of JSON lines by a kernel, without an object of Python a line: see `json_lines_kernels`."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.bpe.vector_intrinsics import WIDTH
from tokpack_core.config import ReadConfig
from tokpack_core.corpus.batch import SCHEMA, max_text_bytes
from tokpack_core.corpus.json_lines_kernels import INTEGER, STRING, count_lines, read_lines
from tokpack_core.corpus.text_buffers import read_only, text_array
from tokpack_core.corpus.utf8_kernel import is_utf8


def batch_of_lines(run: bytes, row: int, options: ReadConfig) -> pa.RecordBatch | None:
    """The documents of a run of lines, of which the first is `row`; None when a line needs a closer look.

    `run` ends in LF; `options` ask for neither metadata nor content.
    """
    names = tuple(name for name in (options.text_field, options.id_field, options.lang_field) if name is not None)
    data = np.frombuffer(run, np.uint8)
    if len(set(names)) < len(names) or not is_utf8(data):
        return None
    count = count_lines(data)
    spelled, borders = spelling(names)
    out = np.empty((len(names), data.size + WIDTH), np.uint8)
    offsets = np.zeros((len(names), count + 1), np.int64)
    kinds = np.zeros((count, len(names)), np.uint8)
    if read_lines(data, spelled, borders, max_text_bytes(options), out.reshape(-1), offsets, kinds) != count:
        return None
    columns = {name: text_array(out[f, : offsets[f, -1]], offsets[f], pa.string()) for f, name in enumerate(names)}
    kind_of = dict(zip(names, kinds.T, strict=True))
    if (kind_of[options.text_field] != STRING).any():
        return None
    ids = langs = metadata = pa.nulls(count, pa.string())
    if options.id_field is not None:
        ids = columns[options.id_field]
        if not np.isin(kind_of[options.id_field], (STRING, INTEGER)).all() or shortest(ids) == 0:
            return None
    if options.lang_field is not None:
        if (kind_of[options.lang_field] == INTEGER).any():
            return None
        langs = columns[options.lang_field]
        if shortest(langs) == 0:
            langs = pc.replace_with_mask(langs, pc.equal(langs, ""), pa.scalar(None, pa.string()))
    rows = pa.array(np.arange(row, row + count))
    return pa.record_batch([ids, columns[options.text_field], langs, rows, metadata], schema=SCHEMA)


def shortest(strings: pa.Array) -> int:
    return int(pc.min(pc.binary_length(strings)).as_py())


@cache
def spelling(names: tuple[str, ...]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The names as bytes, and where each begins: [names + 1]."""
    spelled = [name.encode() for name in names]
    borders = np.concatenate([[0], np.cumsum([len(name) for name in spelled])])
    return read_only(np.frombuffer(b"".join(spelled), np.uint8)), borders.astype(np.int64)
