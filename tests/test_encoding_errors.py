"""Texts on which a regex searches without end, or which it leaves out in part: errors that name them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from tests.command_line import tokpack
from tokpack_core.bpe import regex_splitting
from tokpack_core.bpe.regex_splitting import count_words
from tokpack_core.config import TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.encoding_errors import EncodingError, lists_or_error
from tokpack_core.tokenizers.huggingface.model import ids_of
from tokpack_core.tokenizers.registry import train
from tokpack_core.tokenizers.superwords.model import eligibility
from tokpack_core.tokenizers.tiktoken.ranks import write_rank_file

WITHOUT_END = r"(?:a|a)+b|."
LONG = "a" * 60


def engine() -> Tokenizer:
    engine = Tokenizer(models.BPE({"a": 0, "b": 1}, []))
    engine.pre_tokenizer = pre_tokenizers.Split(Regex(WITHOUT_END), "isolated")
    return engine


def test_a_panic_names_the_text_and_crosses_processes() -> None:
    own = engine()
    assert lists_or_error(lambda texts: ids_of(own, texts), ["ab", "", "b"]) == [[0, 1], [], [1]]
    with pytest.raises(EncodingError, match=r"begins 'ba{39}' cannot be .*retry-limit.*regex without") as caught:
        lists_or_error(lambda texts: ids_of(own, texts), ["ab", f"b{LONG}", "b"])
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_other_errors_pass_through() -> None:
    def fail(texts: list[str]) -> list[list[int]]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lists_or_error(fail, ["a"])


def test_encode_names_the_document(tmp_path: Path) -> None:
    engine().save(str(tmp_path / "tokenizer.json"))
    lines = [json.dumps({"text": text}) for text in ("ab", LONG)]
    (tmp_path / "text.jsonl").write_text("\n".join(lines), encoding="utf-8")
    arguments = ("encode", "--tokenizer", "tokenizer.json", "--output", "out", "text.jsonl")
    ended = tokpack(tmp_path, *arguments, may_fail=True)
    assert ended.code == 1
    assert "text.jsonl, row 2: this document cannot be encoded (its library gave up: Onig" in ended.err
    assert not list(tmp_path.glob("out*"))


def test_training_refuses_it() -> None:
    config = TrainConfig(family="byte_bpe", vocab_size=300, pretokenizer=f"regex:{WITHOUT_END}")
    with pytest.raises(InputError, match=r"text that begins 'a{40}' cannot be encoded .its library"):
        train(config, iter([pa.array([LONG])]), "none")


def test_text_that_is_not_compared_is_not_searched_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex_splitting, "PATIENCE", 0.05)
    for pattern in (WITHOUT_END, f"(?:{WITHOUT_END})(?<x>)"):
        with pytest.raises(InputError, match="takes too long on the text that begins 'aaa"):
            count_words([LONG], (pattern,))
    eligible = eligibility(WITHOUT_END, None)
    assert eligible(b"aab")
    assert not eligible(b"\n")
    with pytest.raises(InputError, match="takes too long"):
        eligible(LONG.encode())
    assert count_words(["aab"], (WITHOUT_END,)) == {b"aab": 1}


@pytest.mark.parametrize("pattern", ["(?R)", "a|(?R)"])
def test_a_regex_that_calls_itself_without_end(pattern: str) -> None:
    with pytest.raises(ValueError, match="calls itself without end"):
        TrainConfig(family="byte_bpe", vocab_size=300, pretokenizer=f"regex:{pattern}")
    with pytest.raises(InputError, match="calls itself without end"):
        eligibility(pattern, None)


@pytest.mark.parametrize("regex", [r"\p{L}+|\n", WITHOUT_END])
def test_what_tiktoken_drops_or_gives_up_on(regex: str, tmp_path: Path) -> None:
    write_rank_file(tmp_path / "x.tiktoken", {bytes([byte]): byte for byte in range(256)})
    texts = ["words\n", "b" if regex == WITHOUT_END else "two words"]
    (tmp_path / "text.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts), encoding="utf-8")
    ended = tokpack(
        tmp_path,
        *("encode", "--tokenizer", "x.tiktoken", "--output", "out", "text.jsonl"),
        *("--pretokenizer", f"regex:{regex}"),
        may_fail=True,
    )
    row = 1 if regex == WITHOUT_END else 2
    assert f"text.jsonl, row {row}: this document cannot be encoded (its regex, `{regex}`, does not match" in ended.err
    assert not list(tmp_path.glob("out*"))
