"""BoundlessBPE and SuperBPE as tokenizers: exact ids, files, and what a stock file costs."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from tokenizers import Tokenizer as Engine

from tests.superword_reference import Made, encode_by_definition
from tests.tokenizer_samples import (
    EOD,
    HOSTILE,
    SPECIAL_TOKENS,
    documents,
    ids,
    normalized,
    ordinary_text,
    token_bytes,
)
from tokpack_core.config import TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.encoder_choice import encoder_choice
from tokpack_core.tokenizers.agreement.round_trip import round_trip_failures
from tokpack_core.tokenizers.pretokenizers import SPACELESS_LETTER, SPLITS
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.superwords.model import eligibility

CHINESE = "自然语言处理是人工智能的一个分支。自然语言处理研究语言，机器学习也研究语言处理。" * 60
KINDS = {
    "boundless": {"family": "boundless_bpe"},
    "boundless_letters": {"family": "boundless_bpe", "script_aware": True, "pretokenizer": "o200k"},
    "boundless_ties": {"family": "boundless_bpe", "tie_winner": "superword", "max_words": 2},
    "superbpe": {"family": "superbpe", "transition_size": 1000},
    "superbpe_auto": {"family": "superbpe"},
    "superbpe_words": {"family": "superbpe", "joins": "words", "transition_size": 1000},
}
EXACT_FILE = [kind for kind in KINDS if kind not in ("superbpe", "superbpe_auto")]


@cache
def trained(kind: str, export: str = "exact") -> Tokenizer:
    given = KINDS[kind] | ({"export": export} if kind in EXACT_FILE else {})
    config = TrainConfig.model_validate({"vocab_size": 1500, "special_tokens": SPECIAL_TOKENS} | given)
    return registry.train(config, iter([pa.array([*documents(), CHINESE], pa.string())]), "nfc")


@pytest.mark.parametrize("kind", KINDS)
def test_text_survives(kind: str) -> None:
    tokenizer = trained(kind)
    assert tokenizer.vocab_size == 1500
    assert tokenizer.training["superwords"] > 50
    texts = [normalized(text, "nfc") for text in [*HOSTILE, *documents(), CHINESE]]
    assert round_trip_failures(tokenizer, pa.array(texts)) == []
    tokens = list(token_bytes(tokenizer).values())
    assert len(set(tokens)) == len(tokens)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_again(kind: str, tmp_path: Path) -> None:
    tokenizer = trained(kind)
    tokenizer.save(tmp_path)
    loaded = registry.load(tmp_path)
    texts = pa.array([*HOSTILE, *documents(), CHINESE, "cafe\u0301 " * 3])
    ours, theirs = tokenizer.encode(texts), loaded.encode(texts)
    assert ours.ids.tolist() == theirs.ids.tolist()
    assert ours.offsets.tolist() == theirs.offsets.tolist()
    assert loaded.vocabulary() == tokenizer.vocabulary()
    assert (loaded.family, loaded.unicode, loaded.training) == (tokenizer.family, "nfc", tokenizer.training)
    again = tmp_path / "again"
    again.mkdir()
    loaded.save(again)
    assert {f.name: f.read_bytes() for f in again.iterdir()} == {
        f.name: f.read_bytes() for f in tmp_path.iterdir() if f.is_file()
    }


@cache
def reference(kind: str) -> tuple[tuple[str, ...], Made]:
    """The merges in one order, as the saved table has them."""
    tokens = token_bytes(trained(kind))
    table = trained(kind)._merges  # type: ignore[attr-defined]
    superwords = {row[2] for row in trained(kind)._model.superwords.tolist()}  # type: ignore[attr-defined]
    rows = zip(*(table[name].to_pylist() for name in ("left", "right", "token")), strict=True)
    steps = [(tokens[left], tokens[right], 0, token in superwords) for left, right, token in rows]
    settings = KINDS[kind]
    name = settings.get("pretokenizer", "superbpe" if settings["family"] == "superbpe" else "cl100k")
    letters = (SPACELESS_LETTER,) if settings.get("script_aware") else ()
    return (*letters, *SPLITS[str(name)]), Made(steps)


@pytest.mark.parametrize("kind", EXACT_FILE)
def test_ids_are_those_of_all_merges_in_one_order(kind: str) -> None:
    tokenizer = trained(kind)
    tokens = token_bytes(tokenizer)
    splits, made = reference(kind)
    eligible = eligibility(r"\p{L}", SPACELESS_LETTER if "letters" in kind else None)
    snippets = [documents()[k][start : start + 60] for k in range(8) for start in (0, 200)]
    pieces = st.one_of(
        st.sampled_from([*snippets, CHINESE[:30], " of the", " the", "the ", "'t", ".\n"]), ordinary_text()
    )

    @settings(max_examples=30, deadline=None)
    @given(st.lists(pieces, max_size=3).map("".join))
    def same(text: str) -> None:
        text = normalized(text, "nfc")
        assert [tokens[k] for k in ids(tokenizer, text)] == encode_by_definition(text, splits, made, eligible)

    same()
    for text in (" of the" * 100, "a" * 300, " the" * 151, "自然" * 150):
        assert [tokens[k] for k in ids(tokenizer, text)] == encode_by_definition(text, splits, made, eligible)


def test_superbpe_is_a_stock_file_with_the_same_ids(tmp_path: Path) -> None:
    """Word merges first, then the second stage's; in Hugging Face tokenizers the ids are equal on all text."""
    tokenizer = trained("superbpe")
    tokenizer.save(tmp_path)
    engine = Engine.from_file(str(tmp_path / "tokenizer.json"))
    engine.encode_special_tokens = True
    texts = [*HOSTILE, *documents(), CHINESE, "a" * 40_000, " the" * 9000, "the state of the art: of the " * 400]
    encoded = tokenizer.encode(pa.array(texts * 3))
    assert vars(tokenizer)["_fast"].in_use
    encoded = tokenizer.encode(pa.array(texts))
    for k, text in enumerate(texts):
        ours = encoded.ids[encoded.offsets[k] : encoded.offsets[k + 1]].tolist()
        assert ours == engine.encode(text, add_special_tokens=False).ids


