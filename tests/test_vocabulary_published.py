"""Published tokenizers give the figures that the literature has of them.

Vocabulary sizes are those of tiktoken (openai_public.py). Parts of characters and unreachable tokens are those of
Land and Bartolo, "Fishing for Magikarp" (2024), as their repository reports them by model: gpt2-medium for gpt2,
OLMo-2-1124-7B for cl100k, gpt-oss-20b for o200k. They call a token unreachable when its own text
alone does not give it; of the 12 of o200k seven are given after a letter (" I'", "\\n//", …), so ours are 5.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.published_ranks import published_ranks
from tokpack_core.tokenizers import registry
from tokpack_core.vocabulary import reachability as audit
from tokpack_core.vocabulary.structure import digits
from tokpack_core.vocabulary.token_features import token_features

FIGURES = {
    "gpt2": (50_256, 216, 0, 0),
    "cl100k_base": (100_256, 645, 0, 0),
    "o200k_base": (199_998, 1_434, 12, 5),
}
"""entries, parts of characters of two bytes and more, unreachable by their own text alone, unreachable"""


@pytest.mark.parametrize("name", FIGURES)
def test_parts_of_characters_and_unreachable_tokens(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries, parts, alone, unreachable = FIGURES[name]
    tokenizer = registry.load(published_ranks(name, tmp_path))
    features = token_features(tokenizer.vocabulary())
    unseen = np.zeros(entries, bool)
    assert len(features.ids) == entries
    assert np.bincount(features.kind).tolist() == [entries - parts - 256, parts, 256]
    found = audit.reachability(tokenizer, features, unseen)
    assert (int(found.unreachable.sum()), int(found.undecided.sum())) == (unreachable, 0)
    monkeypatch.setattr(audit, "BEFORE", ("",))
    assert int(audit.reachability(tokenizer, features, unseen).unreachable.sum()) == alone


def test_numbers_of_cl100k(tmp_path: Path) -> None:
    """All of up to three digits are entries, and none is longer: that is what its regex is known for."""
    tokenizer = registry.load(published_ranks("cl100k_base", tmp_path))
    tokens = set(tokenizer.vocabulary()["token"].to_pylist())
    assert {f"{number:0{places}}".encode() for places in (1, 2, 3) for number in range(10**places)} <= tokens
    found = digits(tokenizer, token_features(tokenizer.vocabulary()))
    assert found["policy"] == "groups of three from the left"
    assert found["by_digits"][3:] == [0] * 6


def test_solid_gold_magikarp(tmp_path: Path) -> None:
    tokenizer = registry.load(published_ranks("gpt2", tmp_path))
    assert tokenizer.encode(pa.array([" SolidGoldMagikarp"])).ids.tolist() == [43453]
