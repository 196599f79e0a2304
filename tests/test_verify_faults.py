"""`tokpack verify PREFIX` finds and names each planted fault, with digests made right again so that nothing else can.

Each fault is planted in a copy of a sound prefix that `tokpack encode` or `tokpack pack` wrote.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command_line import EOD, tokpack
from tests.small_project import write_small_project
from tokpack_core.commands.pack import Packing, pack, packing_config
from tokpack_core.commands.verify import Known, verify_prefix, verify_target
from tokpack_core.commands.verify_objects import Checked
from tokpack_core.megatron.indexed_dataset import read_index, write_index
from tokpack_core.megatron.verify import examine

S = 256


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """enc: encoded with EOD 0 and a vocabulary of 600; packed; and packed with documents at multiples of 4."""
    root = tmp_path_factory.mktemp("sound")
    write_small_project(root)
    options = ("--family", "byte_bpe", "--vocab-size", "600", "--special-token", f"eod={EOD}", "--output", "tok")
    tokpack(root, "train", *options, "data/docs")
    tokpack(root, "encode", "--tokenizer", "tok", "--append-eod", "--output", "set/enc", "data/docs")
    for name, settings in [("packed", {}), ("aligned", {"align": 4})]:
        packing = Packing(packing_config(sequence_length=S, **settings), eod=0, append_eod=False, seed=0)
        pack([root / "set" / "enc"], root / "set" / name, packing, quiet=True)
    return root / "set"


@pytest.fixture
def copy(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "set"))


def sign_again(folder: Path) -> None:
    """Make the manifests' sizes and digests those of the files as they are now."""
    for path in folder.glob("*.manifest.json"):
        content = json.loads(path.read_bytes())
        for entry in content["outputs"]:
            file = folder / entry["path"]
            if file.is_file():
                entry |= {"size": file.stat().st_size, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        path.write_text(json.dumps(content), encoding="utf-8")


def patch(path: Path, offset: int, value: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(value)


def set_token(prefix: Path, place: int, token: int) -> None:
    for path in (prefix.with_name(f"{prefix.name}.bin"), prefix.with_name(f"{prefix.name}_docs.bin")):
        if path.is_file():
            patch(path, 2 * place, struct.pack("<H", token))


def last_tokens(folder: Path, name: str) -> list[int]:
    """Place of the last token of each sequence that ends in EOD 0."""
    index = read_index(folder / f"{name}.idx")
    tokens = np.fromfile(folder / f"{name}.bin", "<u2")
    ends = index.sequence_pointers // 2 + index.sequence_lengths - 1
    return [int(end) for end in ends if tokens[end] == 0]


def rewrite_index(folder: Path, name: str, change: Callable[[list[int], list[int]], Any]) -> None:
    index = read_index(folder / f"{name}.idx")
    lengths, documents = index.sequence_lengths.tolist(), index.document_indices.tolist()
    change(lengths, documents)
    write_index(folder / "new.idx", index.dtype, np.array(lengths), np.array(documents))
    (folder / "new.idx").replace(folder / f"{name}.idx")


def sequences(folder: Path, name: str) -> int:
    return read_index(folder / f"{name}.idx").sequence_lengths.size


def pointers_wrapped(folder: Path) -> None:
    """The second pointer as 32-bit arithmetic would leave it past 2 GiB."""
    patch(folder / "enc.idx", 34 + 4 * sequences(folder, "enc") + 8, struct.pack("<q", -(2**31) + 64))


def wide_tokens(folder: Path) -> None:
    """Tokens and index as int32, which a vocabulary of 600 cannot have."""
    np.fromfile(folder / "enc.bin", "<u2").astype("<i4").tofile(folder / "enc.bin")
    index = read_index(folder / "enc.idx")
    write_index(folder / "new.idx", np.dtype("<i4"), index.sequence_lengths, index.document_indices)
    (folder / "new.idx").replace(folder / "enc.idx")


def emptied(folder: Path) -> None:
    (folder / "enc.bin").write_bytes(b"")
    write_index(folder / "enc.idx", np.dtype("<u2"), np.zeros(0, np.int32), np.zeros(1, np.int64))


def longer_pack(folder: Path) -> None:
    def change(lengths: list[int], documents: list[int]) -> None:
        lengths[0] += 1
        lengths[1] -= 1

    rewrite_index(folder, "packed", change)


def moved_pack_edge(folder: Path) -> None:
    def change(lengths: list[int], documents: list[int]) -> None:
        documents[1] += 1

    rewrite_index(folder, "packed_docs", change)


def spoiled_tail(folder: Path) -> None:
    index, tokens = read_index(folder / "packed_docs.idx"), np.fromfile(folder / "packed.bin", "<u2")
    first = index.sequence_pointers // 2
    tails = [
        p for p in index.document_indices[1:] - 1 if not tokens[first[p] : first[p] + index.sequence_lengths[p]].any()
    ]
    long = next(p for p in tails if index.sequence_lengths[p] > 3)
    set_token(folder / "packed", int(first[long]) + 1, 5)


def spoiled_gap(folder: Path) -> None:
    index = read_index(folder / "aligned_docs.idx")
    first = index.sequence_pointers // 2
    set_token(folder / "aligned", int(first[np.flatnonzero(first % 4)[0]]), 5)


def with_cache(folder: Path, inside: str) -> None:
    place = folder / inside / "GPTDataset_indices"
    place.mkdir(parents=True)
    base = "0123-GPTDataset-train"
    description = json.dumps({"class": "GPTDataset", "dataset_path": str(folder / "enc")})
    (place / f"{base}-description.txt").write_text(description, encoding="utf-8")
    count = sequences(folder, "enc")
    np.save(place / f"{base}-document_index.npy", np.arange(count, dtype=np.int32))
    np.save(place / f"{base}-sample_index.npy", np.array([[0, 0], [1, 1]], np.int32))
    np.save(place / f"{base}-shuffle_index.npy", np.zeros(1, np.uint32))


def older_cache(folder: Path) -> None:
    with_cache(folder, "enc/cache")
    for path in (folder / "enc").rglob("*.*"):
        os.utime(path, (1, 1))


def cache_of_more_sequences(folder: Path) -> None:
    with_cache(folder, "cache")
    place = folder / "cache" / "GPTDataset_indices" / "0123-GPTDataset-train-document_index.npy"
    np.save(place, np.arange(sequences(folder, "enc") + 1, dtype=np.int32))


def described_cache(folder: Path, first: int = 0, step: int = 32) -> None:
    """As Megatron makes it of a split that is the whole prefix, the first sequences left out, a sample every `step`."""
    with_cache(folder, "cache")
    base = folder / "cache" / "GPTDataset_indices" / "0123-GPTDataset-train"
    said: dict[str, Any] = {"dataset_path": str(folder / "enc"), "sequence_length": 32}
    said |= {"index_split": "train", "split_matrix": [[0, 1.0], None, None]}
    base.with_name(f"{base.name}-description.txt").write_text(json.dumps(said), encoding="utf-8")
    lengths = read_index(folder / "enc.idx").sequence_lengths.astype(np.int64)
    order = np.arange(first, lengths.size)[::-1]
    ends = np.cumsum(lengths[order])
    tokens = np.arange(0, ends[-1], step)
    places = np.searchsorted(ends, tokens, side="right")
    samples = np.stack([places, tokens - ends[places] + lengths[order][places]], 1)
    np.save(base.with_name(f"{base.name}-document_index.npy"), order.astype(np.int32))
    np.save(base.with_name(f"{base.name}-sample_index.npy"), samples.astype(np.int32))


def cache_described_otherwise(folder: Path) -> None:
    described_cache(folder)
    (folder / "cache" / "GPTDataset_indices" / "0123-GPTDataset-train-description.txt").write_text("[]")


def cache_of_anything(folder: Path) -> None:
    (folder / "cache" / "GPTDataset_indices").mkdir(parents=True)
    (folder / "cache" / "GPTDataset_indices" / "old.npy").touch()


def truncated(name: str, cut: int) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size - cut)


def stray(name: str, value: bytes) -> Callable[[Path], None]:
    return lambda folder: patch(folder / name, (folder / name).stat().st_size, value)


def patched_index(offset: Callable[[int], int], value: bytes) -> Callable[[Path], None]:
    return lambda folder: patch(folder / "enc.idx", offset(sequences(folder, "enc")), value)


FAULTS: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "wrong magic": ("enc", lambda f: patch(f / "enc.idx", 0, b"X"), "enc.idx is no Megatron index"),
    "wrong version": ("enc", lambda f: patch(f / "enc.idx", 9, b"\x02"), "has index version 2"),
    "wrong dtype code": ("enc", lambda f: patch(f / "enc.idx", 17, b"\x06"), "has dtype code 6"),
    "truncated idx": ("enc", truncated("enc.idx", 8), "enc.idx has .* bytes, but"),
    "idx truncated in its header": ("enc", lambda f: os.truncate(f / "enc.idx", 20), "cut off within its header"),
    "truncated bin": ("enc", truncated("enc.bin", 2), "enc.bin is cut off"),
    "bin truncated in a token": ("enc", truncated("enc.bin", 1), "no whole number of uint16 tokens"),
    "truncated bin of packs": ("packed", truncated("packed.bin", 2 * S), "packed.bin is cut off"),
    "stray bytes": ("enc", stray("enc.bin", b"\x01\x00"), "enc.bin has stray bytes"),
    "a missing bin": ("enc", lambda f: (f / "enc.bin").unlink(), "enc.bin: missing"),
    "lengths disagree with pointers": (
        "enc",
        patched_index(lambda n: 34, struct.pack("<i", 3)),
        "pointers disagree with lengths after 1 sequences",
    ),
    "int32-overflowed pointers": ("enc", pointers_wrapped, "32-bit overflow"),
    "document indices not from 0": (
        "enc",
        patched_index(lambda n: 34 + 12 * n, struct.pack("<q", 1)),
        "document indices run from 1 to",
    ),
    "document indices not to Ns": (
        "enc",
        lambda f: patch(f / "enc.idx", (f / "enc.idx").stat().st_size - 8, struct.pack("<q", 2)),
        "document indices run from 0 to 2, not from 0 to its",
    ),
    "document indices fall": (
        "enc",
        patched_index(lambda n: 34 + 12 * n + 16, struct.pack("<q", 0)),
        "document indices fall 1 times",
    ),
    "an id outside the vocabulary": ("enc", lambda f: set_token(f / "enc", 1, 600), "outside the vocabulary of 600"),
    "an id outside, in packs": ("packed", lambda f: set_token(f / "packed", 1, 601), "outside the vocabulary of 600"),
    "a dtype that the vocabulary cannot have": ("enc", wide_tokens, "int32 tokens, but Megatron takes uint16"),
    "a document without EOD": (
        "enc",
        lambda f: set_token(f / "enc", last_tokens(f, "enc")[2], 5),
        "1 of .* documents do not end in EOD 0",
    ),
    "a document without EOD, in packs": (
        "packed",
        lambda f: set_token(f / "packed", last_tokens(f, "packed_docs")[0], 5),
        "pieces of documents do not end in EOD 0, but only .* go on in another pack",
    ),
    "a pack that is not S": ("packed", longer_pack, f"2 of .* sequences are not {S} tokens, first sequence 0 with 257"),
    "a pack that is not S, in documents": (
        "packed",
        moved_pack_edge,
        f"packed_docs.idx: pack 0 of .* is not {S} tokens",
    ),
    "padding that is not EOD": ("packed", spoiled_tail, "padding that is not EOD 0 at the end of pack"),
    "a second view of other bytes": (
        "packed",
        lambda f: patch(f / "packed_docs.bin", 2, b"\x07\x00"),
        "packed_docs.bin does not hold the bytes of",
    ),
    "padding of the alignment": ("aligned", spoiled_gap, "padding that is not EOD 0 after a document of pack"),
    "a cache older than the prefix": ("enc", older_cache, "enc/cache/GPTDataset_indices is a stale cache"),
    "a cache of other sequences": ("enc", cache_of_more_sequences, "set/cache/GPTDataset_indices is a stale cache"),
    "a cache of fewer sequences": ("enc", lambda f: described_cache(f, first=1), "GPTDataset_indices is a stale cache"),
    "a cache of other lengths": ("enc", lambda f: described_cache(f, step=31), "GPTDataset_indices is a stale cache"),
    "a cache with another text": ("enc", cache_described_otherwise, "GPTDataset_indices is a stale cache"),
    "a cache that says nothing": ("enc", cache_of_anything, "set/cache/GPTDataset_indices is a stale cache"),
    "an empty set": ("enc", emptied, "enc.idx has no sequence"),
}


