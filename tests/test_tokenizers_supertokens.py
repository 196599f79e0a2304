"""Cross-word tokens appended to a published tokenizer."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tokenizers import AddedToken
from tokenizers import Tokenizer as Engine

from tests.tokenizer_samples import documents, normalized, token_bytes, trained
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.round_trip import round_trip_failures
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
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
    content = json.loads(base().as_json())
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [DIGITS, *steps_of(content["pre_tokenizer"])]}
    several = HuggingFaceTokenizer(Engine.from_str(json.dumps(content)), base().metadata, "the tokenizer")
    assert several.exact_bpe() is not None
    with pytest.raises(InputError, match="of several regexes has no stock form with superwords: give a tokenizer"):
        extend(several, ExtensionLimits(), iter([pa.array(TRACES)]))


DIGITS = {"type": "Digits", "individual_digits": True}


def steps_of(pretokenizer: dict[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = pretokenizer.get("pretokenizers", [pretokenizer])
    return steps
