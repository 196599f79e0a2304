"""SentencePiece vocabularies with quotas by domain: exact totals, what each gave, equality with other libraries."""

from __future__ import annotations

import argparse
import json
import json.decoder
from functools import cache
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest
import sentencepiece

from tests.command_line import tokpack
from tests.small_project import write_small_project
from tests.tokenizer_samples import EOD, HOSTILE, PAD, SPECIAL_TOKENS, documents
from tokpack_core.config import TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.checked_export import save_checked
from tokpack_core.tokenizers.common_hanzi import level_one_hanzi
from tokpack_core.tokenizers.quotas import Share, share_out, take_turns
from tokpack_core.tokenizers.sentencepiece.allocation import GrownPieces, Union
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer
from tokpack_core.tokenizers.sentencepiece.proto import NORMAL, pieces

HANZI = "".join(level_one_hanzi())
TEXTS = {
    "en": documents()[:60],
    "zh": [HANZI[place : place + 12] + "。" for place in range(0, 400, 5)] * 3,
    "code": [Path(str(module.__file__)).read_text(encoding="utf-8") for module in (argparse, json, json.decoder)],
}
QUOTAS = {"en": 700, "code": 300, "zh": 570, "reserved": 20}
Family = Literal["sentencepiece_bpe", "sentencepiece_unigram"]
FAMILIES: tuple[Family, ...] = ("sentencepiece_bpe", "sentencepiece_unigram")


def train(family: str, reverse: bool = False, **settings: object) -> SentencePieceTokenizer:
    given = {"family": family, "allocation": QUOTAS, "special_tokens": SPECIAL_TOKENS}
    given |= {"character_coverage": 1.0} | settings
    mixed = [(name, pa.array([text], pa.string())) for name in TEXTS for text in TEXTS[name]]
    config = TrainConfig.model_validate(given)
    tokenizer = registry.train_allocated(config, iter(mixed[::-1] if reverse else mixed), "none")
    assert isinstance(tokenizer, SentencePieceTokenizer)
    return tokenizer


@cache
def allocated(family: str) -> SentencePieceTokenizer:
    return train(family)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_total_and_every_quota_are_exact(family: Family) -> None:
    tokenizer = allocated(family)
    tokens = tokenizer.vocabulary()["token"].to_pylist()
    assert tokenizer.vocab_size == len({text for text, _, _ in pieces(tokenizer.model)}) == sum(QUOTAS.values())
    got = tokenizer.training["allocation"]
    assert {name: got[name]["entries"] for name in TEXTS} == {"en": 700, "code": 300, "zh": 570}
    assert [token.decode() for token in tokens[:3]] == [EOD, PAD, "<unk>"]
    assert [token.decode() for token in tokens[-17:]] == [f"<|reserved_{number}|>" for number in range(17)]
    assert tokenizer.vocabulary()["special"].to_pylist()[-17:] == [True] * 17
    assert (got["zh"]["share"], got["zh"]["documents"], got["reserved"]) == (round(570 / 1570, 6), 240, 20)
    assert sum(got[name]["shared"] for name in TEXTS) > 0
    characters = {character for texts in TEXTS.values() for text in texts for character in text if character != " "}
    assert {character.encode() for character in characters} <= set(tokens)
    assert tokenizer.training["bytes"] == sum(len(text.encode()) for texts in TEXTS.values() for text in texts)
    assert tokenizer.training["bytes_dropped"] == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_each_domain_gives_what_it_learned_by_itself(family: Family) -> None:
    """Most of what a domain would have alone is there, though others gave some of it."""
    tokens = set(allocated(family).vocabulary()["token"].to_pylist())
    of_bytes = share_out(256, {name: QUOTAS[name] for name in TEXTS})
    for name, texts in TEXTS.items():
        size = 3 + 256 + QUOTAS[name] - of_bytes[name]
        alone = {"family": family, "vocab_size": size, "special_tokens": SPECIAL_TOKENS}
        own = registry.train(TrainConfig.model_validate(alone), iter([pa.array(texts)]), "none")
        mine = set(own.vocabulary()["token"].to_pylist())
        assert len(mine & tokens) > 0.95 * len(mine)


@pytest.mark.parametrize("family", FAMILIES)
def test_it_opens_elsewhere_with_the_same_ids(family: Family, tmp_path: Path) -> None:
    tokenizer = allocated(family)
    texts = pa.array([*documents()[:80], *TEXTS["zh"][:2], *HOSTILE], pa.large_string())
    found = save_checked(tokenizer, tmp_path, texts, True)
    assert found["transformers"]["differing_documents"] == 0
    assert found["auto_tokenizer"]["compared"]
    assert tokenizer.decode(tokenizer.encode(texts)).to_pylist() == texts.to_pylist()
    text = "<|reserved_3|> is text"
    library = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.model"))
    assert tokenizer.encode(pa.array([text])).ids.tolist() == library.encode(text)
    assert library.piece_to_id("<|reserved_3|>") not in library.encode(text)
    translated = json.loads((tmp_path / "transformers" / "tokenizer.json").read_bytes())
    special = {token["content"]: token["id"] for token in translated["added_tokens"] if token["special"]}
    assert special["<|reserved_16|>"] == sum(QUOTAS.values()) - 1


