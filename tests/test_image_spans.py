"""Pieces that never cut an image, against brute force: nothing lost, limits kept, and no cutting with fewer pieces."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tokpack_core.config import PackingConfig
from tokpack_core.errors import InputError
from tokpack_core.packing.image_spans import ImageSpans, cut_interleaved, document_runs, mode_runs
from tokpack_core.packing.policies import Packed, image_figures, pack_documents
from tokpack_core.packing.truncation import PackingFigures, packing_figures

Document = list[tuple[int, int]]
"""Runs of (tokens, whether they are an image)."""
documents = st.lists(
    st.lists(
        st.one_of(st.tuples(st.integers(1, 12), st.just(0)), st.tuples(st.integers(1, 8), st.just(1))), max_size=7
    ),
    min_size=1,
    max_size=12,
)


def as_arrays(found: list[Document]) -> tuple[np.ndarray, ImageSpans]:
    starts, lengths, counts = [], [], [0]
    for document in found:
        at = 0
        for tokens, image in document:
            if image:
                starts.append(at)
                lengths.append(tokens)
            at += tokens
        counts.append(len(starts))
    total = np.array([sum(tokens for tokens, _ in document) for document in found], np.int64)
    return total, ImageSpans(*(np.array(values, np.int64) for values in (counts, starts, lengths)))


def image_of(document: Document) -> list[int]:
    """Number of the image at each token, from 1; 0 for text."""
    out: list[int] = []
    images = 0
    for tokens, image in document:
        images += image
        out += [images if image else 0] * tokens
    return out


def fewest_pieces(document: Document, capacity: int, budget: int) -> int:
    """By trying every cut; pieces end at an image that is too large."""
    tokens = image_of(document)
    size = {number: tokens.count(number) for number in set(tokens) if number}
    usable = [bool(number and size[number] > capacity) for number in tokens]

    @cache
    def best(at: int) -> int:
        if at == len(tokens):
            return 0
        if usable[at]:
            return best(at + 1)
        found = 10**9
        for end in range(at + 1, min(at + capacity, len(tokens)) + 1):
            if usable[end - 1]:
                break
            if len({number for number in tokens[at:end] if number}) > budget:
                break
            whole = end == len(tokens) or not tokens[end] or tokens[end] != tokens[end - 1]
            if whole:
                found = min(found, 1 + best(end))
        return found

    return best(0)


def check_pieces(found: list[Document], packed: Packed, packing: PackingConfig) -> None:
    plan, capacity = packed.plan, packing.sequence_length
    seen: set[tuple[int, int]] = set()
    for pack in range(plan.packs):
        begin, end = plan.pack_offsets[pack : pack + 2]
        images = taken = 0
        for s in range(begin, end):
            tokens = image_of(found[plan.document[s]])
            start, stop = int(plan.start[s]), int(plan.start[s] + plan.length[s])
            inside = tokens[start:stop]
            assert start < stop <= len(tokens)
            for number in {number for number in inside if number}:
                assert inside.count(number) == tokens.count(number)
                images += 1
            taken += -(-(stop - start) // packing.align) * packing.align
            places = {(int(plan.document[s]), place) for place in range(start, stop)}
            assert not places & seen
            seen |= places
        assert taken <= capacity
        assert packing.images_per_pack is None or images <= packing.images_per_pack
    for number, document in enumerate(found):
        tokens = image_of(document)
        kept = {place for place, image in enumerate(tokens) if not image or tokens.count(image) <= capacity}
        if packing.long_documents == "drop" and len(tokens) > capacity:
            kept = set()
        assert {place for d, place in seen if d == number} == kept


@settings(max_examples=150, deadline=None)
@given(
    found=documents,
    units=st.integers(1, 12),
    align=st.sampled_from([1, 1, 2, 3]),
    budget=st.none() | st.integers(1, 4),
    strategy=st.sampled_from(["best_fit", "naive", "first_fit", "first_fit_decreasing"]),
    long_documents=st.sampled_from(["chunk", "chunk", "drop"]),
    noise=st.sampled_from([0.0, 0.3]),
)
def test_nothing_is_lost_and_no_image_is_cut(
    found: list[Document],
    units: int,
    align: int,
    budget: int | None,
    strategy: str,
    long_documents: str,
    noise: float,
) -> None:
    packing = PackingConfig(
        strategy=strategy,
        sequence_length=units * align,
        align=align,
        images_per_pack=budget if strategy in ("best_fit", "naive") else None,
        large_images="drop",
        long_documents=long_documents,
        noise=noise if strategy == "best_fit" else 0.0,
    )
    lengths, images = as_arrays(found)
    packed = pack_documents(lengths, packing, b"key", images)
    check_pieces(found, packed, packing)
    figures = packing_figures(
        packed.plan, lengths, packing.sequence_length, align, packed.dropped, image_figures(packed, images, packing)
    )
    assert (figures.tokens_lost, figures.needless_cuts) == (0, 0)
    assert figures.images == sum(image for document in found for _, image in document)
    assert figures.image_tokens == sum(tokens for document in found for tokens, image in document if image)
    assert figures.packs >= figures.lower_bound_packs
    assert figures.cuts == figures.unavoidable_cuts
    assert PackingFigures.from_dict(figures.as_dict()) == figures


@settings(max_examples=150, deadline=None)
@given(found=documents, capacity=st.integers(1, 20), budget=st.integers(1, 4))
def test_no_cutting_needs_fewer_pieces(found: list[Document], capacity: int, budget: int) -> None:
    lengths, images = as_arrays(found)
    pieces = cut_interleaved(lengths, images, capacity, budget)
    assert pieces.fewest.tolist() == [fewest_pieces(document, capacity, budget) for document in found]
    assert pieces.pieces.chunks.tolist() == np.repeat(pieces.fewest, pieces.fewest).tolist()


@settings(max_examples=100, deadline=None)
@given(found=documents, capacity=st.integers(8, 20))
def test_runs_are_the_text_and_the_images_of_a_piece(found: list[Document], capacity: int) -> None:
    lengths, images = as_arrays(found)
    plan = pack_documents(lengths, PackingConfig(sequence_length=capacity), b"", images).plan
    runs = mode_runs(plan, images)
    for s in range(plan.segments):
        start = int(plan.start[s])
        inside = image_of(found[plan.document[s]])[start : start + int(plan.length[s])]
        expected: list[tuple[int, int]] = []
        for place, number in enumerate(inside):
            if place and inside[place - 1] == number:
                expected[-1] = (expected[-1][0] + 1, expected[-1][1])
            else:
                expected.append((1, int(number > 0)))
        own = slice(runs.offsets[s], runs.offsets[s + 1])
        assert list(zip(runs.length[own].tolist(), runs.mode[own].tolist(), strict=True)) == expected
    whole = document_runs(lengths, images)
    assert int(whole.length.sum()) == int(lengths.sum())
    assert np.add.reduceat(np.append(whole.mode, 0), whole.offsets[:-1])[lengths > 0].sum() == images.start.size


def test_a_too_large_image_is_an_error_that_says_what_to_do() -> None:
    lengths, images = as_arrays([[(5, 0)], [(3, 0), (17, 1), (2, 0)], [(16, 1)]])
    with pytest.raises(InputError, match=r"1 images have more tokens than a pack of 16, first one of document 1 .* 17"):
        pack_documents(lengths, PackingConfig(sequence_length=16), b"", images)
    packed = pack_documents(lengths, PackingConfig(sequence_length=16, large_images="drop"), b"", images)
    assert (packed.dropped.images, packed.dropped.image_tokens, packed.dropped.tokens) == (1, 17, 17)
    plan = packed.plan
    assert sorted(zip(plan.document, plan.start, plan.length, plan.chunk, strict=True)) == [
        (0, 0, 5, 0),
        (1, 0, 3, 0),
        (1, 20, 2, 1),
        (2, 0, 16, 0),
    ]


def test_what_would_cut_images_is_refused() -> None:
    lengths, images = as_arrays([[(3, 1)]])
    for packing in (PackingConfig(strategy="concat", sequence_length=8), PackingConfig(sequence_length=8, min_chunk=2)):
        with pytest.raises(InputError, match="would cut images"):
            pack_documents(lengths, packing, b"", images)
    for wrong in ({"strategy": "first_fit"}, {"documents_per_pack": 3}):
        with pytest.raises(ValidationError, match="images_per_pack"):
            PackingConfig(sequence_length=8, images_per_pack=2, **wrong)
