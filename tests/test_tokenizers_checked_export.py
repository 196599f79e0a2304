"""Every trained tokenizer opens elsewhere with the same ids, or is not published."""

import json
import re
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pytest
import tiktoken
import tokenizers
from megatron.core.tokenizers.text.libraries.huggingface_tokenizer import HuggingFaceTokenizer as MegatronHuggingFace
from megatron.core.tokenizers.text.libraries.sentencepiece_tokenizer import SentencePieceTokenizer as MegatronPieces
from megatron.core.tokenizers.text.libraries.tiktoken_tokenizer import TikTokenTokenizer as MegatronTikToken
from tiktoken.load import load_tiktoken_bpe
from transformers import AutoTokenizer

from tests.tokenizer_samples import EOD, HOSTILE, PAD, SPECIAL_TOKENS, documents, ids, normalized, token_bytes, train
from tokpack_core.config import TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.auto_tokenizer import compare_with_auto_tokenizer
from tokpack_core.tokenizers.agreement.checked_export import FirstTexts, cut_at_strings, refuse, save_checked
from tokpack_core.tokenizers.agreement.readers import by_sentencepiece, by_tokenizers, expected_of
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.protocol import Tokenizer

FAMILIES = ("byte_bpe", "wordpiece", "character", "word", "sentencepiece_bpe", "sentencepiece_unigram")
SIZES = {"wordpiece": 1600}


@pytest.fixture(scope="module", params=FAMILIES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Path]:
    settings = {"family": request.param, "vocab_size": SIZES.get(request.param, 1000)}
    tokenizer = train(
        TrainConfig.model_validate(settings | {"special_tokens": SPECIAL_TOKENS}), documents()[::3], "nfc"
    )
    folder = tmp_path_factory.mktemp(request.param)
    figures = save_checked(tokenizer, folder, pa.array([*documents(), *HOSTILE], pa.large_string()), True)
    assert figures["documents"] == len(documents()) + len(HOSTILE)
    assert figures["cut_at_special_tokens"] >= 1
    auto = dict(figures["auto_tokenizer"])
    assert auto.pop("texts") >= figures["documents"]
    assert auto == {"compared": True, "transformers": version("transformers"), "difference": None}
    if "transformers" in figures:
        assert figures["transformers"]["written"]
        assert figures["transformers"]["differing_tokens"] == 0
    return tokenizer, folder


def ordinary() -> list[str]:
    """Texts that other libraries read as we do."""
    held = (EOD, PAD, "<unk>", "[UNK]", "▁")
    texts = [normalized(text, "nfc") for text in [*documents()[::10], *HOSTILE]]
    return [text for text in texts if not any(string in text for string in held)]


def folder_for_transformers(folder: Path) -> Path:
    return folder / "transformers" if (folder / "transformers").is_dir() else folder


def test_transformers(made: tuple[Tokenizer, Path]) -> None:
    tokenizer, folder = made
    auto = AutoTokenizer.from_pretrained(folder_for_transformers(folder))
    assert len(auto) == tokenizer.vocab_size
    assert (auto.eos_token_id, auto.pad_token_id) == (tokenizer.special_tokens["eod"], tokenizer.special_tokens["pad"])
    for text in ordinary():
        expected = ids(tokenizer, text)
        assert auto.encode(text, add_special_tokens=False) == expected
        if tokenizer.family in ("byte_bpe", "sentencepiece_bpe", "sentencepiece_unigram"):
            assert auto.decode(expected) == text


def test_megatron(made: tuple[Tokenizer, Path]) -> None:
    tokenizer, folder = made
    theirs = MegatronHuggingFace(str(folder_for_transformers(folder)), use_fast=True)
    assert theirs.eos_id == tokenizer.special_tokens["eod"]
    assert theirs.vocab_size == tokenizer.vocab_size
    for text in ordinary()[:8]:
        assert theirs.text_to_ids(text) == ids(tokenizer, text)
    if (folder / "tokenizer.model").is_file():
        pieces = MegatronPieces(str(folder / "tokenizer.model"))
        assert pieces.vocab_size == tokenizer.vocab_size
        assert pieces.eos_id == tokenizer.special_tokens["eod"]
        for text in ordinary()[:8]:
            assert pieces.text_to_ids(text) == ids(tokenizer, text)


def tiktoken_of(folder: Path) -> tiktoken.Encoding:
    """By tiktoken's own reader of rank files."""
    described = json.loads((folder / "encoding.json").read_bytes())
    ranks = load_tiktoken_bpe(str(folder / "tokenizer.tiktoken"))
    return tiktoken.Encoding(**described, mergeable_ranks=ranks)


