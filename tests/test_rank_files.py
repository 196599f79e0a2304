"""Rank files on the command line: the regex is known by the ranks, or named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import tokpack
from tests.published_ranks import published_ranks
from tokpack_core.config import TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.stages.tokenizer import import_pretrained
from tokpack_core.tokenizers.tiktoken.ranks import write_rank_file


def test_a_regex_must_be_named_for_unknown_ranks(tmp_path: Path) -> None:
    write_rank_file(tmp_path / "x.tiktoken", {bytes([byte]): byte for byte in range(256)} | {b"12": 256, b"1234": 257})
    (tmp_path / "a.txt").write_text("1234", encoding="utf-8")
    arguments = ("encode", "--tokenizer", "x.tiktoken", "--json", "--output")
    failed = tokpack(tmp_path, *arguments, "out", "a.txt", may_fail=True)
    assert failed.code == 1
    assert "x.tiktoken does not say which regex splits text" in failed.json["error"]
    assert not (tmp_path / "out.bin").exists()
    made = tokpack(tmp_path, *arguments, "out", "--pretokenizer", "gpt2", "a.txt").json
    assert made["tokenizer"]["pretokenizer"] == "gpt2"
    # gpt2 leaves 1234 together, which is a token; cl100k cuts it into 123 and 4, which is 12 3 4.
    assert made["counts"]["tokens"] == 1
    assert tokpack(tmp_path, *arguments, "o2", "--pretokenizer", "cl100k", "a.txt").json["counts"]["tokens"] == 3
    shown = tokpack(tmp_path, "inspect", "out", "--pack", "0", "--json").json
    assert "".join(segment["text"] for segment in shown["pack"]["segments"]) == "1234"
    assert "not_decoded" not in shown
    write_rank_file(tmp_path / "x.tiktoken", {bytes([byte]): byte for byte in range(256)})
    changed = tokpack(tmp_path, "inspect", "out", "--json").json
    assert changed["not_decoded"].endswith(
        "x.tiktoken is no longer the tokenizer that made it: name that with --tokenizer"
    )
    (tmp_path / "x.tiktoken").unlink()
    assert "is gone" in tokpack(tmp_path, "inspect", "out", "--json").json["not_decoded"]


def test_what_takes_no_ranks_or_needs_no_regex_asks_for_none(tmp_path: Path) -> None:
    write_rank_file(tmp_path / "x.tiktoken", {bytes([byte]): byte for byte in range(256)})
    (tmp_path / "a.txt").write_text("text", encoding="utf-8")
    longer = ("supertokens", "--tokenizer", "x.tiktoken", "--output", "out", "a.txt")
    assert "only the tokenizer.json of a byte-level BPE" in tokpack(tmp_path, *longer, may_fail=True).err
    fewest = ("minimum-cost", "--tokenizer", "x.tiktoken", "--output", "fewest")
    assert "--pretokenizer" in tokpack(tmp_path, *fewest, may_fail=True).err
    tokpack(tmp_path, *fewest, "--pretokenizer", "gpt2")


def test_published_ranks_are_known(tmp_path: Path) -> None:
    ranks = published_ranks("o200k_base", tmp_path)
    (tmp_path / "a.txt").write_text("HelloWorld it's", encoding="utf-8")
    made = tokpack(tmp_path, "encode", "--tokenizer", ranks, "--json", "--output", "out", "a.txt").json
    # "Hello", "World", " it's"; by the regex of cl100k the last would be two tokens.
    assert made["counts"]["tokens"] == 3


def test_a_configuration_names_the_regex_too(tmp_path: Path) -> None:
    write_rank_file(tmp_path / "x.tiktoken", {bytes([byte]): byte for byte in range(256)})
    settings = {"family": "pretrained", "path": str(tmp_path / "x.tiktoken"), "special_tokens": {"eod": "<eod>"}}
    with pytest.raises(InputError, match="in a configuration as `pretokenizer`"):
        import_pretrained(TrainConfig.model_validate(settings), tmp_path / "x.tiktoken", "t", tmp_path)
    # The default of other families is a choice like any other where it is named.
    named = TrainConfig.model_validate(settings | {"pretokenizer": "cl100k"})
    (tmp_path / "saved").mkdir()
    import_pretrained(named, tmp_path / "x.tiktoken", "t", tmp_path / "saved")
    content = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_bytes())
    assert content["tokpack"]["settings"] == {"pretokenizer": "cl100k"}