def verified(folder: Path, name: str) -> Checked:
    return verify_target(str(folder / name), quiet=True)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_planted_fault_is_found_and_named(copy: Path, fault: str) -> None:
    name, plant, message = FAULTS[fault]
    assert verified(copy, name).faults == []
    plant(copy)
    sign_again(copy)
    with pytest.raises(AssertionError, match=message):
        raise AssertionError("\n".join(verified(copy, name).faults))


@pytest.mark.parametrize("name", ["enc.bin", "packed.bin", "packed_docs.idx", "packed_plan.parquet"])
def test_a_digest_that_differs_is_named(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    faults = verified(copy, name.split(".")[0].split("_")[0]).faults
    assert any(f"{name}: content differs from its sha256 in" in fault for fault in faults)


@pytest.mark.parametrize("inside", ["cache", "enc/cache"])
def test_a_fresh_cache_is_a_note(copy: Path, inside: str) -> None:
    with_cache(copy, inside)
    checked = verified(copy, "enc")
    assert checked.faults == []
    assert [f"{inside}/GPTDataset_indices caches Megatron's indices" in note for note in checked.notes] == [True]
    assert verified(copy, "packed") == verified(copy, "packed_docs")
    assert (verified(copy, "packed").faults, verified(copy, "packed").notes) == ([], [])


def test_a_cache_that_is_as_it_says_is_a_note(copy: Path) -> None:
    described_cache(copy)
    assert (verified(copy, "enc").faults, len(verified(copy, "enc").notes)) == ([], 1)


def test_the_vocabulary_advice_is_a_note_and_the_exit_code_0(tmp_path: Path) -> None:
    np.array([3, 0], "<i4").tofile(tmp_path / "x.bin")
    write_index(tmp_path / "x.idx", np.dtype("<i4"), np.array([2]), np.array([0, 1]))
    run = tokpack(tmp_path, "verify", "x", "--vocab-size", "65536", "--eod", "0", "--json")
    assert (run.json["sound"], run.json["faults"]) == (True, [])
    assert ["fast cache assumes uint16" in note for note in run.json["notes"]] == [True]
    assert run.err.startswith("note: ")
    run = tokpack(tmp_path, "verify", "x", "--eod", "1", "--sequence-length", "4", may_fail=True)
    assert run.code == 1
    assert "1 of 1 documents do not end in EOD 1" not in run.err  # positions are only looked at in a sound index
    assert "1 of 1 sequences are not 4 tokens" in run.err


def test_what_the_user_says_comes_first(copy: Path) -> None:
    assert "outside the vocabulary of 300" in "\n".join(verify_prefix(copy / "enc", Known(vocab_size=300)).faults)
    assert "do not end in EOD 9" in "\n".join(verify_prefix(copy / "enc", Known(eod=9)).faults)


def test_pointers_past_2_gib_that_wrapped(tmp_path: Path) -> None:
    """Three sequences of 2^29 tokens of 4 bytes; the third pointer is 2^32, which 32 bits leave as 0."""
    write_index(tmp_path / "x.idx", np.dtype("<i4"), np.full(3, 2**29), np.arange(4))
    with (tmp_path / "x.bin").open("wb") as file:
        file.truncate(3 * 2**31)
    assert examine(tmp_path / "x").faults == []
    patch(tmp_path / "x.idx", 34 + 12 + 16, struct.pack("<q", 0))
    (fault,) = examine(tmp_path / "x").faults
    assert "first sequence 1, whose next starts at byte 0 (32-bit overflow)" in fault
