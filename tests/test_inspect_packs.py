"""What `tokpack inspect` says of packs: pieces k of n from the plan, gaps, fill, and the picture of the mask."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.command_line import read_raw, tokpack
from tests.small_project import write_small_project
from tokpack_core.commands.inspect_prefix import Segment, fill, read_segments, with_guessed_tail, with_pieces
from tokpack_core.commands.mask_picture import CELLS, mask_picture, sampled_mask
from tokpack_core.commands.pack import Packing, pack, packing_config
from tokpack_core.commands.pack_pieces import KnownPack, Piece, find_pack
from tokpack_core.commands.verify import verify_target
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_reader import IndexedReader
from tokpack_core.megatron.shards import ShardWriter
from tokpack_core.tokenizers.encoded import from_lists
from tokpack_core.training.segments import PackSegments, text_segments

LISTS = [[5] * 20 + [0], [6, 6, 0], [], [7] * 8 + [0], [8, 0]]


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    with ShardWriter(tmp_path / "enc", np.dtype("<u2"), 100) as writer:
        writer.append(from_lists(LISTS))
    return tmp_path / "enc"


def packed(shard: Path, name: str, seed: int = 0, **settings: object) -> Path:
    output = shard.with_name(name)
    pack([shard], output, Packing(packing_config(**settings), eod=0, append_eod=False, seed=seed), quiet=True)
    return output


def test_the_plan_beside_the_packs_says_where_every_token_is_from(shard: Path) -> None:
    prefix = packed(shard, "x", sequence_length=12, align=4, strategy="first_fit")
    packs = read_raw(prefix).sequences
    rows = pq.read_table(prefix.with_name("x_plan.parquet")).to_pylist()
    assert {row["input"] for row in rows} == {0}
    used = dict.fromkeys(range(len(packs)), 0)
    for row in rows:
        at = used[row["pack"]]
        tokens = LISTS[row["document"]][row["start"] : row["start"] + row["length"]]
        assert packs[row["pack"]][at : at + row["length"]] == tokens
        used[row["pack"]] += row["length"] + -row["length"] % 4
    assert sum(row["length"] for row in rows) == sum(map(len, LISTS))
    assert sorted((row["chunk"], row["chunks"]) for row in rows if row["document"] == 0) == [(0, 2), (1, 2)]
    for number in range(len(packs)):
        known = find_pack(prefix, number)
        assert known is not None
        assert known.align == 4
        assert [p.length for p in known.pieces] == [row["length"] for row in rows if row["pack"] == number]


def test_policies_reach_the_command(shard: Path) -> None:
    def counts(name: str, **settings: object) -> dict[str, object]:
        packing = Packing(packing_config(**settings), eod=0, append_eod=False, seed=0)
        manifest = pack([shard], shard.with_name(name), packing, quiet=True)
        assert {key: manifest["parameters"][key] for key in settings} == settings
        return manifest["counts"]

    dropped = counts("a", sequence_length=12, long_documents="drop")
    assert (dropped["dropped_documents"], dropped["dropped_document_tokens"]) == (1, 21)
    assert (dropped["tokens"], dropped["tokens_lost"]) == (35, 0)
    assert counts("b", sequence_length=16, align=8)["alignment_padding"] == 3 + 5 + 7 + 6
    assert counts("c", sequence_length=64, documents_per_pack=2)["packs"] == 2
    short = counts("d", sequence_length=18, min_chunk=4, short_chunks="drop")
    assert (short["dropped_chunks"], short["dropped_chunk_tokens"]) == (1, 3)
    with pytest.raises(InputError, match="1 documents are longer than a pack of 12 tokens, first document 0"):
        counts("e", sequence_length=12, long_documents="error")
    with pytest.raises(InputError, match=r"^sequence_length 12 is no multiple of align 5$"):
        packing_config(sequence_length=12, align=5)
    assert not list(shard.parent.glob("e*.bin")) or [p.name for p in shard.parent.glob("e*.bin")] == ["enc.bin"]


def test_pieces_gaps_and_tail_by_hand() -> None:
    def segment(length: int, token: int) -> Segment:
        return Segment([token] * length, None, length)

    segments = [segment(3, 5), segment(1, 0), segment(4, 6), segment(4, 0)]
    known = KnownPack([Piece(3, 0, 1), Piece(4, 1, 3)], align=4)
    found = with_pieces(segments, known)
    assert [s.filler for s in found] == [False, True, False, True]
    assert [(s.chunk, s.chunks) for s in found] == [(0, 1), (None, None), (1, 3), (None, None)]
    assert fill(found) == 7 / 12
    assert [s.filler for s in with_guessed_tail(segments)] == [False, False, False, True]
    assert not with_guessed_tail([segment(4, 0)])[0].filler


def text(lengths: list[int]) -> PackSegments:
    return text_segments(np.array(lengths, np.int32), filled_tail=False)


def test_an_image_is_a_square_in_the_picture() -> None:
    columns = [1, 3, 2], [0, 1, 0], [0, 0, 0], [0, 2, 0]
    length, mode, document, attention = (np.array(column, np.int32) for column in columns)
    segments = PackSegments(length, mode.astype(np.int8), document, attention.astype(np.int8))
    assert [line.plain for line in mask_picture(segments, ["red", "green", "blue"])] == [
        "██          ",
        "  ██████    ",
        "  ██████    ",
        "  ██████    ",
        "██████████  ",
        "████████████",
    ]


def test_the_mask_is_block_causal() -> None:
    seen, piece = sampled_mask(text([3, 1, 2]))
    assert seen.shape == (48, 48)  # 6 positions, 8 samples each
    position = np.arange(48) // 8
    owner = np.array([0, 0, 0, 1, 2, 2])
    assert piece.tolist() == owner[position].tolist()
    wanted = (owner[position][:, None] == owner[position][None, :]) & (position[:, None] >= position[None, :])
    np.testing.assert_array_equal(seen, wanted)
    picture = mask_picture(text([3, 1, 2]), ["red", "green", "blue"])
    assert [line.plain for line in picture] == [
        "██          ",
        "████        ",
        "██████      ",
        "      ██    ",
        "        ██  ",
        "        ████",
    ]
    assert picture[3].spans[3].style == "green"
    assert len(mask_picture(text([4096]), ["red"])) == CELLS


def test_inspect_shows_the_store_s_pieces_and_a_picture(tmp_path: Path) -> None:
    project = write_small_project(tmp_path)
    project.edit("sequence_length: 512}", "sequence_length: 512, align: 8, min_chunk: 64}")
    built = project.build()["megatron_dataset/base"]
    prefix = built.folder / "docs" / "train_512"
    pieces = []
    for number in range(built.counts["packs"]["docs/train_512"]):
        segments = read_segments(prefix, IndexedReader(prefix), number, None)
        assert all(set(segment.ids) == {0} for segment in segments if segment.filler)
        pieces += [segment for segment in segments if not segment.filler]
    for piece in pieces:
        assert piece.chunk is not None
        assert piece.chunks is not None
        assert (piece.ids[-1] == 0) == (piece.chunk == piece.chunks - 1)
    assert any(piece.chunks != 1 for piece in pieces)
    out = tokpack(tmp_path, "inspect", prefix, "--pack", "0").out
    assert "who sees whom" in out
    assert "██" in out
    assert verify_target(str(prefix), quiet=True).faults == []
