"""Change one document and see whose logits move: no other document's, not by the smallest amount."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from tests.small_transformer import VOCABULARY, Attention, SmallTransformer, flex, sdpa
from tests.training_sets import Span, write_interleaved_set
from tokpack_core.training.collators import flatten_visible
from tokpack_core.training.packed_dataset import PackedDataset
from tokpack_core.training.segments import ImageAttention
from tokpack_core.training.visibility import block_mask, dense_mask

SEQUENCE_LENGTH = 160
SAMPLE: list[Span] = [("text", 9), ("image", 16), ("text", 7), ("image", 12), ("text", 10)]
"""Text A, image 1, text B, image 2, text C."""
PACK: list[list[Span]] = [
    [("text", 20)],
    SAMPLE,
    [("text", 31)],
    [("image", 8), ("text", 24), ("image", 8)],
    [("text", 1)],
]
BOUNDS = [(0, 20), (20, 74), (74, 105), (105, 145), (145, 146), (146, 160)]
"""Documents of the pack, the filled tail last."""
SPANS = {"A": (20, 29), "1": (29, 45), "B": (45, 52), "2": (52, 64), "C": (64, 74)}
BACKENDS: dict[str, Callable[[torch.Tensor], Attention]] = {
    "sdpa": lambda seen: sdpa(dense_mask(seen)),
    "flex": lambda seen: flex(block_mask(seen)),
}
RUNS = [(mode, backend) for mode in ImageAttention for backend in BACKENDS]


@dataclass
class Run:
    """The model on one pack with one attention."""

    batch: dict[str, torch.Tensor]
    attention: Attention
    before: torch.Tensor | None = None

    def logits(self, tokens: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return SmallTransformer(SEQUENCE_LENGTH)(tokens, self.batch["position_ids"], self.attention)

    def movement(self, begin: int, end: int) -> torch.Tensor:
        """How far the logits of each position move when all tokens of a range change, [T]."""
        if self.before is None:
            self.before = self.logits(self.batch["input_ids"])
        tokens = self.batch["input_ids"].clone()
        tokens[:, begin:end] = (tokens[:, begin:end] + 1) % VOCABULARY
        return (self.logits(tokens) - self.before).abs().amax(dim=(0, 2))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[ImageAttention, str], Run]:
    folder: Path = tmp_path_factory.mktemp("interleaved")
    out = {}
    for mode, backend in RUNS:
        write_interleaved_set(folder / mode.name, [PACK], SEQUENCE_LENGTH, mode)
        batch = flatten_visible([PackedDataset(folder / mode.name)[0]])
        out[mode, backend] = Run(batch, BACKENDS[backend](batch["visibility"]))
    return out


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_no_other_document_moves(runs: dict[tuple[ImageAttention, str], Run], run: tuple[ImageAttention, str]) -> None:
    for begin, end in BOUNDS:
        moved = runs[run].movement(begin, end)
        assert (moved[begin:end] > 0).all()
        assert (moved[:begin] == 0).all()
        assert (moved[end:] == 0).all()


SEEN_BY = {
    ImageAttention.CAUSAL: {"A": "A1B2C", "1": "1B2C", "B": "B2C", "2": "2C", "C": "C"},
    ImageAttention.ISOLATE_IMAGES: {"A": "A1B2C", "1": "1BC", "B": "BC", "2": "2C", "C": "C"},
    ImageAttention.ISOLATE_MODALITIES: {"A": "ABC", "1": "1BC", "B": "BC", "2": "2C", "C": "C"},
}
"""Which parts of the sample depend on a part, directly or through others."""


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_within_a_sample_only_what_the_mode_allows_moves(
    runs: dict[tuple[ImageAttention, str], Run], run: tuple[ImageAttention, str]
) -> None:
    for name, expected in SEEN_BY[run[0]].items():
        moved = runs[run].movement(*SPANS[name])
        touched = "".join(other for other, (begin, end) in SPANS.items() if (moved[begin:end] > 0).any())
        assert touched == expected
        for other in expected:
            begin, end = SPANS[other]
            assert (moved[begin:end] > 0).all()


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_an_image_block_sees_itself_in_both_directions_and_text_does_not(
    runs: dict[tuple[ImageAttention, str], Run], run: tuple[ImageAttention, str]
) -> None:
    begin, end = SPANS["2"]
    assert (runs[run].movement(end - 1, end)[begin:end] > 0).all()
    begin, end = SPANS["B"]
    assert (runs[run].movement(end - 1, end)[begin : end - 1] == 0).all()


def test_resetting_positions_alone_leaks(runs: dict[tuple[ImageAttention, str], Run]) -> None:
    """The same check finds the leak of a causal mask over the whole pack, positions as they should be."""
    whole_pack = sdpa(torch.ones(SEQUENCE_LENGTH, SEQUENCE_LENGTH).tril().bool()[None])
    leaking = Run(runs[ImageAttention.CAUSAL, "sdpa"].batch, whole_pack)
    for begin, end in BOUNDS[:-1]:
        moved = leaking.movement(begin, end)
        assert (moved[:begin] == 0).all()
        assert (moved[end:] > 0).all()
