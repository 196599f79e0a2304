"""`tokpack merge` against Megatron-Core's own builder, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.command_line import read_raw, refused, tokpack
from tokpack_core.megatron.indexed_dataset import IndexWriter, write_index
from tokpack_core.megatron.merge import copy_index, merge, natural_order, open_shards

BY_MEGATRON = """
import json, sys
import numpy
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
job = json.loads(sys.argv[1])
builder = IndexedDatasetBuilder(job["output"] + ".bin", dtype=getattr(numpy, job["dtype"]))
for prefix in job["prefixes"]:
    builder.add_index(prefix)
builder.finalize(job["output"] + ".idx")
"""


def write_prefix(prefix: Path, documents: list[list[int]], dtype: str = "uint16", modes: bool = False) -> Path:
    """Documents of sequences of these lengths; tokens count up from the sum of the name's bytes."""
    lengths = np.array([length for document in documents for length in document], np.int64)
    tokens = np.arange(lengths.sum()) + sum(prefix.name.encode())
    (tokens % 60_000).astype(np.dtype(dtype).newbyteorder("<")).tofile(prefix.with_name(f"{prefix.name}.bin"))
    indices = np.cumsum([0, *map(len, documents)])
    write_index(
        prefix.with_name(f"{prefix.name}.idx"),
        np.dtype(dtype).newbyteorder("<"),
        lengths,
        indices,
        np.arange(lengths.size) % 2 if modes else None,
    )
    return prefix


def same_bytes(one: Path, other: Path) -> bool:
    return all(
        one.with_name(f"{one.name}{ending}").read_bytes() == other.with_name(f"{other.name}{ending}").read_bytes()
        for ending in (".bin", ".idx")
    )


def test_the_bytes_are_those_of_megatron(tmp_path: Path) -> None:
    shapes = {"s_1": [[5], [], [1, 2]], "s_2": [[7, 1]], "s_10": [[], [3]]}
    for name, documents in shapes.items():
        write_prefix(tmp_path / name, documents, "int32")
    job = {"output": str(tmp_path / "theirs"), "dtype": "int32", "prefixes": [str(tmp_path / n) for n in shapes]}
    subprocess.run([sys.executable, "-c", BY_MEGATRON, json.dumps(job)], check=True, capture_output=True)
    tokpack(tmp_path, "merge", "ours", "s_1.bin", "s_1.idx", "s_10", "s_2")
    assert same_bytes(tmp_path / "ours", tmp_path / "theirs")
    content = json.loads((tmp_path / "ours.manifest.json").read_bytes())
    assert [Path(entry["path"]).name for entry in content["inputs"]][::2] == ["s_1.bin", "s_2.bin", "s_10.bin"]
    assert content["counts"] == {"prefixes": 3, "documents": 6, "sequences": 6, "tokens": 19, "dtype": "int32"}
    assert tokpack(tmp_path, "verify", "ours").code == 0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.lists(st.integers(0, 4), max_size=3), max_size=4), min_size=1, max_size=4), st.booleans())
def test_merging_is_writing_all_documents(
    tmp_path_factory: pytest.TempPathFactory, shapes: list[list[list[int]]], modes: bool
) -> None:
    assume(not modes or all(any(shape) for shape in shapes))  # without sequences there are no modes
    folder = tmp_path_factory.mktemp("merge")
    prefixes = [write_prefix(folder / f"p{i}", shape, modes=modes) for i, shape in enumerate(shapes)]
    merge(open_shards(prefixes), folder / "out", lambda path, block: None)
    expected = b"".join((folder / f"p{i}.bin").read_bytes() for i in range(len(shapes)))
    assert (folder / "out.bin").read_bytes() == expected
    documents = [document for shape in shapes for document in shape]
    lengths = [length for document in documents for length in document]
    with IndexWriter(folder / "whole.idx", np.dtype("<u2")) as index:
        each = [np.arange(sum(map(len, shape))) % 2 for shape in shapes]
        index.add_sequences(np.array(lengths, np.int64), np.concatenate(each) if modes else None)
        index.add_documents(np.array([len(document) for document in documents], np.int64))
    assert (folder / "out.idx").read_bytes() == (folder / "whole.idx").read_bytes()


def test_natural_order() -> None:
    names = ["s10", "s2", "s02", "a/9", "a/10", "s", "s2b"]
    ordered = [str(path) for path in sorted(map(Path, names), key=natural_order)]
    assert ordered == ["a/9", "a/10", "s", "s02", "s2", "s2b", "s10"]


def test_pointers_beyond_two_gibibytes(tmp_path: Path) -> None:
    """The tokens are a hole in the file; only the index of the result is written out."""
    for name in ("a", "b"):
        lengths = np.full(3, 2**28, np.int64)
        write_index(tmp_path / f"{name}.idx", np.dtype("<i4"), lengths, np.arange(4))
        with (tmp_path / f"{name}.bin").open("wb") as file:
            file.truncate(4 * int(lengths.sum()))
    shards = open_shards([tmp_path / "a", tmp_path / "b"])
    assert [shard.bytes for shard in shards] == [3 * 2**30] * 2
    with IndexWriter(tmp_path / "out.idx", np.dtype("<i4")) as index:
        for shard in shards:
            copy_index(shard, index)
    pointers = np.frombuffer((tmp_path / "out.idx").read_bytes(), "<i8", 6, 34 + 4 * 6)
    assert pointers.tolist() == [2**30 * k for k in range(6)]


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    write_prefix(tmp_path / "short", [[2]])
    write_prefix(tmp_path / "wide", [[2]], "int32")
    write_prefix(tmp_path / "image", [[2]], modes=True)
    write_prefix(tmp_path / "stray", [[2]])
    with (tmp_path / "stray.bin").open("ab") as file:
        file.write(b"\0\0")
    write_prefix(tmp_path / "moved", [[2], [2]])
    index = bytearray((tmp_path / "moved.idx").read_bytes())
    index[34 + 8 + 8] = 2
    (tmp_path / "moved.idx").write_bytes(index)
    said = refused(tmp_path, "merge", "out", "short", "wide")
    assert said == (
        "wide holds int32 tokens and short uint16: encode both with the same tokenizer, or merge them apart"
    )
    assert refused(tmp_path, "merge", "out", "short", "image") == "image has modes and short has none: merge them apart"
    assert "stray.bin has 6 bytes, but its index says 4" in refused(tmp_path, "merge", "out", "short", "stray")
    assert "moved.idx: sequence 1 does not begin where" in refused(tmp_path, "merge", "out", "moved")
    assert "none.idx does not exist" in refused(tmp_path, "merge", "out", "none")
    (tmp_path / "empty").mkdir()
    assert "there is no .idx file in this folder" in refused(tmp_path, "merge", "out", "empty")
    assert "short.bin exists already" in refused(tmp_path, "merge", "short", "image")
    assert not list(tmp_path.glob("out*"))
    tokpack(tmp_path, "merge", "out", "short")
    assert read_raw(tmp_path / "out") == read_raw(tmp_path / "short")
