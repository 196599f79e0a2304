"""Cross-word tokens appended to a published tokenizer."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken
from tokenizers import Tokenizer as Engine

from tests.tokenizer_samples import documents, normalized, token_bytes, trained
from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.round_trip import round_trip_failures
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.huggingface.run_regex import run_regex
from tokpack_core.tokenizers.supertokens import ExtensionLimits, extend, write_report

TRACES = ["Wait, let me check that again. so we have to find 12 of the " * 30, "so we have to find the value of x" * 40]


def base() -> HuggingFaceTokenizer:
    tokenizer = trained("byte_bpe", "nfc")
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    return tokenizer


def test_tokens_are_appended_and_initialized_from_old_ones(tmp_path: Path) -> None:
    texts = pa.array([*documents(), *TRACES], pa.string())
    longer, report = extend(base(), ExtensionLimits(top_k=40), iter([texts]))
    added = report["added"]
    assert [row["id"] for row in added] == list(range(1500, 1540))
    old, new = token_bytes(base()), token_bytes(longer)
    assert {k: token for k, token in new.items() if k < 1500} == old
    for row in added:
        assert new[row["id"]] == b"".join(old[part] for part in row["initialize_from"])
        assert len(row["initialize_from"]) >= 2
        assert re.fullmatch(r" ?[a-z]\w*( [a-z]\w*)+", new[row["id"]].decode())
    figures = report["text"]
    before, after = base().encode(texts), longer.encode(texts)
    assert (figures["tokens_before"], figures["tokens_after"]) == (before.ids.size, after.ids.size)
    assert figures["tokens_saved"] == before.ids.size - after.ids.size > 200
    assert figures["tokens_saved_per_id"] == round(figures["tokens_saved"] / 40, 3)
    apart = {row["id"]: row["initialize_from"] for row in added}
    undone = [[old_id for k in part for old_id in apart.get(k, [k])] for part in documents_of(after)]
    changed = sum(one != other for one, other in zip(documents_of(before), undone, strict=True))
    assert figures["documents_changed_otherwise"] == changed
    longer.save(tmp_path)
    write_report(tmp_path, report)
    loaded = registry.load(tmp_path)
    assert loaded.family == "supertokens"
    assert loaded.encode(texts).ids.tolist() == after.ids.tolist()
    engine = Engine.from_file(str(tmp_path / "tokenizer.json"))
    engine.encode_special_tokens = True
    assert [engine.encode(text, add_special_tokens=False).ids for text in texts.to_pylist()] == documents_of(after)
    assert round_trip_failures(loaded, pa.array([normalized(text, "nfc") for text in texts.to_pylist()])) == []
    assert json.loads((tmp_path / "supertokens.json").read_text())["added"] == added


def test_added_tokens_that_the_model_does_not_hold_keep_their_ids(tmp_path: Path) -> None:
    """As in the files of Llama 3 and Qwen, whose library numbers such tokens anew behind the model's."""
    engine = Engine.from_str(base().as_json())
    size = engine.get_vocab_size()
    engine.add_special_tokens([AddedToken("<|turn|>", special=True)])
    engine.add_tokens([AddedToken("<think>", normalized=False)])
    published = HuggingFaceTokenizer(engine, base().metadata, "the published tokenizer")
    longer, report = extend(published, ExtensionLimits(top_k=4), iter([pa.array(TRACES)]))
    longer.save(tmp_path)
    reopened = Engine.from_file(str(tmp_path / "tokenizer.json"))
    assert [entry["id"] for entry in report["added"]] == list(range(size + 2, size + 6))
    assert [reopened.token_to_id(entry["token"]) for entry in report["added"]] == list(range(size + 2, size + 6))
    for text, token_id in engine.get_vocab().items():
        assert (reopened.token_to_id(text), reopened.id_to_token(token_id)) == (token_id, text)
    reopened.encode_special_tokens = True
    assert reopened.encode("a<think>b<|turn|>").ids == engine.encode("a<think>b<|turn|>").ids
    assert registry.load(tmp_path).vocabulary()["id"].to_pylist() == list(range(size + 6))


