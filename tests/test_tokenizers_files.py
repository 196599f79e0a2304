"""Tokenizers from files: ours saved and loaded, and published ones of every kind."""

from __future__ import annotations

import base64
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sentencepiece
import tiktoken
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Engine
from transformers import AutoTokenizer

from tests.tokenizer_samples import EOD, FAMILIES, HOSTILE, documents, ids, saved_files, token_bytes, trained
from tokpack_core.commands.opened_tokenizer import open_tokenizer, saved_tokenizer
from tokpack_core.config import Family, SpecialTokens, TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.round_trip import round_trip_failures
from tokpack_core.tokenizers.pretokenizers import PRETOKENIZERS
from tokpack_core.tokenizers.protocol import VOCABULARY_SCHEMA, Tokenizer
from tokpack_core.tokenizers.tiktoken.ranks import read_rank_file, write_rank_file

TEXTS = pa.array([*HOSTILE, *documents()[:20]])


def assert_same(one: Tokenizer, other: Tokenizer) -> None:
    first, second = one.encode(TEXTS), other.encode(TEXTS)
    assert np.array_equal(first.ids, second.ids)
    assert np.array_equal(first.offsets, second.offsets)
    assert one.vocabulary().equals(other.vocabulary())
    assert one.vocabulary().schema == VOCABULARY_SCHEMA
    assert (one.family, one.unicode, one.vocab_size) == (other.family, other.unicode, other.vocab_size)
    assert (one.special_tokens, dict(one.training)) == (other.special_tokens, dict(other.training))


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_and_loaded_is_the_same_tokenizer(family: Family, tmp_path: Path) -> None:
    tokenizer = trained(family, "nfc")
    files = saved_files(tokenizer, tmp_path / "saved")
    loaded = registry.load(tmp_path / "saved")
    assert_same(tokenizer, loaded)
    assert saved_files(loaded, tmp_path / "again") == files
    # What a manifest says of it is what whoever opens it sees.
    assert saved_tokenizer(tmp_path / "saved", tokenizer).as_json() == open_tokenizer(tmp_path / "saved").as_json()


def test_a_saved_folder_keeps_its_special_tokens(tmp_path: Path) -> None:
    trained("byte_bpe").save(tmp_path)
    assert registry.load(tmp_path, SpecialTokens(eod=EOD)).special_tokens == {"eod": 0, "pad": 1}
    with pytest.raises(InputError, match="its special tokens are fixed"):
        registry.load(tmp_path, SpecialTokens(eod="<|pad|>"))


