"""Planned sizes against those that the paper's own table gives, and by hand."""

import math
from pathlib import Path

import pytest

from tests.command_line import refused, tokpack
from tokpack_core.errors import InputError
from tokpack_core.vocabulary.planning import least_loss, plan_vocabulary


@pytest.mark.parametrize(
    ("params", "d_model", "lowest", "highest"),
    [(7e9, 4096, 59_000, 68_000), (70e9, 8192, 211_000, 232_000)],
)
def test_sizes_lie_in_the_ranges_of_the_paper(params: float, d_model: int, lowest: int, highest: int) -> None:
    """Its table of optimal vocabularies, with the widths of its fit."""
    sizes = [plan.vocab_size for plan in plan_vocabulary(params, d_model)]
    assert all(lowest <= size <= highest for size in sizes), sizes


def test_the_derivative_by_hand() -> None:
    """At the base model the fit gives the base itself: 3,145,728 parameters are 4,096 entries of width 768."""
    derivative = plan_vocabulary(33e6, 768)[1]
    assert (derivative.vocabulary_parameters, derivative.vocab_size) == (3_145_728, 4096)
    assert derivative.share_tied == pytest.approx(3_145_728 / (33e6 + 3_145_728))
    assert derivative.share_untied == pytest.approx(2 * 3_145_728 / (33e6 + 2 * 3_145_728))


def test_the_loss_is_least_where_it_is_said_to_be() -> None:
    params, flops = 7e9, 5e21

    def loss(vocabulary: float) -> float:
        characters = flops / 1e15 / (6 * (params + vocabulary) / 1e6)
        return 0.19584238398665638 / (vocabulary / 1e6) ** 0.6707374679896795 + 2.1241123120064955 / (
            characters**0.44660634152009615
        )

    best = least_loss(params, flops)
    assert loss(best) < loss(best * 1.05)
    assert loss(best) < loss(best / 1.05)
    assert math.isclose(best, least_loss(params, flops))


def test_a_size_is_a_multiple_of_128() -> None:
    assert all(plan.vocab_size % 128 == 0 for plan in plan_vocabulary(1.3e9, 2000))


@pytest.mark.parametrize(("params", "d_model"), [(1e3, 512), (1e15, 512), (7e9, 0)])
def test_an_impossible_model_is_one_sentence(params: float, d_model: int) -> None:
    with pytest.raises(InputError, match="give 1e6 to 1e13"):
        plan_vocabulary(params, d_model)


def test_the_command(tmp_path: Path) -> None:
    found = tokpack(tmp_path, "plan", "--params", "7e9", "--d-model", "4096", "--json").json
    assert [row["approach"] for row in found["approaches"]] == ["isoflops", "derivative", "parametric_loss"]
    shown = tokpack(tmp_path, "plan", "--params", "7e9", "--d-model", "4096").out
    assert all(f"{row['vocab_size']:,}" in shown for row in found["approaches"])
    assert "give 1e6 to 1e13" in refused(tmp_path, "plan", "--params", "7", "--d-model", "4096")