def test_no_text_is_needed_to_see_that_each_piece_of_bpe_is_reached() -> None:
    tokenizer = allocated("sentencepiece_bpe")
    library = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    ordinary = [(place, text) for place, (text, _, kind) in enumerate(pieces(tokenizer.model)) if kind == NORMAL[0]]
    assert all(library.encode(text) == [place] for place, text in ordinary)


def test_a_piece_that_the_pieces_before_it_take_apart_is_passed_over() -> None:
    """After bc the characters of abcd are a, bc and d."""
    shares = {"x": Share(400), "y": Share(400)}
    learned = {"x": [*"abcd", "bc"], "y": [*"abcd", "abcd", "cd", "abc", "abcd"]}
    grown = GrownPieces()
    given = take_turns(shares, {name: iter([(p, 0) for p in learned[name]]) for name in learned}, grown)
    assert grown.pieces == ["a", "b", "c", "d", "bc", "cd", "abc", "abcd"]
    assert grown.parts("abcde") == ["abcd", "e"]
    assert grown.parts("bcd") == ["bc", "d"]
    assert given == {"x": {"a", "c", "bc"}, "y": {"b", "d", "cd", "abc", "abcd"}}
    assert (shares["x"].passed_over, shares["y"].passed_over) == (0, 1)


def test_of_unigram_every_piece_is_taken() -> None:
    shares = {"x": Share(258)}
    union = Union()
    assert take_turns(shares, {"x": iter([("ab", 0), ("ab", 0), ("b", 0), ("c", 0)])}, union) == {"x": {"ab", "b"}}
    assert union.pieces == ["ab", "b"]


@pytest.mark.parametrize("family", FAMILIES)
def test_neither_the_order_of_documents_nor_of_domains_matters(family: Family) -> None:
    turned = train(family, reverse=True, allocation=dict(reversed(QUOTAS.items())))
    assert turned.model == allocated(family).model


@pytest.mark.parametrize("family", FAMILIES)
def test_a_domain_that_its_text_cannot_fill_is_told(family: Family) -> None:
    tokenizer = train(family, allocation={"en": 700, "zh": 9000, "code": 300, "reserved": 3})
    missing = tokenizer.training["entries_missing"]
    assert tokenizer.vocab_size == 10_003 - missing
    assert tokenizer.training["allocation"]["zh"]["entries"] == 9000 - missing
    assert tokenizer.training["allocation"]["en"]["entries"] == 700


@pytest.mark.parametrize("family", FAMILIES)
def test_a_quota_that_does_not_hold_the_characters_is_refused_with_the_one_that_does(family: Family) -> None:
    given = {"en": 700, "zh": 300, "code": 300, "reserved": 3}
    with pytest.raises(InputError, match="has 300 entries for 'zh', which is less than its characters need") as refused:
        train(family, allocation=given)
    named = int(str(refused.value).split("raise it to ")[1].split()[0])
    assert named > 400
    assert train(family, allocation=given | {"zh": named}).vocab_size == 1003 + named
    with pytest.raises(InputError, match=f"raise it to {named} or more"):
        train(family, allocation=given | {"zh": named - 1})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"allocation": {"en": 900, "reserved": 2}}, "needs `reserved: 3` or more, .* and SentencePiece's own unk"),
        ({"seed_vocabulary": "words.txt"}, "nor with `seed_vocabulary`"),
        ({"required_characters": "gb2312_level_1"}, "nor with `required_characters`"),
    ],
)
def test_what_does_not_go_together_is_refused(settings: dict[str, object], message: str) -> None:
    given = {"family": "sentencepiece_unigram", "allocation": QUOTAS, "special_tokens": {"eod": EOD, "pad": PAD}}
    with pytest.raises(ValueError, match=message):
        TrainConfig.model_validate(given | settings)


def test_from_the_command_line(tmp_path: Path) -> None:
    for name in ("en", "zh"):
        lines = (json.dumps({"text": text}) + "\n" for text in TEXTS[name])
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    flags = ["--allocation=en=600", "--allocation=zh=570", "--allocation=reserved=10", "--special-token", f"eod={EOD}"]
    train = ["train", "--family", "sentencepiece_unigram", *flags, "--output", "model", "en.jsonl", "zh.jsonl"]
    assert "570 of 570 entries, 48.7% of all" in tokpack(tmp_path, *train).out
    counts = json.loads((tmp_path / "model.manifest.json").read_bytes())["counts"]
    assert (counts["vocab_size"], counts["rounds"] > 0) == (1180, True)


def test_in_the_graph(tmp_path: Path) -> None:
    project = write_small_project(tmp_path)
    project.edit("family: byte_bpe", "family: sentencepiece_bpe")
    project.edit("vocab_size: 600", "allocation: {en: 380, code: 350, reserved: 10}")
    built = project.build("tokenizer_model/bpe_600")["tokenizer_model/bpe_600"]
    got = built.counts["training"]["allocation"]
    assert (built.counts["vocab_size"], got["en"]["entries"], got["code"]["entries"]) == (740, 380, 350)
    assert registry.load(built.folder).vocab_size == 740