def test_a_config_of_another_tokenizer_is_noticed(tmp_path: Path) -> None:
    trained("byte_bpe").save(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(path.read_text().replace('"id": 1', '"id": 7'))
    with pytest.raises(InputError, match="does not belong"):
        registry.load(tmp_path)


def test_a_pretrained_family_reads_its_path_and_no_text(tmp_path: Path) -> None:
    trained("sentencepiece_bpe").save(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    settings = TrainConfig(
        family="pretrained", path=str(tmp_path / "tokenizer.model"), special_tokens=SpecialTokens(eod=EOD)
    )
    tokenizer = registry.train(settings, iter(()), "none")
    assert tokenizer.family == "pretrained"
    assert tokenizer.special_tokens == {"eod": 0}
    assert ids(tokenizer, "some text") == ids(trained("sentencepiece_bpe"), "some text")


# --- tokenizer.json -------------------------------------------------------------------------------------------------


def word_piece() -> Engine:
    engine = Engine(models.WordPiece(unk_token="[UNK]"))
    engine.normalizer = normalizers.BertNormalizer(lowercase=True)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    engine.train_from_iterator(documents()[:10], trainers.WordPieceTrainer(vocab_size=500, special_tokens=special))
    engine.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return engine


def unigram() -> Engine:
    engine = Engine(models.Unigram())
    engine.normalizer = normalizers.NFKC()
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    engine.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=400, special_tokens=["<unk>", "</s>"], unk_token="<unk>")
    engine.train_from_iterator(documents()[:10], trainer)
    return engine


def llama_like() -> Engine:
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{byte:02X}>": 3 + byte for byte in range(256)}
    vocab |= {token: 259 + place for place, token in enumerate(["▁", "a", "b", "ab", "▁ab"])}
    engine = Engine(models.BPE(vocab, [("a", "b"), ("▁", "ab")], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    engine.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    engine.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    engine.add_special_tokens(["<unk>", "<s>", "</s>"])
    return engine


def saved_json(engine: Engine, folder: Path, config: dict[str, Any] | None = None) -> Path:
    path = folder / "tokenizer.json"
    engine.save(str(path))
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return path


@pytest.mark.parametrize("make", [word_piece, unigram, llama_like])
def test_any_model_type_gives_the_ids_of_the_library(make: Callable[[], Engine], tmp_path: Path) -> None:
    path = saved_json(make(), tmp_path)
    # What was just trained has scores of more digits than its file, and may part ties otherwise.
    engine = Engine.from_file(str(path))
    tokenizer = registry.load(path)
    for text in ["ab ab  b", "Some Text, here.", "你好 é", *documents()[:5]]:
        assert ids(tokenizer, text) == engine.encode(text, add_special_tokens=False).ids
        encoded = tokenizer.encode(pa.array([text]))
        assert tokenizer.decode(encoded)[0].as_py() == engine.decode(encoded.ids.tolist(), skip_special_tokens=False)
    assert tokenizer.vocab_size == engine.get_vocab_size()
    assert len(tokenizer.vocabulary()) == engine.get_vocab_size()
    tokenizer.save(tmp_path)
    assert_same(tokenizer, registry.load(tmp_path))


def test_the_vocabulary_of_other_model_types_holds_text(tmp_path: Path) -> None:
    tokenizer = registry.load(saved_json(llama_like(), tmp_path))
    tokens = token_bytes(tokenizer)
    assert tokens[3 + 0xE4] == b"\xe4"
    assert [tokens[id_] for id_ in range(259, 264)] == [b" ", b"a", b"b", b"ab", b" ab"]
    table = tokenizer.vocabulary()
    assert table["byte_fallback"].to_pylist() == [False] * 3 + [True] * 256 + [False] * 5
    assert table["special"].to_pylist() == [True] * 3 + [False] * 261
    (tmp_path / "bert").mkdir()
    engine = word_piece()
    bert = registry.load(saved_json(engine, tmp_path / "bert"))
    assert token_bytes(bert)[engine.get_vocab()["##s"]] == b"s"


def test_runs_of_spaces_that_are_added_tokens_too_have_the_bytes_of_spaces(tmp_path: Path) -> None:
    """As in the files of Gemma 2 and 3."""
    engine = llama_like()
    engine.normalizer = normalizers.Replace(" ", "▁")
    engine.add_tokens([AddedToken("▁▁", normalized=False), AddedToken("<unused0>", normalized=False)])
    tokenizer = registry.load(saved_json(engine, tmp_path), SpecialTokens(eod="<|▁end▁|>"))
    tokens = token_bytes(tokenizer)
    assert [tokens[token_id] for token_id in (264, 265, 266)] == [b"  ", b"<unused0>", "<|▁end▁|>".encode()]
    assert tokenizer.decode(tokenizer.encode(pa.array(["a▁▁b"]))).to_pylist() == ["a  b"]


def test_unicode_form_is_found_in_the_file(tmp_path: Path) -> None:
    assert registry.load(saved_json(unigram(), tmp_path)).unicode == "nfkc"
    assert registry.load(saved_json(word_piece(), tmp_path)).unicode == "none"
    assert registry.load(saved_json(llama_like(), tmp_path)).unicode == "none"


def test_truncation_padding_dropout_and_templates_change_nothing(tmp_path: Path) -> None:
    trained("byte_bpe").save(tmp_path)
    path = tmp_path / "tokenizer.json"
    engine = Engine.from_file(str(path))
    engine.enable_truncation(5)
    engine.enable_padding(length=64, pad_id=1, pad_token="<|pad|>")
    engine.post_processor = processors.TemplateProcessing(single=f"{EOD} $A {EOD}", special_tokens=[(EOD, 0)])
    content = json.loads(engine.to_str())
    content["model"]["dropout"] = 0.5
    path.write_text(json.dumps(content))
    assert np.array_equal(registry.load(path).encode(TEXTS).ids, trained("byte_bpe").encode(TEXTS).ids)


def test_special_tokens_come_from_the_config_beside_the_file(tmp_path: Path) -> None:
    config = {"eos_token": {"content": "</s>"}, "bos_token": "<s>", "pad_token": "<nowhere>", "unk_token": None}
    path = saved_json(llama_like(), tmp_path, config)
    assert registry.load(path).special_tokens == {"eod": 2, "bos": 1, "pad": 264}
    assert registry.load(path, SpecialTokens(eod="<s>")).special_tokens == {"eod": 1, "bos": 1, "pad": 264}
    (tmp_path / "tokenizer_config.json").unlink()
    assert registry.load(path).special_tokens == {}


def test_a_special_token_that_is_missing_is_appended(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    tokenizer = registry.load(saved_json(llama_like(), tmp_path), SpecialTokens(eod="</s>", pad="<|pad|>"))
    assert tokenizer.special_tokens == {"eod": 2, "pad": 264}
    assert tokenizer.vocab_size == 265
    assert token_bytes(tokenizer)[264] == b"<|pad|>"
    assert not {2, 264} & set(ids(tokenizer, "a</s><|pad|>"))
    tokenizer.save(tmp_path / "saved")
    assert_same(tokenizer, registry.load(tmp_path / "saved"))
    peer = AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert (peer.eos_token_id, peer.pad_token_id, len(peer)) == (2, 264, 265)


def test_an_added_token_becomes_special_when_it_has_a_role(tmp_path: Path) -> None:
    engine = llama_like()
    engine.add_tokens([AddedToken("<|end|>"), AddedToken("<|kept|>", normalized=False)])
    tokenizer = registry.load(saved_json(engine, tmp_path), SpecialTokens(eod="<|end|>"))
    assert tokenizer.special_tokens == {"eod": 264}
    assert 264 not in ids(tokenizer, "a<|end|>")
    assert 265 in ids(tokenizer, "a<|kept|>")


def test_a_special_token_that_is_ordinary_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ordinary text gives the id"):
        registry.load(saved_json(llama_like(), tmp_path), SpecialTokens(eod="ab"))


def test_a_published_bos_that_is_ordinary_text_is_left_out_and_such_an_eod_refused(tmp_path: Path) -> None:
    path = saved_json(llama_like(), tmp_path)
    named = {"bos_token": "ab", "pad_token": "ab", "eos_token": "</s>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(named), "utf-8")
    assert registry.load(path).special_tokens == {"eod": 2}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(named | {"eos_token": "ab"}), "utf-8")
    with pytest.raises(InputError, match=r"ordinary text gives the id of special token 'ab' \(eod\): name one"):
        registry.load(path)
    assert registry.load(path, SpecialTokens(eod="</s>")).special_tokens == {"eod": 2}


def test_a_tekken_file_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "tekken.json"
    vocab = [{"rank": byte, "token_bytes": base64.b64encode(bytes([byte])).decode()} for byte in range(256)]
    path.write_text(json.dumps({"config": {"pattern": r"\p{L}+"}, "vocab": vocab}), "utf-8")
    with pytest.raises(InputError, match=r"is a tekken\.json: give the tokenizer\.json"):
        registry.load(path)


def test_ids_with_holes_have_a_row_each_and_a_size_beyond_the_last(tmp_path: Path) -> None:
    vocab = {"a": 0, "b": 1, "ab": 5}
    engine = Engine(models.BPE(vocab, [("a", "b")]))
    path = saved_json(engine, tmp_path)
    tokenizer = registry.load(path)
    assert tokenizer.vocab_size == 6
    assert tokenizer.vocabulary()["id"].to_pylist() == [0, 1, 5]
    assert ids(tokenizer, "abb") == [5, 1]


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"model": {"type": "BPE"}}', b"\xff\xfe"])
def test_a_broken_tokenizer_json_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        registry.load(path)


# --- SentencePiece ----------------------------------------------------------------------------------------------------


def published_model(**settings: Any) -> bytes:
    writer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(documents()[:20]),
        model_writer=writer,
        vocab_size=600,
        minloglevel=2,
        max_sentence_length=10**6,
        **settings,
    )
    return writer.getvalue()


@pytest.mark.parametrize("settings", [{}, {"byte_fallback": True, "model_type": "bpe"}])
def test_a_published_model_gives_the_ids_and_text_of_the_library(settings: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "spiece.model"
    path.write_bytes(published_model(**settings))
    peer = sentencepiece.SentencePieceProcessor(model_file=str(path))
    tokenizer = registry.load(path, SpecialTokens(eod="</s>"))
    assert tokenizer.special_tokens == {"eod": 2}
    assert tokenizer.unicode == "nfkc"
    assert tokenizer.vocab_size == 600
    for text in ["", "two words", " x", "literal ▁ here", "</s> a", *documents()[:10]]:
        assert ids(tokenizer, text) == peer.encode(text)
        decoded = tokenizer.decode(tokenizer.encode(pa.array([text])))[0].as_py()
        assert decoded.replace("<unk>", " ⁇ ") == peer.decode(peer.encode(text))


def test_a_user_defined_special_token_stays_out_of_text(tmp_path: Path) -> None:
    path = tmp_path / "spiece.model"
    path.write_bytes(published_model(user_defined_symbols=["<|end|>"], byte_fallback=True))
    tokenizer = registry.load(path, SpecialTokens(eod="<|end|>"))
    eod = tokenizer.special_tokens["eod"]
    assert eod in sentencepiece.SentencePieceProcessor(model_file=str(path)).encode("a<|end|>")
    assert eod not in ids(tokenizer, "a<|end|><|end|> <|end|>")
    assert token_bytes(tokenizer)[eod] == b"<|end|>"


def test_a_model_cannot_take_new_or_ordinary_pieces_as_special_tokens(tmp_path: Path) -> None:
    path = tmp_path / "spiece.model"
    path.write_bytes(published_model())
    with pytest.raises(InputError, match="cannot be added"):
        registry.load(path, SpecialTokens(eod="<|nowhere|>"))
    with pytest.raises(InputError, match="ordinary text"):
        registry.load(path, SpecialTokens(eod="▁the"))


@pytest.mark.parametrize("content", [b"", b"\0\0", b"not a model", b"\x0a\xff\xff"])
def test_a_broken_model_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.model"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"x\.model is not a SentencePiece model"):
        registry.load(path)


# --- tiktoken ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def ranks() -> dict[bytes, int]:
    return {token: id_ - 2 for id_, token in token_bytes(trained("byte_bpe")).items() if id_ >= 2}


def test_a_rank_file_gives_the_ids_of_tiktoken(ranks: dict[bytes, int], tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    write_rank_file(path, ranks)
    assert path.read_bytes().splitlines()[0] == base64.b64encode(b"!") + b" 0"
    assert read_rank_file(path) == ranks
    tokenizer = registry.load(path, SpecialTokens(eod=EOD, pad="<|pad|>"), "cl100k")
    peer = tiktoken.Encoding("peer", pat_str=PRETOKENIZERS["cl100k"], mergeable_ranks=ranks, special_tokens={EOD: 1498})
    assert tokenizer.special_tokens == {"eod": 1498, "pad": 1499}
    assert (tokenizer.vocab_size, tokenizer.unicode, tokenizer.family) == (1500, "none", "pretrained")
    for text in TEXTS.to_pylist():
        assert ids(tokenizer, text) == peer.encode_ordinary(text)
    assert round_trip_failures(tokenizer, TEXTS) == []
    assert (tokenizer.encode(TEXTS).ids + 2 == trained("byte_bpe").encode(TEXTS).ids).all()


def test_a_saved_rank_file_keeps_its_regex_and_special_tokens(ranks: dict[bytes, int], tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    write_rank_file(path, ranks)
    settings = TrainConfig(
        family="pretrained", path=str(path), pretokenizer="gpt2", special_tokens=SpecialTokens(eod=EOD)
    )
    tokenizer = registry.train(settings, iter(()), "nfc")
    files = saved_files(tokenizer, tmp_path / "saved")
    assert sorted(files) == ["tokenizer.tiktoken", "tokenizer_config.json"]
    assert files["tokenizer.tiktoken"] == path.read_bytes()
    assert_same(tokenizer, registry.load(tmp_path / "saved"))
    assert not np.array_equal(tokenizer.encode(TEXTS).ids, registry.load(path, pretokenizer="cl100k").encode(TEXTS).ids)


def test_a_rank_file_with_a_hole_keeps_its_ids(ranks: dict[bytes, int], tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    write_rank_file(path, {token: rank + (5 if rank >= 1000 else 0) for token, rank in ranks.items()})
    tokenizer = registry.load(path, SpecialTokens(eod=EOD), "cl100k")
    assert tokenizer.special_tokens == {"eod": 1503}
    assert tokenizer.vocab_size == 1504
    assert len(tokenizer.vocabulary()) == 1499
    with pytest.raises(InputError, match="id 1002 is not in the vocabulary"):
        tokenizer.decode(type(tokenizer.encode(TEXTS))(np.array([1002], np.int32), np.array([0, 1])))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"IQ==", "line 257"),
        (b"I!Q== 300", "line 257"),
        (b"IQ== x", "line 257"),
        (b"IQ== 400", "twice"),
        (b"YWI= 3", "twice"),
    ],
)
def test_a_broken_line_of_a_rank_file_is_named(line: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    write_rank_file(path, {bytes([byte]): byte for byte in range(256)})
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(InputError, match=message):
        registry.load(path)


def test_a_rank_file_that_is_not_published_needs_a_regex(ranks: dict[bytes, int], tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    write_rank_file(path, ranks)
    with pytest.raises(InputError, match=r"x\.tiktoken does not say which regex .*--pretokenizer.*gpt2, cl100k"):
        registry.load(path)


def test_a_pretokenizer_for_a_file_that_has_its_own_is_refused(ranks: dict[bytes, int], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tokenizer\.json says itself how text is split"):
        registry.load(saved_json(llama_like(), tmp_path), pretokenizer="gpt2")
    write_rank_file(tmp_path / "x.tiktoken", ranks)
    (tmp_path / "saved").mkdir()
    registry.load(tmp_path / "x.tiktoken", pretokenizer="gpt2").save(tmp_path / "saved")
    with pytest.raises(InputError, match=r"says itself how text is split"):
        registry.load(tmp_path / "saved", pretokenizer="gpt2")


def test_a_rank_file_may_be_named_model(ranks: dict[bytes, int], tmp_path: Path) -> None:
    """As Meta names those of Llama 3."""
    path = tmp_path / "tokenizer.model"
    write_rank_file(path, ranks)
    tokenizer = registry.load(path, pretokenizer="llama3")
    peer = tiktoken.Encoding("peer", pat_str=PRETOKENIZERS["llama3"], mergeable_ranks=ranks, special_tokens={})
    for text in TEXTS.to_pylist():
        assert ids(tokenizer, text) == peer.encode_ordinary(text)


def test_a_rank_file_without_a_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.tiktoken"
    write_rank_file(path, {bytes([byte]): byte for byte in range(256) if byte != 0x41})
    with pytest.raises(InputError, match="no token for byte 0x41"):
        registry.load(path)


# --- folders ----------------------------------------------------------------------------------------------------------


def test_a_folder_is_searched_for_one_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no tokenizer\.json"):
        registry.load(tmp_path)
    (tmp_path / "a.model").write_bytes(published_model())
    assert registry.load(tmp_path).vocab_size == 600
    shutil.copy(tmp_path / "a.model", tmp_path / "b.model")
    with pytest.raises(InputError, match=r"holds 2 \*\.model files"):
        registry.load(tmp_path)
    saved_json(llama_like(), tmp_path)
    assert registry.load(tmp_path).vocab_size == 264


def test_a_path_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        registry.load(tmp_path / "nowhere")
    (tmp_path / "x.txt").write_text("text")
    with pytest.raises(InputError, match="is no tokenizer"):
        registry.load(tmp_path / "x.txt")


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"tokpack": {}}', '{"tokpack": {"unicode": "x", "special_tokens": {}}}']
)
def test_a_broken_config_is_named(content: str, tmp_path: Path) -> None:
    saved_json(llama_like(), tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(content)
    with pytest.raises(InputError, match=r"tokenizer_config\.json"):
        registry.load(tmp_path)


def test_the_end_of_sentence_of_a_published_model_is_its_eod(tmp_path: Path) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["some words of a published model"] * 50),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
    )
    (tmp_path / "theirs.model").write_bytes(model.getvalue())
    library = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    assert library.id_to_piece(library.eos_id()) == "</s>"
    assert registry.load(tmp_path / "theirs.model").special_tokens["eod"] == library.eos_id()
