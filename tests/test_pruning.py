"""Pruning: kept entries can still be made, ids close up, and text of kept tokens has the tokens it had."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import AddedToken, Regex, models, pre_tokenizers, processors
from tokenizers import Tokenizer as Engine
from transformers import PreTrainedTokenizerFast

from tests.command_line import tokpack
from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.pruning import Pruned, prune
from tokpack_core.tokenizers.registry import load, train
from tokpack_core.tokenizers.tiktoken.ranks import write_rank_file
from tokpack_core.vocabulary.counting import text_counter

TEXTS = [
    "the thinking thinker thought of the other things, whether weather gathers together",
    "貓坐在墊子上,貓坐在墊子上 the cat",
    "lower lowest newer newest widest wider 2024 2025\n\tdef f(x): return x",
]


def trained(family: str, folder: Path) -> Tokenizer:
    size = {"byte_bpe": 330, "rank_file": 330, "sentencepiece_bpe": 370, "sentencepiece_unigram": 312}[family]
    kind = "byte_bpe" if family == "rank_file" else family
    config = TrainConfig.model_validate(
        {"family": kind, "vocab_size": size, "special_tokens": {"eod": "<|eod|>", "pad": "<|pad|>"}}
    )
    tokenizer = train(config, iter([pa.array(TEXTS * 5)]), "nfc")
    if family != "rank_file":
        return tokenizer
    tokens = tokenizer.vocabulary().filter(pa.compute.invert(tokenizer.vocabulary()["special"]))["token"].to_pylist()
    write_rank_file(folder / "x.tiktoken", {token: rank for rank, token in enumerate(tokens)})
    return load(folder / "x.tiktoken", SpecialTokens(eod="<|eod|>"), "cl100k")


def counts_of(tokenizer: Tokenizer, texts: list[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.bincount(tokenizer.encode(pa.array(texts)).ids, minlength=tokenizer.vocab_size)


FAMILIES = ("byte_bpe", "rank_file", "sentencepiece_bpe", "sentencepiece_unigram")


@pytest.mark.parametrize("family", FAMILIES)
def test_kept_entries_keep_their_text_and_what_they_are_made_of(family: str, tmp_path: Path) -> None:
    tokenizer = trained(family, tmp_path)
    counts = counts_of(tokenizer, TEXTS[:1])
    pruned = prune(tokenizer, counts < 1)
    old, new = (t.vocabulary() for t in (tokenizer, pruned.tokenizer))
    assert 0 < (~pruned.kept).sum() < 330
    assert not pruned.kept[counts == 0].all()
    assert pruned.kept[counts > 0].all()
    kept = pa.array(pruned.kept)
    assert new["token"].to_pylist() == old.filter(kept)["token"].to_pylist()
    assert new["special"].to_pylist() == old.filter(kept)["special"].to_pylist()
    id_map = pruned.id_map().to_pydict()
    assert [old for old, new in zip(id_map["old"], id_map["new"], strict=True) if new is not None] == np.flatnonzero(
        pruned.kept
    ).tolist()
    # Text whose tokens all stay: the same tokens under their new numbers.
    mapped = [id_map["new"][token] for token in tokenizer.encode(pa.array(TEXTS[:1])).ids]
    assert pruned.tokenizer.encode(pa.array(TEXTS[:1])).ids.tolist() == mapped
    # Whatever could be encoded still can.
    texts = pa.array([*TEXTS, "été 🎈 \x00", "<|eod|>"])
    assert pruned.tokenizer.decode(pruned.tokenizer.encode(texts)).to_pylist() == texts.to_pylist()
    assert pruned.tokenizer.special_tokens.keys() == tokenizer.special_tokens.keys()


@pytest.mark.parametrize("family", FAMILIES[:3])
def test_every_kept_entry_of_a_bpe_is_reachable_as_before(family: str, tmp_path: Path) -> None:
    tokenizer = trained(family, tmp_path)

    def made(tokenizer: Tokenizer) -> set[bytes]:
        table = tokenizer.vocabulary().to_pylist()
        texts = [
            row["token"].decode() for row in table if row["token"].decode("utf-8", "ignore").encode() == row["token"]
        ]
        encoded = tokenizer.encode(pa.array(texts))
        lengths = encoded.lengths
        return {text.encode() for text, length in zip(texts, lengths, strict=True) if length == 1}

    pruned = prune(tokenizer, counts_of(tokenizer, TEXTS[2:]) < 1).tokenizer
    kept = set(pruned.vocabulary()["token"].to_pylist())
    assert made(pruned) == made(tokenizer) & kept
    assert len(kept) < tokenizer.vocab_size


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pruned_tokenizer_survives_its_folder(family: str, tmp_path: Path) -> None:
    tokenizer = trained(family, tmp_path)
    pruned = prune(tokenizer, counts_of(tokenizer, TEXTS[:1]) < 2).tokenizer
    (tmp_path / "saved").mkdir()
    pruned.save(tmp_path / "saved")
    loaded = load(tmp_path / "saved")
    assert loaded.encode(pa.array(TEXTS)).ids.tolist() == pruned.encode(pa.array(TEXTS)).ids.tolist()
    assert loaded.special_tokens == pruned.special_tokens
    if family == "byte_bpe":
        merges = pq.read_table(tmp_path / "saved" / "merges.parquet").to_pylist()
        tokens = pruned.vocabulary()["token"].to_pylist()
        assert all(tokens[row["left"]] + tokens[row["right"]] == tokens[row["token"]] for row in merges)


def test_a_parent_of_a_kept_entry_stays_though_it_is_rare(tmp_path: Path) -> None:
    tokenizer = trained("byte_bpe", tmp_path)
    tokens = tokenizer.vocabulary()["token"].to_pylist()
    target = tokens.index(b" newest") if b" newest" in tokens else len(tokens) - 1
    removable = np.ones(len(tokens), bool)
    removable[target] = False
    kept = {tokens[row] for row in np.flatnonzero(prune(tokenizer, removable).kept)}
    content = json.loads(save_json(tokenizer, tmp_path))
    parents = {a + b: (a, b) for a, b in content["model"]["merges"]}
    names = {row: name for name, row in content["model"]["vocab"].items()}
    waiting, expected = [names[target]], set()
    while waiting:
        name = waiting.pop()
        expected.add(content["model"]["vocab"][name])
        waiting += parents.get(name, ())
    assert {tokens[row] for row in expected} <= kept
    assert len(kept) == 258 + sum(len(tokens[row]) > 1 for row in expected)


def save_json(tokenizer: Tokenizer, folder: Path) -> str:
    (folder / "j").mkdir()
    tokenizer.save(folder / "j")
    return (folder / "j" / "tokenizer.json").read_text()


def test_ids_inside_the_post_processor_and_of_added_tokens_follow(tmp_path: Path) -> None:
    vocabulary = {"<s>": 0, **{character: i + 1 for i, character in enumerate("abcd")}, "ab": 5, "cd": 6}
    engine = Engine(models.BPE(vocabulary, [("a", "b"), ("c", "d")]))
    engine.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w+"), "isolated")
    engine.add_special_tokens([AddedToken("<s>", special=True), AddedToken("</s>", special=True)])
    engine.add_tokens(["kept whole"])
    engine.post_processor = processors.TemplateProcessing("<s> $A </s>", None, [("<s>", 0), ("</s>", 7)])
    engine.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load(tmp_path / "tokenizer.json")
    pruned = prune(tokenizer, np.array([False] * 5 + [True] + [False] * 3))
    assert pruned.kept.tolist() == [True] * 5 + [False] + [True] * 3
    (tmp_path / "p").mkdir()
    pruned.tokenizer.save(tmp_path / "p")
    peer = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "p" / "tokenizer.json"))
    assert peer("abcd")["input_ids"] == [0, 1, 2, 5, 6]
    assert pruned.tokenizer.encode(pa.array(["kept whole"])).ids.tolist() == [7]


def test_unigram_in_a_tokenizer_json(tmp_path: Path) -> None:
    pieces = [("<unk>", 0.0), ("a", -3.0), ("b", -3.5), ("ab", -1.0), ("aba", -1.5), ("bb", -9.0)]
    Engine(models.Unigram(pieces, 0)).save(str(tmp_path / "tokenizer.json"))
    tokenizer = load(tmp_path / "tokenizer.json")
    assert tokenizer.encode(pa.array(["abaab"])).ids.tolist() == [4, 3]
    pruned = prune(tokenizer, np.array([True] * 4 + [False, True]))
    assert pruned.kept.tolist() == [True, True, True, False, True, False]
    assert pruned.tokenizer.encode(pa.array(["abaab"])).ids.tolist() == [3, 1, 2]


def test_what_cannot_be_pruned_is_refused(tmp_path: Path) -> None:
    Engine(models.WordPiece({"[UNK]": 0, "a": 1})).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(InputError, match="a WordPiece model cannot be pruned"):
        prune(load(tmp_path / "tokenizer.json"), np.ones(2, bool))
    holes = {"a": 0, "b": 3}
    Engine(models.BPE(holes, [])).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(InputError, match="its ids have holes"):
        prune(load(tmp_path / "tokenizer.json"), np.ones(4, bool))


def test_the_command_measures_what_pruning_costs(tmp_path: Path) -> None:
    tokenizer = trained("byte_bpe", tmp_path)
    (tmp_path / "t").mkdir()
    tokenizer.save(tmp_path / "t")
    (tmp_path / "a.txt").write_text("\n".join(TEXTS[:2]))
    run = ("prune", "--tokenizer", "t", "--below", "2", "--output", "small", "a.txt")
    manifest = tokpack(tmp_path, *run, "--json").json
    counts = manifest["counts"]
    smaller = load(tmp_path / "small")
    texts = ["\n".join(TEXTS[:2])]
    before, after = counts_of(tokenizer, texts), counts_of(smaller, texts)
    assert (counts["tokens_before"], counts["tokens_after"]) == (before.sum(), after.sum())
    assert counts["tokens_added_share"] == after.sum() / before.sum() - 1 > 0
    assert counts["vocab_size"] == smaller.vocab_size == 330 - counts["removed"]
    assert counts["rare_but_needed"] == (before < 2).sum() - counts["removed"]
    id_map = pq.read_table(tmp_path / "small" / "id_map.parquet")
    assert id_map["new"].drop_null().to_pylist() == list(range(smaller.vocab_size))
    assert manifest["parameters"]["tokenizer"]["vocab_size"] == 330


def test_counts_of_a_pruned_tokenizer_are_those_of_encoding(tmp_path: Path) -> None:
    tokenizer = trained("byte_bpe", tmp_path)
    pruned: Pruned = prune(tokenizer, counts_of(tokenizer, TEXTS[:1]) < 2)
    counter = text_counter(pruned.tokenizer)
    counter.add(pa.array(TEXTS), pa.nulls(len(TEXTS), pa.string()))
    assert counter.total().tokens.tolist() == counts_of(pruned.tokenizer, TEXTS).tolist()
