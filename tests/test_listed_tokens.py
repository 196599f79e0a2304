"""Tokens that stand beside a tokenizer's file get the ids that transformers give them."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken
from tokenizers import Tokenizer as Engine
from transformers import PreTrainedTokenizerFast

from tests.command_line import tokpack
from tests.test_tokenizers_files import llama_like, saved_json
from tests.tokenizer_samples import ids, trained
from tokpack_core.config import SpecialTokens
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.encoder_choice import encoder_choice
from tokpack_core.tokenizers.huggingface.listed_tokens import add_listed
from tokpack_core.tokenizers.tiktoken.ranks import write_rank_file

OF_THE_FILE = ["<unk>", "<s>", "</s>", "<kept>", "▁ab"]
"""Added tokens of the file, and a token that its model holds."""
CONTENTS = st.sampled_from([*OF_THE_FILE, "<|im_start|>", "<|im_end|>", "sop", "<pad>", "<image>"])
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
TOKEN = st.fixed_dictionaries({"content": CONTENTS} | dict.fromkeys(FLAGS, st.booleans()))
LISTED = st.dictionaries(st.integers(0, 300).map(str), TOKEN, max_size=6)
NAMED = {
    "__type": st.just("AddedToken"),
    "content": st.just("<named>"),
    "lstrip": st.booleans(),
    "normalized": st.booleans(),
}
NAME = st.one_of(CONTENTS, st.fixed_dictionaries(NAMED))
CONFIG = st.fixed_dictionaries(
    {},
    optional={
        "added_tokens_decoder": LISTED,
        "eos_token": NAME,
        "pad_token": NAME,
        "bos_token": CONTENTS,
        "mask_token": CONTENTS,
        "image_token": CONTENTS,
        "additional_special_tokens": st.lists(CONTENTS, max_size=3, unique=True),
        "extra_special_tokens": st.dictionaries(st.sampled_from(["boi_token", "image_token"]), CONTENTS),
    },
)
OLDER = st.tuples(
    st.fixed_dictionaries({}, optional={"eos_token": NAME, "pad_token": CONTENTS}),
    st.dictionaries(CONTENTS, st.integers(0, 300), max_size=4),
)
TEXT = "a sop<|im_start|>ab <kept> <|im_end|> ab<pad>sop <image>b"


def write_folder(folder: Path, config: dict[str, Any], older: tuple[dict[str, Any], dict[str, int]] | None) -> None:
    engine = llama_like()
    engine.add_tokens([AddedToken("<kept>", normalized=False)])
    saved_json(engine, folder, config)
    for name, content in zip(("special_tokens_map.json", "added_tokens.json"), older or (), strict=False):
        (folder / name).write_text(json.dumps(content))


def flags(token: AddedToken) -> tuple[Any, ...]:
    return (token.content, *(getattr(token, flag) for flag in FLAGS))


@settings(deadline=None, max_examples=60)
@given(CONFIG, st.none() | OLDER)
@example({"extra_special_tokens": {"boi_token": "<unk>"}, "additional_special_tokens": ["<unk>"]}, ({}, {"<unk>": 3}))
def test_size_ids_and_flags_are_those_of_transformers(
    config: dict[str, Any], older: tuple[dict[str, Any], dict[str, int]] | None
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_folder(folder, config, older)
        theirs = PreTrainedTokenizerFast.from_pretrained(folder)
        ours = Engine.from_file(str(folder / "tokenizer.json"))
        add_listed(ours, folder)
        assert ours.get_vocab_size() == len(theirs)
        added = [{n: flags(token) for n, token in of.items()} for of in (decoder(ours), theirs.added_tokens_decoder)]
        assert added[0] == added[1]
        ours.encode_special_tokens = theirs.backend_tokenizer.encode_special_tokens = True
        assert ours.encode(TEXT).ids == theirs.backend_tokenizer.encode(TEXT).ids


def decoder(engine: Engine) -> dict[int, AddedToken]:
    found: dict[int, AddedToken] = engine.get_added_tokens_decoder()
    return found


def listed(content: str, **more: bool) -> dict[str, Any]:
    return {"content": content, "lstrip": False, "rstrip": False, "single_word": False, "normalized": False} | more


def test_other_ids_than_listed_are_a_warning(tmp_path: Path) -> None:
    """What a model was trained with may be the listed ids."""
    config = {"eos_token": "</s>", "added_tokens_decoder": {"264": listed("<a>"), "270": listed("sop")}}
    path = saved_json(llama_like(), tmp_path, config)
    tokenizer = registry.load(tmp_path)
    assert tokenizer.vocab_size == 266
    assert ids(tokenizer, "<a>sop") == [264, 265]
    (said,) = encoder_choice(tokenizer).warnings
    assert "lists 'sop' as 270: tokenizer.json gives it id 265, here and in transformers" in said
    (tmp_path / "a.txt").write_text("a sop\n")
    result = tokpack(tmp_path, "encode", "--tokenizer", path, "--output", "x", "a.txt")
    assert "lists 'sop' as 270" in " ".join(f"{result.out} {result.err}".split())
    config["added_tokens_decoder"] = {"264": listed("<a>")}
    saved = tmp_path / "saved"
    saved.mkdir()
    tokenizer.save(saved)
    assert ids(registry.load(saved), "<a>sop") == [264, 265]
    saved_json(llama_like(), tmp_path, config)
    assert not encoder_choice(registry.load(tmp_path)).warnings


def test_a_listed_token_that_would_share_an_id_is_refused(tmp_path: Path) -> None:
    content = json.loads(llama_like().to_str())
    content["model"]["vocab"]["▁ab"] = 264
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    config = {"eos_token": "</s>", "added_tokens_decoder": {"265": listed("<a>"), "266": listed("<b>")}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"have holes, so that '<a>', which tokenizer_config\.json lists, would share"):
        registry.load(tmp_path)


@pytest.mark.parametrize("entry", [{"x": {"content": "<a>"}}, {"7": "<a>"}, {"7": {"lstrip": True}}, ["<a>"]])
def test_a_damaged_list_is_named(entry: Any, tmp_path: Path) -> None:
    saved_json(llama_like(), tmp_path, {"added_tokens_decoder": entry})
    with pytest.raises(InputError, match=r"tokenizer_config\.json lists a token that cannot be read"):
        registry.load(tmp_path)


@pytest.mark.parametrize("family", ["sentencepiece_bpe", "tiktoken"])
def test_what_cannot_be_added_is_a_warning(family: str, tmp_path: Path) -> None:
    if family == "tiktoken":
        ranks = ((bytes([byte]), byte) for byte in range(256))
        write_rank_file(tmp_path / "tokenizer.tiktoken", dict(ranks))
    else:
        trained("sentencepiece_bpe").save(tmp_path)
    config = {"added_tokens_decoder": {"0": listed("<|endoftext|>"), "900": listed("<|im|>"), "901": listed("<|x|>")}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    pretokenizer = "gpt2" if family == "tiktoken" else None
    tokenizer = registry.load(tmp_path, SpecialTokens(eod="<|endoftext|>"), pretokenizer)
    (said,) = encoder_choice(tokenizer).warnings
    assert "does not hold '<|im|>' and 1 more, which the files beside it list" in said


def test_white_space_around_a_token_with_a_role_goes_where_the_file_says(tmp_path: Path) -> None:
    """`<|end|>` takes the white space behind it; as EOD it goes on doing so, as with transformers."""
    engine = llama_like()
    engine.add_special_tokens([AddedToken("<|end|>", rstrip=True, special=True)])
    saved_json(engine, tmp_path, {"eos_token": "<|end|>"})
    tokenizer = registry.load(tmp_path)
    text = "ab<|end|>\n  ab"
    found = tokenizer.encode_with_special_tokens(pa.array([text])).ids.tolist()  # type: ignore[attr-defined]
    assert found == PreTrainedTokenizerFast.from_pretrained(tmp_path)(text, add_special_tokens=False).input_ids
    end = tokenizer.special_tokens["eod"]
    assert found == [*ids(tokenizer, "ab"), end, *ids(tokenizer, "ab")]


@pytest.mark.parametrize("listed", [{"<a>": 264, "<b>": "265"}, {"<a>": 264, "<b>": None}, {"<s>": "3"}])
def test_ids_that_are_no_numbers_are_one_sentence(listed: dict[str, Any], tmp_path: Path) -> None:
    saved_json(llama_like(), tmp_path, {})
    (tmp_path / "added_tokens.json").write_text(json.dumps(listed))
    with pytest.raises(InputError, match=r"added_tokens\.json lists a token that cannot be read"):
        registry.load(tmp_path)
