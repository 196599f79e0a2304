"""Every trained tokenizer opens elsewhere with the same ids, or is not published."""

from pathlib import Path

import pyarrow as pa
import pytest
from megatron.core.tokenizers.text.libraries.huggingface_tokenizer import HuggingFaceTokenizer as MegatronHuggingFace
from megatron.core.tokenizers.text.libraries.sentencepiece_tokenizer import SentencePieceTokenizer as MegatronPieces
from transformers import AutoTokenizer

from tests.tokenizer_samples import EOD, HOSTILE, PAD, SPECIAL_TOKENS, documents, ids, normalized, train
from tokpack_core.config import TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.checked_export import FirstTexts, save_checked
from tokpack_core.tokenizers.encoded import Encoded
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
    figures = save_checked(tokenizer, folder, pa.array([*documents(), *HOSTILE], pa.large_string()))
    assert figures["documents"] > len(documents())
    assert figures["left_out"] >= 1
    if "transformers" in figures:
        assert figures["transformers"]["written"]
        if request.param == "sentencepiece_bpe":
            assert figures["transformers"]["differing_tokens"] == 0
    return tokenizer, folder


def ordinary(family: str) -> list[str]:
    """Texts that other libraries read as we do; Unigram's only as long as 32 bits hold the sum of their scores."""
    held = (EOD, PAD, "<unk>", "[UNK]", "▁")
    texts = [normalized(text, "nfc") for text in [*documents()[::10], *HOSTILE]]
    longest = 2000 if family == "sentencepiece_unigram" else 10**9
    return [text for text in texts if len(text) < longest and not any(string in text for string in held)]


def folder_for_transformers(folder: Path) -> Path:
    return folder / "transformers" if (folder / "transformers").is_dir() else folder


def test_transformers(made: tuple[Tokenizer, Path]) -> None:
    tokenizer, folder = made
    auto = AutoTokenizer.from_pretrained(folder_for_transformers(folder))
    assert len(auto) == tokenizer.vocab_size
    assert (auto.eos_token_id, auto.pad_token_id) == (tokenizer.special_tokens["eod"], tokenizer.special_tokens["pad"])
    for text in ordinary(tokenizer.family):
        expected = ids(tokenizer, text)
        assert auto.encode(text, add_special_tokens=False) == expected
        if tokenizer.family in ("byte_bpe", "sentencepiece_bpe", "sentencepiece_unigram"):
            assert auto.decode(expected) == text


def test_megatron(made: tuple[Tokenizer, Path]) -> None:
    tokenizer, folder = made
    theirs = MegatronHuggingFace(str(folder_for_transformers(folder)), use_fast=True)
    assert theirs.eos_id == tokenizer.special_tokens["eod"]
    assert theirs.vocab_size == tokenizer.vocab_size
    for text in ordinary(tokenizer.family)[:8]:
        assert theirs.text_to_ids(text) == ids(tokenizer, text)
    if (folder / "tokenizer.model").is_file():
        pieces = MegatronPieces(str(folder / "tokenizer.model"))
        assert pieces.vocab_size == tokenizer.vocab_size
        assert pieces.eos_id == tokenizer.special_tokens["eod"]
        for text in ordinary(tokenizer.family)[:8]:
            assert pieces.text_to_ids(text) == ids(tokenizer, text)


def test_a_difference_is_told_with_its_text(tmp_path: Path) -> None:
    tokenizer = train(TrainConfig(family="byte_bpe", vocab_size=300, special_tokens=SPECIAL_TOKENS), documents()[:5])

    class Altered:
        """Gives one id too many for one text."""

        def __getattr__(self, name: str) -> object:
            return getattr(tokenizer, name)

        def encode(self, texts: pa.Array) -> Encoded:
            return tokenizer.encode(pa.array([text + "!" * text.startswith("odd") for text in texts.to_pylist()]))

    with pytest.raises(InputError, match="other ids for the text that begins 'odd one'"):
        save_checked(Altered(), tmp_path, pa.array(["even", "odd one", "odd two"], pa.large_string()))  # type: ignore[arg-type]


def test_the_first_texts_are_kept_and_all_are_passed_on() -> None:
    arrays = [pa.array(["x" * 700_000, "y" * 700_000, "z"]), pa.array([], pa.string()), pa.array(["w"] * 3)]
    texts = FirstTexts(arrays)
    assert [len(array) for array in texts] == [3, 0, 3]
    assert texts.kept().to_pylist() == ["x" * 700_000, "w", "w", "w"]
    assert FirstTexts([]).kept().to_pylist() == []