@pytest.mark.parametrize(
    "settings",
    [
        {"pretokenizer": "gpt2"},
        {"pretokenizer": "o200k", "digits": "groups_right"},
        {"pretokenizer": "regex:[a-z ]+"},
        {"required_characters": "gb2312_level_1", "vocab_size": 5000},
    ],
)
def test_tiktoken(settings: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    base = {"family": "byte_bpe", "vocab_size": 900, "special_tokens": SPECIAL_TOKENS}
    tokenizer = train(TrainConfig.model_validate(base | settings), documents()[::3], "nfc")
    figures = save_checked(tokenizer, tmp_path, pa.array(documents()[:9], pa.large_string()))
    assert figures["tiktoken"] == {"written": True}
    theirs = tiktoken_of(tmp_path / "tiktoken")
    texts = [normalized(text, "nfc") for text in [*documents()[::10], *HOSTILE]]
    encoded = [ids(tokenizer, text) for text in texts]
    assert [theirs.encode(text, disallowed_special=()) for text in texts] == encoded
    assert theirs.decode_batch(encoded) == texts
    assert theirs.n_vocab == tokenizer.vocab_size
    assert theirs.encode(f"{EOD}a{PAD}", allowed_special="all")[::2] == [0, 1]
    with pytest.raises(InputError, match=r"give the folder of that"):
        registry.load(tmp_path / "tiktoken")


def test_what_tiktoken_cannot_say_is_not_written(tmp_path: Path) -> None:
    config = TrainConfig(family="byte_bpe", vocab_size=500, pretokenizer="deepseek_v3", special_tokens=SPECIAL_TOKENS)
    figures = save_checked(train(config, documents()[:9]), tmp_path, pa.array(["some text"], pa.large_string()))
    assert figures["tiktoken"] == {"written": False, "reason": "the pretokenizer deepseek_v3 is several regexes"}
    assert not (tmp_path / "tiktoken").exists()


def test_files_that_tiktoken_reads_otherwise_are_not_kept(tmp_path: Path) -> None:
    """`abc` has the merge ab + c, and b + c goes first: our ids for it are a, bc; tiktoken knows the entry."""
    trained = train(TrainConfig(family="byte_bpe", vocab_size=259), ["abc abc"] * 9)
    content = json.loads(trained._engine.to_str())  # type: ignore[attr-defined]
    single = {name: number for name, number in content["model"]["vocab"].items() if number < 256}
    content["model"]["vocab"] = single | {"bc": 256, "ab": 257, "abc": 258}
    content["model"]["merges"] = [["b", "c"], ["a", "b"], ["ab", "c"]]
    engine = tokenizers.Tokenizer.from_str(json.dumps(content))
    altered = HuggingFaceTokenizer(engine, trained.metadata, "altered")  # type: ignore[attr-defined]
    figures = save_checked(altered, tmp_path, pa.array(["abc"], pa.large_string()))
    assert figures["tiktoken"]["reason"] == "other ids for the text that begins 'abc'"
    assert not (tmp_path / "tiktoken").exists()


def test_the_layout_of_megatrons_tiktokenizer(tmp_path: Path) -> None:
    special = {"eod": "</s>", "pad": "<pad>", "bos": "<s>", "unk": "<unk>"}
    settings = {"family": "byte_bpe", "vocab_size": 1900, "pretokenizer": "superbpe", "digits": "single"}
    config = TrainConfig.model_validate(settings | {"id_layout": "megatron_tiktoken", "special_tokens": special})
    tokenizer = train(config, documents()[::3])
    assert save_checked(tokenizer, tmp_path, pa.array(documents()[:9], pa.large_string()))["tiktoken"]["written"]
    theirs = MegatronTikToken(str(tmp_path / "tiktoken" / "megatron.json"), vocab_size=tokenizer.vocab_size)
    for role, found in {"eod": theirs.eod, "pad": theirs.pad_id, "bos": theirs.bos_id, "unk": theirs.unk_id}.items():
        assert found == tokenizer.special_tokens[role]
    assert theirs.vocab_size == tokenizer.vocab_size == 1900
    held = ("<s>", "</s>", "<pad>", "<unk>")
    for text in [text for text in [*documents()[::10], *HOSTILE] if not any(string in text for string in held)]:
        assert theirs.text_to_ids(text) == ids(tokenizer, text)
    auto = AutoTokenizer.from_pretrained(tmp_path)
    assert (len(auto), auto.eos_token_id, auto.pad_token_id) == (1900, 2, 4)
    as_trained = train(config.model_copy(update={"id_layout": "hugging_face", "vocab_size": 904}), documents()[::3])
    assert token_bytes(as_trained)[903] == token_bytes(tokenizer)[1899]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pretokenizer": "cl100k"}, "the regex that Megatron calls v2"),
        ({"special_tokens": {"eod": EOD}}, "not eod '<|endoftext|>'"),
        ({"allocation": {"en": 900, "reserved": 1000}}, "goes neither with `allocation`"),
    ],
)
def test_what_megatron_would_read_otherwise_is_refused(settings: dict[str, object], message: str) -> None:
    given = {"family": "byte_bpe", "vocab_size": 1900, "pretokenizer": "superbpe", "digits": "single"}
    with pytest.raises(ValueError, match=re.escape(message)):
        TrainConfig.model_validate(given | {"id_layout": "megatron_tiktoken"} | settings)


