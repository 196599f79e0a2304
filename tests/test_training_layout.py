"""cu_seqlens, positions, labels, loss masks and attention masks against brute force."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training_sets import SEQUENCE_LENGTH, TextSet, write_text_set
from tokpack_core.config import Strategy
from tokpack_core.megatron.export import PackedWriter, TokenSource
from tokpack_core.packing.plan import PackingPlan
from tokpack_core.training.collators import flatten, flatten_visible, megatron_batch
from tokpack_core.training.context_parallel import pad_documents, rank_places
from tokpack_core.training.layout import cu_seqlens, document_ids, loss_mask, max_seqlen, position_ids
from tokpack_core.training.packed_dataset import PackedDataset
from tokpack_core.training.segments import FILL, IMAGE, TEXT, ImageAttention, PackSegments, joined
from tokpack_core.training.segments_file import ROW, read_segment_rows, segments_path
from tokpack_core.training.visibility import block_mask, dense_mask
from tokpack_core.training.visible_keys import visibility

CASES: list[tuple[Strategy, int, bool]] = [
    ("best_fit", 32_000, False),
    ("best_fit", 150_000, True),
    ("concat", 32_000, True),
    ("concat", 150_000, False),
    ("naive", 32_000, False),
]


@pytest.fixture(scope="module", params=CASES, ids=str)
def text_set(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[TextSet, PackedDataset]:
    strategy, vocab_size, with_segments = request.param
    written = write_text_set(tmp_path_factory.mktemp("set") / "packed", strategy, vocab_size, with_segments)
    return written, PackedDataset(written.prefix, None if with_segments else 0)


def test_every_position_and_label_of_every_pack(text_set: tuple[TextSet, PackedDataset]) -> None:
    written, dataset = text_set
    assert len(dataset) == len(written.order) > 20
    untrained_documents = 0
    for number in range(len(dataset)):
        tokens, pieces, trained = written.tokens(number), written.pieces(number), written.trained(number)
        tail = written.places(number).count(None)
        lengths = [len(piece) for piece in pieces] + [tail] * (tail > 0)
        batch = megatron_batch([dataset[number]])
        assert batch["tokens"][0].tolist() == tokens
        assert batch["labels"][0].tolist() == [*tokens[1:], 0]
        assert batch["loss_mask"][0].tolist() == [float(flag) for flag in trained]
        assert batch["position_ids"][0].tolist() == [i for length in lengths for i in range(length)]
        edges = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
        assert batch["cu_seqlens"][0].tolist() == edges + [SEQUENCE_LENGTH] * (SEQUENCE_LENGTH + 1 - len(edges))
        assert batch["max_seqlen"].tolist() == [max(lengths)]
        flat = flatten([dataset[number]])
        labels = [token if ok else -100 for token, ok in zip(tokens[1:], trained[:-1], strict=True)]
        assert flat["labels"].tolist() == [[-100, *labels]]
        untrained_documents += sum(len(piece) == 1 for piece in pieces)
    assert untrained_documents > 0


def test_packs_of_a_batch_lie_back_to_back(text_set: tuple[TextSet, PackedDataset]) -> None:
    written, dataset = text_set
    chosen = [3, 0, 7]
    flat = flatten([dataset[number] for number in chosen])
    assert flat["input_ids"].tolist() == [[token for number in chosen for token in written.tokens(number)]]
    alone = [flatten([dataset[number]]) for number in chosen]
    for name in ("labels", "position_ids"):
        assert flat[name].tolist() == [[x for one in alone for x in one[name][0].tolist()]]
    edges = [e + i * SEQUENCE_LENGTH for i, one in enumerate(alone) for e in one["cu_seq_lens_q"].tolist()[:-1]]
    assert flat["cu_seq_lens_q"].tolist() == [*edges, 3 * SEQUENCE_LENGTH]
    assert flat["cu_seq_lens_q"].dtype == torch.int32
    assert flat["max_length_k"] == max(one["max_length_k"] for one in alone)
    together = flatten_visible([dataset[number] for number in chosen])["visibility"]
    alone_seen = [dense_mask(flatten_visible([dataset[number]])["visibility"])[0] for number in chosen]
    assert torch.equal(dense_mask(together)[0], torch.block_diag(*alone_seen).bool())


@pytest.mark.parametrize("strategy", ["best_fit", "concat"])
def test_tails_told_by_eod_and_by_the_segments_file_are_the_same(tmp_path: Path, strategy: Strategy) -> None:
    write_text_set(tmp_path / "set", strategy, 32_000, with_segments=True)
    stored = PackedDataset(tmp_path / "set")
    told = megatron_batch([stored[i] for i in range(len(stored))])
    tails = [bool(stored[i].segments.document[-1] == FILL) for i in range(len(stored))]
    seen = flatten_visible([stored[i] for i in range(len(stored))])
    segments_path(tmp_path / "set_docs").unlink()
    derived = PackedDataset(tmp_path / "set", eod=0)
    for name, values in megatron_batch([derived[i] for i in range(len(derived))]).items():
        assert torch.equal(values, told[name])
    for name, values in flatten_visible([derived[i] for i in range(len(derived))]).items():
        assert torch.equal(values, seen[name])
    assert any(tails)


Spans = list[tuple[int, int, int, int]]
"""(length, mode, document, image attention)."""


@st.composite
def spans(draw: st.DrawFn) -> Spans:
    drawn: Spans = []
    for document in range(draw(st.integers(1, 4))):
        attention = draw(st.sampled_from(list(ImageAttention)))
        for _ in range(draw(st.integers(1, 4))):
            drawn.append((draw(st.integers(1, 6)), draw(st.sampled_from([TEXT, IMAGE])), document, attention))
    if draw(st.booleans()):
        drawn.append((draw(st.integers(1, 6)), TEXT, FILL, 0))
    return drawn


def as_segments(drawn: Spans) -> PackSegments:
    length, mode, document, attention = (list(column) for column in zip(*drawn, strict=True))
    return PackSegments(
        np.array(length, np.int32), np.array(mode, np.int8), np.array(document, np.int32), np.array(attention, np.int8)
    )


def sees(drawn: Spans, query: int, key: int) -> bool:
    """The rule of `segments`, token by token."""
    owner = [number for number, span in enumerate(drawn) for _ in range(span[0])]
    q, k = owner[query], owner[key]
    (_, q_mode, q_document, attention), k_document = drawn[q], drawn[k][2]
    if q_document != k_document:
        return False
    if q_mode == TEXT:
        return key <= query
    if q == k:
        return True
    if k > q or attention == ImageAttention.ISOLATE_MODALITIES:
        return False
    if attention == ImageAttention.CAUSAL:
        return True
    before = [mode for _, mode, document, _ in drawn[: k + 1] if document == q_document]
    return IMAGE not in before


@settings(max_examples=60, deadline=None)
@given(spans())
def test_masks_follow_the_rule_token_by_token(drawn: Spans) -> None:
    segments = as_segments(drawn)
    tokens = segments.tokens
    seen = torch.from_numpy(visibility(segments))[None]
    expected = [[sees(drawn, q, k) for k in range(tokens)] for q in range(tokens)]
    assert dense_mask(seen)[0].tolist() == expected
    owner = [span for span in drawn for _ in range(span[0])]
    assert document_ids(segments).tolist() == [span[2] for span in owner]
    behind = [*owner[1:], None]
    assert loss_mask(segments).tolist() == [
        there is not None and there[1] == TEXT and here[2] == there[2] != FILL
        for here, there in zip(owner, behind, strict=True)
    ]
    edges = [i for i in range(tokens) if i == 0 or owner[i][2] != owner[i - 1][2]] + [tokens]
    assert cu_seqlens(segments).tolist() == edges
    assert cu_seqlens(segments).dtype == np.int32
    assert max_seqlen(cu_seqlens(segments)) == max(b - a for a, b in pairwise(edges))
    assert position_ids(cu_seqlens(segments)).tolist() == [i - max(e for e in edges if e <= i) for i in range(tokens)]


@settings(max_examples=25, deadline=None)
@given(spans(), spans())
def test_joined_packs_do_not_see_each_other(first: Spans, second: Spans) -> None:
    packs = [as_segments(first), as_segments(second)]
    masks = [dense_mask(torch.from_numpy(visibility(pack))[None])[0] for pack in packs]
    both = dense_mask(torch.from_numpy(visibility(joined(packs)))[None])[0]
    assert torch.equal(both, torch.block_diag(*masks).bool())
    assert loss_mask(joined(packs)).tolist() == [*loss_mask(packs[0]), *loss_mask(packs[1])]


def test_block_mask_leaves_out_no_block_that_is_seen() -> None:
    length = np.array([200, 56, 100, 28, 128, 128, 256], np.int32)
    mode = np.array([0, 1, 0, 0, 1, 0, 0], np.int8)
    document = np.array([0, 0, 1, 2, 2, 2, FILL], np.int32)
    seen = torch.from_numpy(visibility(PackSegments(length, mode, document, np.zeros(7, np.int8))))[None]
    tiles = dense_mask(seen)[0].reshape(7, 128, 7, 128)
    mask = block_mask(seen)
    assert torch.equal(mask.to_dense()[0, 0].bool(), tiles.any(1).any(-1))
    full = torch.zeros(7, 7, dtype=torch.bool)
    for row in range(7):
        full[row, mask.full_kv_indices[0, 0, row, : mask.full_kv_num_blocks[0, 0, row]].long()] = True
    assert torch.equal(full, tiles.all(1).all(-1))
    assert full.any()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.integers(1, 4))
def test_context_parallel_ranks_share_each_document(lengths: list[int], ranks: int) -> None:
    edges = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    layout = pad_documents(edges, ranks)
    rooms = np.diff(layout.cu_seqlens_padded)
    assert layout.cu_seqlens.tolist() == edges.tolist()
    assert all(
        0 <= room - length < 2 * ranks and room % (2 * ranks) == 0 for room, length in zip(rooms, lengths, strict=True)
    )
    assert layout.max_seqlen == max(rooms)
    expected = [edges[d] + i if i < lengths[d] else -1 for d in range(len(lengths)) for i in range(int(rooms[d]))]
    assert layout.source.tolist() == expected
    values = np.arange(100, 100 + edges[-1])
    assert layout.spread(values, 7).tolist() == [7 if at < 0 else 100 + at for at in expected]
    places = [rank_places(layout.cu_seqlens_padded, ranks, rank).tolist() for rank in range(ranks)]
    assert sorted(place for share in places for place in share) == list(range(len(expected)))
    first = int(rooms[0]) // (2 * ranks)
    for rank, share in enumerate(places):
        assert len(share) == len(expected) // ranks
        assert share[: 2 * first] == [
            *range(rank * first, (rank + 1) * first),
            *range((2 * ranks - 1 - rank) * first, (2 * ranks - rank) * first),
        ]


def test_segments_file_is_an_ordinary_npy(tmp_path: Path) -> None:
    write_text_set(tmp_path / "set", "best_fit", 32_000, with_segments=True)
    data = segments_path(tmp_path / "set_docs").read_bytes()
    rows = np.load(io.BytesIO(data))
    assert rows.dtype == ROW
    assert len(data) == 192 + 5 * rows.size


@pytest.mark.parametrize("align", [1, 4])
def test_neighbouring_pieces_of_a_document_are_one_only_when_they_follow_on(tmp_path: Path, align: int) -> None:
    plan = PackingPlan(
        pack_offsets=np.array([0, 4, 5, 7]),
        document=np.array([9, 9, 9, 4, 9, 4, 2]),
        start=np.array([0, 4, 9, 0, 11, 5, 0]),
        length=np.array([4, 4, 3, 4, 16, 6, 8], np.int32),
        chunk=np.zeros(7, np.int32),
        chunks=np.ones(7, np.int32),
    )
    source = TokenSource([np.ones(40, np.uint16)], np.zeros(10, np.int32), np.zeros(10, np.int64))
    with PackedWriter(tmp_path / "a", tmp_path / "a_docs", source.parts[0].dtype, 16, 0, align) as writer:
        writer.write_block(plan, np.array([2, 0]), source)
        writer.write_block(plan, np.array([1]), source)
    rows = read_segment_rows(tmp_path / "a_docs", 9)
    assert rows is not None
    expected = {1: [0, 1, FILL, 0, 0, 1, 2, FILL, 0], 4: [0, FILL, 1, 0, 0, 1, FILL, 2, 0]}[align]
    assert rows["document"].tolist() == expected
    assert rows["image_attention"].tolist() == [0] * len(expected)


def test_a_gap_stands_between_pieces_that_would_follow_on(tmp_path: Path) -> None:
    plan = PackingPlan(
        np.array([0, 2]),
        np.array([3, 3]),
        np.array([0, 5]),
        *(np.array(column, np.int32) for column in ([5, 8], [0, 1], [2, 2])),
    )
    source = TokenSource([np.ones(40, np.uint16)], np.zeros(10, np.int32), np.zeros(10, np.int64))
    with PackedWriter(tmp_path / "a", tmp_path / "a_docs", source.parts[0].dtype, 16, 0, 8) as writer:
        writer.write_block(plan, np.array([0]), source)
    rows = read_segment_rows(tmp_path / "a_docs", 3)
    assert rows is not None
    assert rows["document"].tolist() == [0, FILL, 1]
