"""LiteToken: what counts as a residue, and ids without it."""

from __future__ import annotations

import json
import math
from inspect import signature
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings

from tests.tokenizer_samples import EOD, HOSTILE, documents, ids, normalized, ordinary_text, token_bytes, trained
from tokpack_core.cli.tokenizers import litetoken
from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.round_trip import round_trip_failures
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.residues.litetoken import LiteTokenTokenizer
from tokpack_core.tokenizers.residues.litetoken_training import without_residues_of
from tokpack_core.tokenizers.residues.residues import USUAL, ResidueLimits
from tokpack_core.tokenizers.tiktoken.ranks import write_rank_file

LIMITS = ResidueLimits()


@pytest.fixture(scope="module", params=["byte_bpe", "superbpe"])
def base(request: pytest.FixtureRequest) -> HuggingFaceTokenizer:
    found = trained(request.param, "nfc")
    assert isinstance(found, HuggingFaceTokenizer)
    return found


@pytest.fixture(scope="module")
def cleaned(base: HuggingFaceTokenizer) -> LiteTokenTokenizer:
    return without_residues_of(base, LIMITS, iter([pa.array(documents(), pa.string())]))


def test_residues_are_those_of_the_definition(base: HuggingFaceTokenizer, cleaned: LiteTokenTokenizer) -> None:
    """Every pretoken merged step by step, with each use of a token written down."""
    exact = base.exact_bpe(across_words=True)
    assert exact is not None
    from tokpack_core.bpe.regex_splitting import count_words

    model = exact.model
    merges = {
        (left, right): (rank, token)
        for left, right, rank, token in zip(
            *(c.tolist() for c in (model.left, model.right, model.rank, model.token)), strict=True
        )
    }
    final: dict[int, int] = {}
    consumers: dict[int, dict[int, int]] = {}
    for word, count in count_words(documents(), exact.splits).items():
        symbols = [int(model.byte_ids[byte]) for byte in word]
        while found := [(merges[two][0], k) for k, two in enumerate(pairwise(symbols)) if two in merges]:
            _, place = min(found)
            pair = symbols[place], symbols[place + 1]
            token = merges[pair][1]
            for side in pair:
                uses = consumers.setdefault(side, {})
                uses[token] = uses.get(token, 0) + count
            symbols[place : place + 2] = [token]
        for token in symbols:
            final[token] = final.get(token, 0) + count
    expected = []
    for token in range(258, 1500):
        uses = consumers.get(token, {})
        consumed, last = sum(uses.values()), final.get(token, 0)
        # A merge of two equal tokens is one consumer.
        weights = [n // (2 if merges_itself(merges, token, made) else 1) for made, n in uses.items()]
        total = sum(weights)
        entropy = -sum(n / total * math.log2(n / total) for n in weights) if total else 0.0
        if last + consumed >= 20 and last / (last + consumed) < 0.05 and entropy < 2.0:
            expected.append(token)
    removed = cleaned.report["removed"]
    assert [row["id"] for row in removed] == expected
    assert len(expected) > 20
    assert all(row["final"] == final.get(row["id"], 0) for row in removed)


def merges_itself(merges: dict[tuple[int, int], tuple[int, int]], token: int, made: int) -> bool:
    return merges.get((token, token), (0, -1))[1] == made


def test_no_residue_is_left_and_all_other_ids_stay(
    base: HuggingFaceTokenizer, cleaned: LiteTokenTokenizer, tmp_path: Path
) -> None:
    removed = {row["id"] for row in cleaned.report["removed"]}
    texts = pa.array([normalized(text, "nfc") for text in [*documents(), *HOSTILE]])
    before, after = base.encode(texts), cleaned.encode(texts)
    assert removed & set(before.ids.tolist())
    assert not removed & set(after.ids.tolist())
    assert round_trip_failures(cleaned, texts) == []
    kept = token_bytes(cleaned)
    assert kept == {k: token for k, token in token_bytes(base).items() if k not in removed}
    figures = cleaned.report["text"]
    counted = pa.array(documents(), pa.string())
    assert figures["tokens_before"] == base.encode(counted).ids.size
    assert figures["tokens_after"] == cleaned.encode(counted).ids.size > figures["tokens_before"]
    cleaned.save(tmp_path)
    loaded = registry.load(tmp_path)
    assert loaded.family == "litetoken"
    assert loaded.encode(texts).ids.tolist() == after.ids.tolist()
    assert json.loads((tmp_path / "residues.json").read_text()) == json.loads(json.dumps(cleaned.report))


def test_any_text_survives(cleaned: LiteTokenTokenizer) -> None:
    tokens = token_bytes(cleaned)

    @settings(max_examples=100, deadline=None)
    @given(ordinary_text())
    def survives(text: str) -> None:
        text = normalized(text, "nfc")
        assert b"".join(tokens[token] for token in ids(cleaned, text)) == text.encode()

    survives()


def test_words_without_residues_keep_their_ids(base: HuggingFaceTokenizer, cleaned: LiteTokenTokenizer) -> None:
    removed = {row["id"] for row in cleaned.report["removed"]}
    words = pa.array(sorted({word for text in documents() for word in text.split(" ") if word}))
    before, after = base.encode(words), cleaned.encode(words)
    for k in range(len(words)):
        old = before.ids[before.offsets[k] : before.offsets[k + 1]].tolist()
        if not removed & set(old):
            assert after.ids[after.offsets[k] : after.offsets[k + 1]].tolist() == old


def test_a_rank_file(tmp_path: Path) -> None:
    base = trained("byte_bpe")
    ranks = {token: k - 2 for k, token in token_bytes(base).items() if k >= 2}
    write_rank_file(tmp_path / "x.tiktoken", ranks)
    theirs = registry.load(tmp_path / "x.tiktoken", SpecialTokens(eod=EOD), "cl100k")
    texts = pa.array(documents(), pa.string())
    found = without_residues_of(theirs, LIMITS, iter([texts]))
    removed = {row["id"] for row in found.report["removed"]}
    assert len(removed) > 20
    assert not removed & set(found.encode(texts).ids.tolist())
    assert round_trip_failures(found, texts) == []
    saved = tmp_path / "saved"
    saved.mkdir()
    found.save(saved)
    assert registry.load(saved).encode(texts).ids.tolist() == found.encode(texts).ids.tolist()


def test_what_has_no_residues_is_one_sentence() -> None:
    with pytest.raises(InputError, match="has no residues to remove"):
        without_residues_of(trained("sentencepiece_bpe"), LIMITS, iter([pa.array(["a"])]))
    with pytest.raises(InputError, match="no text"):
        without_residues_of(trained("byte_bpe"), LIMITS, iter([pa.array([""])]))


def test_the_command_and_the_configuration_take_the_usual_limits() -> None:
    parameters, fields = signature(litetoken).parameters, TrainConfig.model_fields
    assert {name: parameters[name].default for name in vars(USUAL)} == vars(USUAL)
    assert {name: fields[name].default for name in vars(USUAL)} == vars(USUAL)
