"""The Megatron file format: bytes derived by hand, round trips, and every planted fault named."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.config import Strategy
from tokpack_core.errors import InputError
from tokpack_core.megatron import indexed_dataset
from tokpack_core.megatron.blend import blend_line, blend_weights, shell_arguments, write_blend
from tokpack_core.megatron.export import PackedWriter, TokenSource, link_or_copy
from tokpack_core.megatron.indexed_dataset import IndexWriter, dtype_for, read_index, write_index
from tokpack_core.megatron.indexed_reader import IndexedReader, map_tokens
from tokpack_core.megatron.shards import ShardWriter
from tokpack_core.megatron.verify import examine, verify
from tokpack_core.packing.image_spans import ModeRuns
from tokpack_core.packing.permutation import permuted
from tokpack_core.packing.plan import PackingPlan
from tokpack_core.packing.strategies import pack

UINT16, INT32 = np.dtype("<u2"), np.dtype("<i4")
EOD = 7


@dataclass(frozen=True)
class Documents:
    ids: np.ndarray
    offsets: np.ndarray


def documents_of(*lists: list[int]) -> Documents:
    lengths = [len(tokens) for tokens in lists]
    ids = np.array([token for tokens in lists for token in tokens], np.int32)
    return Documents(ids, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


def write_shard(prefix: Path, *lists: list[int], dtype: np.dtype = UINT16, vocab_size: int = 60_000) -> Path:
    with ShardWriter(prefix, dtype, vocab_size) as writer:
        writer.append(documents_of(*lists))
    return prefix


def test_dtype_follows_the_rule_of_preprocess_data() -> None:
    assert dtype_for(1) == dtype_for(65_499) == UINT16
    assert dtype_for(65_500) == dtype_for(65_536) == dtype_for(200_000) == INT32


def test_bytes_of_a_small_shard_by_hand(tmp_path: Path) -> None:
    # Four documents: (1, 2, 7), nothing, (300, 7), nothing.
    write_shard(tmp_path / "a.b", [1, 2, 7], [], [300, 7], [])
    assert (tmp_path / "a.b.bin").read_bytes() == bytes([1, 0, 2, 0, 7, 0, 44, 1, 7, 0])
    want = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, 2, 5)
    want += struct.pack("<2i", 3, 2) + struct.pack("<2q", 0, 6) + struct.pack("<5q", 0, 1, 1, 2, 2)
    assert (tmp_path / "a.b.idx").read_bytes() == want
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.b.bin", "a.b.idx"]


def test_bytes_of_an_int32_index_with_modes_by_hand(tmp_path: Path) -> None:
    write_index(tmp_path / "m.idx", INT32, np.array([2, 5, 1]), np.array([0, 0, 3]), modes=np.array([0, 1, 0]))
    want = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 4, 3, 3)
    want += struct.pack("<3i", 2, 5, 1) + struct.pack("<3q", 0, 8, 28) + struct.pack("<3q", 0, 0, 3) + bytes([0, 1, 0])
    assert (tmp_path / "m.idx").read_bytes() == want


@settings(max_examples=60, deadline=None)
@given(
    lists=st.lists(st.lists(st.integers(0, 99_999), max_size=6), max_size=20),
    cut=st.integers(0, 20),
    chunk=st.integers(1, 5),
)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, lists: list[list[int]], cut: int, chunk: int) -> None:
    prefix = tmp_path_factory.mktemp("round") / "shard"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexed_dataset, "CHUNK", chunk)
        with ShardWriter(prefix, INT32, 100_000) as writer:
            writer.append(documents_of(*lists[:cut]))
            writer.append(documents_of(*lists[cut:]))
    reader = IndexedReader(prefix)
    assert [reader.sequence(i).tolist() for i in range(len(reader))] == [tokens for tokens in lists if tokens]
    assert np.diff(reader.index.document_indices).tolist() == [int(len(tokens) > 0) for tokens in lists]
    assert reader.index.modes is None


def test_index_of_more_than_one_chunk_and_pointers_past_2_gib(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 5_000, 2_200_000)
    boundaries = np.concatenate([[0], np.sort(rng.integers(0, lengths.size, 1_300_000)), [lengths.size]])
    write_index(tmp_path / "big.idx", INT32, lengths, boundaries)
    index = read_index(tmp_path / "big.idx")
    np.testing.assert_array_equal(index.sequence_lengths, lengths)
    np.testing.assert_array_equal(index.sequence_pointers, (np.cumsum(lengths) - lengths) * 4)
    np.testing.assert_array_equal(index.document_indices, boundaries)
    assert index.sequence_pointers[-1] > 2**34
    assert not index.sequence_lengths.flags.owndata


def test_appending_block_by_block_gives_the_same_bytes(tmp_path: Path) -> None:
    lists = [[1, 7], [], [2, 3, 7], [4, 7]]
    write_shard(tmp_path / "once", *lists)
    with ShardWriter(tmp_path / "twice", UINT16, 60_000) as writer:
        for tokens in lists:
            writer.append(documents_of(tokens))
    for suffix in (".bin", ".idx"):
        once, twice = tmp_path / f"once{suffix}", tmp_path / f"twice{suffix}"
        assert once.read_bytes() == twice.read_bytes()


def test_an_id_outside_the_vocabulary_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path / "s", UINT16, 100)
    writer.append(documents_of([1], [2]))
    with pytest.raises(InputError, match=r"document 4 \(counted from 0\) has token id 100, outside the vocabulary"):
        writer.append(documents_of([5, 6], [], [99, 100], [3]))
    writer.close()
    with (
        pytest.raises(InputError, match=r"document 0 .counted from 0. has token id 65537"),
        ShardWriter(tmp_path / "t", UINT16, 100) as w,
    ):
        w.append(documents_of([65_537]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.bin", "s.idx"]
    assert verify(tmp_path / "s", vocab_size=100) == []
    with pytest.raises(ValueError, match="cannot hold 70000 ids"):
        ShardWriter(tmp_path / "u", UINT16, 70_000)


def test_lengths_that_the_format_cannot_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sequence 1 is not 0 to 2147483647 tokens long"):
        write_index(tmp_path / "x.idx", INT32, np.array([1, 2**31]), np.array([0, 2]))
    for indices in ([0, 1], [1, 2], [0, 3]):
        with pytest.raises(ValueError, match="document indices must run from 0 to the 2 sequences"):
            write_index(tmp_path / "x.idx", INT32, np.array([1, 2]), np.array(indices))
    assert list(tmp_path.iterdir()) == []


def test_an_index_whose_documents_do_not_cover_its_sequences_is_not_completed(tmp_path: Path) -> None:
    writer = IndexWriter(tmp_path / "x.idx", INT32)
    writer.add_sequences(np.array([1, 2]))
    writer.add_documents(np.array([1]))
    with pytest.raises(ValueError, match="documents hold 1 sequences, but 2 were added"):
        writer.close()
    with pytest.raises(InputError, match="whose writing was cut short"):
        read_index(tmp_path / "x.idx")
    with pytest.raises(ValueError, match="offsets run from 0 to 2 over 3 ids"):
        ShardWriter(tmp_path / "s", INT32, 9).append(Documents(np.array([1, 2, 3]), np.array([0, 2])))


def test_an_unfinished_index_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path / "s", UINT16, 100)
    writer.append(documents_of([1] * 100))
    writer._index._file.flush()
    with pytest.raises(InputError, match="whose writing was cut short"):
        read_index(tmp_path / "s.idx")
    writer.close()


# --- planted faults -------------------------------------------------------------------------------------------------

LISTS = ([1, 2, EOD], [], [3, EOD], [4, 5, 6, EOD])
LENGTHS, POINTERS, DOCUMENTS, SIZE = 34, 34 + 12, 34 + 36, 34 + 36 + 40


def patched(path: Path, offset: int, value: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[offset : offset + len(value)] = value
    path.write_bytes(content)


INDEX_FAULTS = {
    "magic": (0, b"XMIDIDX\x00\x00", "no Megatron index"),
    "version": (9, struct.pack("<Q", 2), "index version 2"),
    "dtype code": (17, b"\x06", "dtype code 6"),
    "more sequences than there are": (18, struct.pack("<Q", 4), "4 sequences and 4 documents take 122"),
    "no document index": (26, struct.pack("<Q", 0), "3 sequences and -1 documents take 70"),
    "a length that disagrees": (LENGTHS + 4, struct.pack("<i", 3), "pointers disagree with lengths after 1 sequences"),
    "an empty sequence": (LENGTHS, struct.pack("<i", 0), "1 sequences have no token"),
    "an overflowed pointer": (POINTERS + 16, struct.pack("<q", -(2**31)), "first sequence 1.*32-bit overflow"),
    "a first pointer off 0": (POINTERS, struct.pack("<q", 2), "first sequence starts at byte 2"),
    "first document index off 0": (DOCUMENTS, struct.pack("<q", 1), "document indices run from 1 to 3"),
    "last document index": (DOCUMENTS + 32, struct.pack("<q", 2), "document indices run from 0 to 2"),
    "falling document indices": (DOCUMENTS + 16, struct.pack("<q", 0), "indices fall 1 times, first after document 1"),
}


@pytest.mark.parametrize("fault", INDEX_FAULTS)
def test_faults_of_the_index_are_named(tmp_path: Path, fault: str) -> None:
    prefix = write_shard(tmp_path / "s", *LISTS)
    assert (tmp_path / "s.idx").stat().st_size == SIZE
    assert verify(prefix, vocab_size=100, eod=EOD) == []
    offset, value, message = INDEX_FAULTS[fault]
    patched(tmp_path / "s.idx", offset, value)
    problems = verify(prefix, vocab_size=100, eod=EOD)
    with pytest.raises(AssertionError, match=message):
        raise AssertionError("\n".join(problems))
    assert all("s.idx" in problem or "s.bin" in problem for problem in problems)


@pytest.mark.parametrize(
    ("size", "message"), [(0, "within its header"), (33, "within its header"), (SIZE - 1, "take 110")]
)
def test_a_truncated_index_is_named(tmp_path: Path, size: int, message: str) -> None:
    prefix = write_shard(tmp_path / "s", *LISTS)
    content = (tmp_path / "s.idx").read_bytes()
    (tmp_path / "s.idx").write_bytes(content[:size])
    with pytest.raises(InputError, match=message):
        read_index(tmp_path / "s.idx")
    assert [message in problem for problem in verify(prefix)] == [True]


def test_faults_of_the_tokens_are_named(tmp_path: Path) -> None:
    prefix = write_shard(tmp_path / "s", *LISTS)
    tokens = (tmp_path / "s.bin").read_bytes()
    for content, message in [
        (tokens[:-2], "s.bin is cut off: it holds 8 tokens, its index says 9"),
        (tokens + b"\x01\x00", "s.bin has stray bytes: it holds 10 tokens"),
        (tokens[:-1], "s.bin has 17 bytes, which is no whole number of uint16 tokens"),
    ]:
        (tmp_path / "s.bin").write_bytes(content)
        assert [message in problem for problem in verify(prefix)] == [True]
        with pytest.raises(InputError, match=r"s\.bin"):
            IndexedReader(prefix)
    (tmp_path / "s.bin").write_bytes(tokens)
    patched(tmp_path / "s.bin", 8, struct.pack("<H", 1_000))
    patched(tmp_path / "s.bin", 12, struct.pack("<H", 100))
    assert verify(prefix, vocab_size=101) == [
        f"{tmp_path / 's.bin'}: 1 tokens are outside the vocabulary of 101, first token 4 with id 1000: encode it again"
    ]
    assert ["1 of 4 documents do not end in EOD 7, first document 2" in p for p in verify(prefix, eod=EOD)] == [True]
    (tmp_path / "s.bin").unlink()
    assert ["s.bin does not exist" in problem for problem in verify(prefix)] == [True]
    (tmp_path / "s.idx").unlink()
    assert ["s.idx does not exist" in problem for problem in verify(prefix)] == [True]


def test_negative_ids_of_int32_files_are_found(tmp_path: Path) -> None:
    prefix = write_shard(tmp_path / "s", [1, 2], dtype=INT32, vocab_size=70_000)
    patched(tmp_path / "s.bin", 4, struct.pack("<i", -1))
    assert ["1 tokens are outside" in problem for problem in verify(prefix, vocab_size=70_000)] == [True]


def test_dtypes_that_the_vocabulary_cannot_have(tmp_path: Path) -> None:
    narrow = write_shard(tmp_path / "narrow", [1, 2])
    wide = write_shard(tmp_path / "wide", [1, 2], dtype=INT32, vocab_size=70_000)
    assert ["uint16 tokens, but Megatron takes int32" in p for p in verify(narrow, vocab_size=70_000)] == [True]
    assert ["int32 tokens, but Megatron takes uint16" in p for p in verify(wide, vocab_size=32_000)] == [True]
    for vocab_size, noted in [(65_500, True), (65_536, True), (65_537, False)]:
        findings = examine(wide, vocab_size=vocab_size)
        assert ["fast cache assumes uint16" in note for note in findings.notes] == [True] * noted
        assert findings.faults == []


def test_packs_of_another_length_and_an_empty_set(tmp_path: Path) -> None:
    prefix = write_shard(tmp_path / "s", [1, 2, 3], [4, 5], [6, 7, 8])
    problems = verify(prefix, sequence_length=3)
    assert ["1 of 3 sequences are not 3 tokens, first sequence 1 with 2" in p for p in problems] == [True]
    empty = write_shard(tmp_path / "empty", [], [])
    assert ["has no sequence" in problem for problem in verify(empty)] == [True]
    assert len(IndexedReader(empty)) == 0


# --- packs ----------------------------------------------------------------------------------------------------------


def shards_of(folder: Path, lists: list[list[int]], parts: int) -> TokenSource:
    """The documents dealt over shards in turn."""
    readers = [IndexedReader(write_shard(folder / f"part{k}", *lists[k::parts])) for k in range(parts)]
    position = np.zeros(len(lists), np.int64)
    for k in range(parts):
        lengths = [len(tokens) for tokens in lists[k::parts]]
        position[k::parts] = np.cumsum(lengths) - lengths
    return TokenSource([reader.tokens for reader in readers], np.arange(len(lists)) % parts, position)


@settings(max_examples=40, deadline=None)
@given(
    lists=st.lists(st.lists(st.integers(0, 999), max_size=30), min_size=1, max_size=20),
    sequence_length=st.integers(1, 25),
    strategy=st.sampled_from(["naive", "concat", "best_fit"]),
    parts=st.integers(1, 3),
)
def test_packs_hold_their_segments_and_eod(
    tmp_path_factory: pytest.TempPathFactory,
    lists: list[list[int]],
    sequence_length: int,
    strategy: Strategy,
    parts: int,
) -> None:
    folder = tmp_path_factory.mktemp("packs")
    source = shards_of(folder, lists, parts)
    plan = pack(np.array([len(tokens) for tokens in lists]), sequence_length, strategy)
    order = permuted(plan.packs, b"key")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tokpack_core.megatron.export.BUFFER_BYTES", 3 * 2 * sequence_length)
        writer = PackedWriter(folder / "x", folder / "x_docs", UINT16, sequence_length, EOD)
    half = plan.packs // 2
    writer.write_block(plan, order[:half], source)
    writer.write_block(plan, order[half:], source)
    exported = writer.close()
    assert (exported.packs, exported.segments, exported.same_as) == (plan.packs, plan.segments, "hard_link")

    want: list[list[list[int]]] = []
    for p in order.tolist():
        rows = range(plan.pack_offsets[p], plan.pack_offsets[p + 1])
        pieces = [lists[plan.document[s]][plan.start[s] : plan.start[s] + plan.length[s]] for s in rows]
        tail = sequence_length - sum(map(len, pieces))
        want.append(pieces + [[EOD] * tail] * (tail > 0))
    packs, docs = IndexedReader(folder / "x"), IndexedReader(folder / "x_docs")
    assert [packs.sequence(i).tolist() for i in range(len(packs))] == [list(chain(*pieces)) for pieces in want]
    assert [docs.sequence(i).tolist() for i in range(len(docs))] == list(chain(*want))
    assert packs.index.document_indices.tolist() == list(range(plan.packs + 1))
    assert np.diff(docs.index.document_indices).tolist() == [len(pieces) for pieces in want]
    if plan.packs:
        assert verify(folder / "x", sequence_length=sequence_length, vocab_size=1_000) == []
        assert verify(folder / "x_docs", vocab_size=1_000) == []
    assert (folder / "x.bin").samefile(folder / "x_docs.bin")


def test_aligned_packs_by_hand(tmp_path: Path) -> None:
    """S 12, documents at multiples of 4: 3 + a gap of 1, 5 + a gap of 3, and a filled tail only where 4 are left."""
    source = shards_of(tmp_path, [[1, 2, EOD], [3, 4, 5, 6, EOD], [8, 9, 1, EOD]], 1)
    plan = pack(np.array([3, 5, 4]), 12, "naive")
    joined = PackingPlan(np.array([0, 2, 3]), plan.document, plan.start, plan.length, plan.chunk, plan.chunks)
    with PackedWriter(tmp_path / "x", tmp_path / "x_docs", UINT16, 12, EOD, align=4) as writer:
        writer.write_block(joined, np.arange(2), source)
    packs, docs = IndexedReader(tmp_path / "x"), IndexedReader(tmp_path / "x_docs")
    want = [[[1, 2, EOD], [EOD], [3, 4, 5, 6, EOD], [EOD] * 3], [[8, 9, 1, EOD], [EOD] * 8]]
    assert [packs.sequence(i).tolist() for i in range(2)] == [list(chain(*pieces)) for pieces in want]
    assert [docs.sequence(i).tolist() for i in range(6)] == list(chain(*want))
    assert docs.index.document_indices.tolist() == [0, 4, 6]
    exported = writer.close()
    assert (exported.packs, exported.segments, exported.padding) == (2, 3, 12)
    tight = PackedWriter(tmp_path / "y", tmp_path / "y_docs", UINT16, 8, EOD, align=4)
    with pytest.raises(ValueError, match="longer than 8 tokens"):
        tight.write_block(joined, np.arange(2), source)
    with pytest.raises(ValueError, match="no multiple of the alignment 5"):
        PackedWriter(tmp_path / "z", tmp_path / "z_docs", UINT16, 12, EOD, align=5)


def test_a_source_that_is_too_short_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    plan = pack(np.array([3, 4]), 8, "best_fit")
    source = TokenSource([np.zeros(6, UINT16)], np.zeros(2, np.int32), np.array([0, 3]))
    with (
        pytest.raises(InputError, match="document 1 of the plan reaches past the end of part 0, which has 6 tokens"),
        PackedWriter(tmp_path / "x", tmp_path / "x_docs", UINT16, 8, EOD) as writer,
    ):
        writer.write_block(plan, np.arange(1), source)
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_cannot_be_read_is_no_matter_of_the_plan(tmp_path: Path) -> None:
    plan = pack(np.array([3, 4]), 8, "best_fit")
    path = tmp_path / "part.bin"
    np.arange(7, dtype=UINT16).tofile(path)
    source = TokenSource([map_tokens(path, UINT16)], np.zeros(2, np.int32), np.array([0, 3]))
    writer = PackedWriter(tmp_path / "x", tmp_path / "x_docs", UINT16, 8, EOD)
    with path.open("ab") as unreadable, pytest.raises(OSError, match="Bad file descriptor") as caught:
        writer._write_packs(plan, np.arange(1), source, [unreadable], ModeRuns.of_text(plan.length))
    assert caught.value.filename == str(path)
    os.truncate(path, 6)
    with path.open("rb") as cut, pytest.raises(OSError, match="cut while it was read"):
        writer._write_packs(plan, np.arange(1), source, [cut], ModeRuns.of_text(plan.length))


def test_plan_and_writer_that_disagree_are_refused(tmp_path: Path) -> None:
    plan = pack(np.array([3, 4]), 8, "best_fit")
    writer = PackedWriter(tmp_path / "x", tmp_path / "x_docs", UINT16, 6, EOD)
    with pytest.raises(ValueError, match="longer than 6 tokens"):
        writer.write_block(plan, np.arange(1), TokenSource([np.zeros(9, UINT16)], np.zeros(2), np.array([0, 3])))
    narrow = pack(np.array([3]), 6, "best_fit")
    with pytest.raises(ValueError, match="a part has int32 tokens, the packs have uint16"):
        writer.write_block(narrow, np.arange(1), TokenSource([np.zeros(9, INT32)], np.zeros(1), np.zeros(1)))
    writer.close()
    with pytest.raises(ValueError, match="cannot hold EOD 70000"):
        PackedWriter(tmp_path / "y", tmp_path / "y_docs", UINT16, 6, 70_000)


def test_a_file_system_without_links_gets_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError("this file system has no hard links")

    (tmp_path / "a").write_bytes(b"tokens")
    monkeypatch.setattr("os.link", refuse)
    assert link_or_copy(tmp_path / "a", tmp_path / "b") == "copy"
    assert (tmp_path / "b").read_bytes() == b"tokens"


def test_blend_file(tmp_path: Path) -> None:
    weights = blend_weights([1.0, 2.0], [300, 100])
    assert weights == [300.0, 200.0]
    train = blend_line(weights, ["my sets/zh/train_8", "my sets/code/train_8"])
    assert train == ["300.0", "my sets/zh/train_8", "200.0", "my sets/code/train_8"]
    write_blend(tmp_path / "blend.json", {"train": train, "valid": []})
    assert json.loads((tmp_path / "blend.json").read_text()) == {"train": train, "valid": None, "test": None}
    with pytest.raises(ValueError, match="must be positive"):
        blend_line([0.0], ["a"])


def test_shell_arguments_as_bash_reads_them(tmp_path: Path) -> None:
    folder = tmp_path / "a set"
    folder.mkdir()
    script = shell_arguments({"train": ["3.0", "it's zh/train_8", "2.0", "code/train_8"], "test": []}, 8)
    (folder / "arguments.sh").write_text(script)
    command = ["bash", "-c", f'source "{folder}/arguments.sh" && printf "%s\\n" "${{MEGATRON_DATA_ARGUMENTS[@]}}"']
    run = subprocess.run(command, env={"MEGATRON_DATA_CACHE": "/scratch/c"}, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        *("--train-data-path", "3.0", f"{folder}/it's zh/train_8", "2.0", f"{folder}/code/train_8"),
        *("--data-cache-path", "/scratch/c", "--seq-length", "8", "--eod-mask-loss", "--reset-position-ids"),
    ]
    without_cache = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert without_cache.returncode != 0
    assert "a folder that can be written" in without_cache.stderr