def test_the_first_merges_of_superbpe_are_those_of_its_first_stage(tmp_path: Path) -> None:
    texts = iter([pa.array([*documents(), CHINESE], pa.string())])
    stage_one = TrainConfig(family="byte_bpe", vocab_size=1000, special_tokens=SPECIAL_TOKENS, pretokenizer="superbpe")
    registry.train(stage_one, texts, "nfc").save(tmp_path)
    first = pq.read_table(tmp_path / "merges.parquet")
    trained("superbpe").save(tmp_path)
    both = pq.read_table(tmp_path / "merges.parquet")
    assert len(first) == 1000 - 258
    assert both.slice(0, len(first)) == first
    tokens = token_bytes(trained("superbpe"))
    superwords = [tokens[token].decode("utf-8", "replace") for token in both["token"].to_pylist()[len(first) :]]
    assert sum(" " in token.strip() for token in superwords) > 60
    assert all(len(token.split()) <= 4 and ": " not in token for token in superwords)


def test_a_superbpe_file_of_others_opens(tmp_path: Path) -> None:
    """As published: no special token named, merges as strings, the second stage's regex before ByteLevel."""
    trained("superbpe").save(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["model"]["merges"] = [" ".join(merge) for merge in content["model"]["merges"]]
    published = tmp_path / "theirs" / "tokenizer.json"
    published.parent.mkdir()
    published.write_text(json.dumps(content))
    config = TrainConfig(family="pretrained", path=str(published), special_tokens=SPECIAL_TOKENS)
    theirs = registry.train(config, iter(()), "nfc")
    texts = pa.array([*documents(), *HOSTILE])
    assert theirs.encode(texts).ids.tolist() == trained("superbpe").encode(texts).ids.tolist()
    assert theirs.family == "pretrained"


def split(pattern: str) -> dict[str, object]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


@pytest.mark.parametrize(
    "stages",
    [
        [{"type": "Digits", "individual_digits": False}, split(r"(?=(\d{3})+(?!\d))")],
        [split(r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]{2,}[\r\n/]*| +(?!\S)")],
    ],
)
def test_the_pretokenizers_of_published_superbpe_files(stages: list[dict[str, object]], tmp_path: Path) -> None:
    """The authors' training code writes runs of digits cut in threes from the right, and nothing else, before
    ByteLevel; the paper names the other one."""
    trained("superbpe").save(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [*stages, byte_level]}
    content["normalizer"] = None
    published = tmp_path / "theirs" / "tokenizer.json"
    published.parent.mkdir()
    published.write_text(json.dumps(content))
    config = TrainConfig(family="pretrained", path=str(published), special_tokens=SPECIAL_TOKENS)
    ours, theirs = registry.train(config, iter(()), "nfc"), Engine.from_file(str(published))
    theirs.encode_special_tokens = True
    ours.encode(pa.array(["x y " * 2**18]))  # enough to load our own encoder
    assert encoder_choice(ours).engine == "tokpack"
    texts = [*documents(), *HOSTILE, "1234567 12 and 1,234 of the 5678 ones"]
    encoded = ours.encode(pa.array(texts, pa.string()))
    assert encoded.ids.tolist() == [
        token for text in texts for token in theirs.encode(text, add_special_tokens=False).ids
    ]
    assert round_trip_failures(ours, pa.array(texts)) == []


@pytest.mark.parametrize("kind", ["boundless", "boundless_letters", "superbpe_words"])
def test_the_gap_of_a_stock_file_is_what_was_measured(kind: str, tmp_path: Path) -> None:
    stock, exact = trained(kind, "hf"), trained(kind)
    stock.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "merges.parquet",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    texts = pa.array([*documents(), CHINESE])
    figures = registry.load(tmp_path).training
    ours, theirs = exact.encode(texts), stock.encode(texts)
    engine = Engine.from_file(str(tmp_path / "tokenizer.json"))
    assert figures["gap_tokens_exact"] == ours.ids.size
    assert figures["gap_tokens_hf"] == theirs.ids.size
    assert theirs.ids.size == sum(len(engine.encode(text).ids) for text in texts.to_pylist())
    assert 0 < figures["gap_documents_differing"] <= figures["gap_documents"] == len(texts)
    assert abs(theirs.ids.size / ours.ids.size - 1) < 0.03
    assert stock.vocabulary() == exact.vocabulary()


def test_letters_of_scripts_without_spaces_join() -> None:
    found = {token.decode("utf-8", "replace") for token in token_bytes(trained("boundless_letters")).values()}
    assert {"语言", "处理"} <= found


@pytest.mark.parametrize("kind", ["boundless", "superbpe"])
def test_neither_order_nor_batches_change_the_model(kind: str) -> None:
    texts = [*documents(), CHINESE]
    config = TrainConfig(vocab_size=1500, special_tokens=SPECIAL_TOKENS, **KINDS[kind])
    other = registry.train(config, (pa.array([text], pa.large_string()) for text in reversed(texts)), "nfc")
    assert other.vocabulary() == trained(kind).vocabulary()


@pytest.mark.parametrize(
    ("changes", "texts", "remedy"),
    [
        ({"vocab_size": 200}, ["a"], "too small"),
        ({"transition_size": 5000}, ["a"], "`transition_size` 5000 is not between"),
        ({"transition_size": 1400}, ["a b c"], "fewer than `transition_size`"),
        ({"joins": "words", "mergeable": "("}, ["a"], "no regular expression"),
        ({}, [""], "holds no text"),
        ({"joins": "words", "export": "hf", "pretokenizer": "deepseek_v3"}, ["a"], "export: exact"),
        ({"joins": "words", "special_tokens": {"eod": "the end"}}, ["a"], "choose a string"),
        ({"special_tokens": {"eod": " the end"}}, ["a"], "choose a string"),
        ({"joins": "words", "mergeable": "."}, ["a"], "or another `mergeable`"),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(changes: dict[str, object], texts: list[str], remedy: str) -> None:
    base: dict[str, object] = {"family": "superbpe", "vocab_size": 1500, "special_tokens": {"eod": EOD}}
    with pytest.raises(InputError, match=remedy):
        registry.train(TrainConfig.model_validate(base | changes), iter([pa.array(texts)]), "nfc")


def test_mergeable_is_no_matter_to_special_tokens_where_pieces_join() -> None:
    config = TrainConfig(family="superbpe", vocab_size=300, mergeable=".", special_tokens=SPECIAL_TOKENS)
    tokenizer = registry.train(config, iter([pa.array([f"{EOD} of the {EOD} of the"])]), "nfc")
    assert tokenizer.special_tokens["eod"] not in tokenizer.encode(pa.array([EOD])).ids


def test_damaged_files_are_one_sentence(tmp_path: Path) -> None:
    trained("boundless").save(tmp_path)
    path = tmp_path / "tokenizer.tokpack"
    whole = path.read_text(encoding="utf-8")
    content = json.loads(whole)
    for damage in (
        whole[:-100],
        whole.replace('"version": 1', '"version": 2'),
        json.dumps(content | {"words": [[1, 2, 3]]}),
        json.dumps(content | {"tokens": content["tokens"][:-1]}),
        json.dumps(content | {"special": ["<|other|>", "<|pad|>"]}),
        "[]",
    ):
        path.write_text(damage, encoding="utf-8")
        with pytest.raises(InputError, match=r"tokenizer\.tokpack"):
            registry.load(tmp_path)
    path.write_text(whole, encoding="utf-8")
    (tmp_path / "tokenizer_config.json").unlink()
    with pytest.raises(InputError, match="needs the tokenizer_config"):
        registry.load(tmp_path)