def documents_of(encoded: object) -> list[list[int]]:
    ids, offsets = encoded.ids.tolist(), encoded.offsets.tolist()  # type: ignore[attr-defined]
    return [ids[a:b] for a, b in pairwise(offsets)]


def test_what_cannot_be_extended_is_one_sentence() -> None:
    with pytest.raises(InputError, match="no text"):
        extend(base(), ExtensionLimits(), iter([pa.array([""])]))
    with pytest.raises(InputError, match="has no alternative that matches a word"):
        run_regex(r"\d+|\W", [])


def with_steps(steps: list[dict[str, Any]]) -> HuggingFaceTokenizer:
    """The base with these steps before its own."""
    content = json.loads(base().as_json())
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [*steps, *steps_of(content["pre_tokenizer"])]}
    found = HuggingFaceTokenizer(Engine.from_str(json.dumps(content)), base().metadata, "the tokenizer")
    assert found.exact_bpe() is not None
    return found


def split_by(pretokenizer: str) -> HuggingFaceTokenizer:
    config = TrainConfig(
        family="byte_bpe", vocab_size=900, pretokenizer=pretokenizer, special_tokens=SpecialTokens(eod="<|endoftext|>")
    )
    texts = [*documents(), *TRACES, HAN * 20, MARKS * 200]
    tokenizer = registry.train(config, iter([pa.array(texts)]), "none")
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    return tokenizer


def test_marks_that_no_run_of_words_holds_are_no_part_of_a_phrase() -> None:
    """GPT-2's regex takes them for punctuation, so a stock pretokenizer never joins them to a letter."""
    texts = pa.array([TRACES[0], MARKS * 400])
    longer, report = extend(split_by("gpt2"), ExtensionLimits(top_k=20), iter([texts]))
    assert report["added"]
    tokens = token_bytes(longer)
    assert not any("\u0301".encode() in tokens[row["id"]] for row in report["added"])


MARKS = "ne\u0301 me\u0301 te\u0301 "
HAN = "so we have to find \u6211\u4eec\u6211\u4eec 12 of the\u6211\u4eec so we have \u6211\u4eecto find the "


@pytest.mark.parametrize("kind", ["deepseek", "digits"])
def test_several_regexes_leave_their_matches_apart(kind: str, tmp_path: Path) -> None:
    several = split_by("deepseek_v3") if kind == "deepseek" else with_steps([DIGITS])
    texts = pa.array([*documents(), *TRACES, HAN * 40], pa.string())
    longer, report = extend(several, ExtensionLimits(top_k=40), iter([texts]))
    new = [token_bytes(longer)[row["id"]].decode() for row in report["added"]]
    assert kind == "digits" or not any(set(token) & set(HAN[19:23]) for token in new)
    longer.save(tmp_path)
    engine = Engine.from_file(str(tmp_path / "tokenizer.json"))
    engine.encode_special_tokens = True
    pieces = st.sampled_from([*new, *TRACES[0].split(" "), " ", "12", "\u6211\u4eec", "\n", "!a", "'s", "x\u0301"])

    exact = longer.exact_bpe(across_words=True)
    assert exact is not None
    encode = exact.encode

    @settings(max_examples=150, deadline=None)
    @given(st.lists(pieces, max_size=12).map("".join))
    def same(text: str) -> None:
        theirs = engine.encode(text, add_special_tokens=False).ids
        assert longer.encode(pa.array([text])).ids.tolist() == theirs
        assert encode(pa.array([text])).ids.tolist() == theirs

    same()
    used = {token for text in texts.to_pylist() for token in engine.encode(text, add_special_tokens=False).ids}
    assert {row["id"] for row in report["added"][:5]} <= used


DIGITS = {"type": "Digits", "individual_digits": True}


def steps_of(pretokenizer: dict[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = pretokenizer.get("pretokenizers", [pretokenizer])
    return steps