@pytest.mark.parametrize("around", ["", EOD])
def test_a_difference_is_told_with_its_text(around: str, tmp_path: Path) -> None:
    """What stands between special tokens is compared too, were they in every text."""
    tokenizer = train(TrainConfig(family="byte_bpe", vocab_size=300, special_tokens=SPECIAL_TOKENS), documents()[:5])

    class Altered:
        """Gives one id too many for one text."""

        def __getattr__(self, name: str) -> object:
            return getattr(tokenizer, name)

        def encode(self, texts: pa.Array) -> Encoded:
            return tokenizer.encode(pa.array([text + "!" * text.startswith("odd") for text in texts.to_pylist()]))

    texts = pa.array([f"{around}{text}{around}" for text in ("even", "odd one", "odd two")], pa.large_string())
    with pytest.raises(InputError, match="other ids for the text that begins 'odd one'"):
        save_checked(Altered(), tmp_path, texts)  # type: ignore[arg-type]


def test_of_two_special_strings_the_longer_cuts() -> None:
    pieces, cut = cut_at_strings(pa.array(["a<|b|>c|d", "whole"], pa.large_string()), ["|", "<|b|>"])
    assert (pieces.to_pylist(), cut) == (["a", "c", "d", "whole"], 1)


@pytest.fixture(scope="module")
def small() -> HuggingFaceTokenizer:
    tokenizer = train(TrainConfig(family="byte_bpe", vocab_size=300, special_tokens=SPECIAL_TOKENS), documents()[:5])
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    return tokenizer


def test_what_auto_tokenizer_reads_otherwise_is_not_published(small: HuggingFaceTokenizer, tmp_path: Path) -> None:
    """Hugging Face's own library does not read the file in which the roles stand."""
    texts = pa.array(["some text"], pa.large_string())
    small.save(tmp_path)
    expected = expected_of(small, texts, small.encode(texts))
    assert compare_with_auto_tokenizer(tmp_path, expected)["difference"] is None
    config = tmp_path / "tokenizer_config.json"
    written = config.read_text()
    config.write_text(written.replace(f'"eos_token": "{EOD}"', f'"eos_token": "{PAD}"'))
    assert compare_with_auto_tokenizer(tmp_path, expected)["difference"] == "id 1 as eod, not 0"
    config.write_text(written.replace("PreTrainedTokenizerFast", "NoSuchTokenizer"))
    (tmp_path / "tokenizer.json").write_text("{}")
    found = compare_with_auto_tokenizer(tmp_path, expected)["difference"]
    assert found.startswith("AutoTokenizer does not open it: ")
    with pytest.raises(InputError, match="not published"):
        refuse(found, small)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("raise ModuleNotFoundError(name='transformers')", "transformers is not installed"),
        ("raise ImportError('torch is too old')", "transformers cannot be imported: torch is too old"),
        ("import os; os._exit(3)", "the process that compares ended without a result: exit code 3"),
    ],
)
def test_without_transformers_the_manifest_says_so(
    content: str, reason: str, small: HuggingFaceTokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "transformers.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "saved"
    folder.mkdir()
    figures = save_checked(small, folder, pa.array(["some text"], pa.large_string()), True)
    assert figures["auto_tokenizer"] == {"compared": False, "reason": reason}


def test_of_little_text_auto_tokenizer_is_asked_on_request_only(small: HuggingFaceTokenizer, tmp_path: Path) -> None:
    none = pa.array([], pa.large_string())
    little = save_checked(small, tmp_path, none)["auto_tokenizer"]
    assert little == {"compared": False, "reason": "trained on less than 2,097,152 bytes of text"}
    much = HuggingFaceTokenizer(
        small._engine, replace(small.metadata, training=small.training | {"bytes": 2**21}), "a test"
    )
    (tmp_path / "much").mkdir()
    found = save_checked(much, tmp_path / "much", none)["auto_tokenizer"]
    assert (found["compared"], found["texts"], found["difference"]) == (True, 0, None)


def test_a_file_that_cannot_be_read_is_an_error_of_the_file_system(tmp_path: Path) -> None:
    """The libraries raise what nobody would take for one: an Exception, or an OSError without a number."""
    for opened in (by_tokenizers, by_sentencepiece):
        with pytest.raises(FileNotFoundError):
            opened(tmp_path / "tokenizer")


def test_the_first_texts_are_kept_and_all_are_passed_on() -> None:
    arrays = [pa.array(["x" * 700_000, "y" * 700_000, "z"]), pa.array([], pa.string()), pa.array(["w"] * 3)]
    texts = FirstTexts(arrays)
    assert [len(array) for array in texts] == [3, 0, 3]
    assert texts.kept().to_pylist() == ["x" * 700_000]
    long = FirstTexts(pa.array([f"{number:0100d}"] * 1000) for number in range(90))
    assert sum(len(array) for array in long) == 90_000
    assert len(long.kept()) == 2**20 // 100
    assert FirstTexts([]).kept().to_pylist() == []
