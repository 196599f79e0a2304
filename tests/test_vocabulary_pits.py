"""Each pit is found in a tokenizer that has it, and not in one that has it not."""

import json
from pathlib import Path

import pytest
import sentencepiece
import tokenizers

from tests.tokenizer_samples import SPECIAL_TOKENS, documents, train, trained
from tokpack_core.config import Family, SpecialTokens, TrainConfig
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.common_hanzi import level_one_hanzi
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.vocabulary.pits import Pit, find_pits

CHINESE = ["chinese_word", "common_hanzi"]


def pits(tokenizer: Tokenizer, *languages: str) -> dict[str, Pit]:
    return {pit.name: pit for pit in find_pits(tokenizer, languages)}


def failed(tokenizer: Tokenizer, *languages: str) -> list[str]:
    return sorted(name for name, pit in pits(tokenizer, *languages).items() if not pit.passed)


def test_common_hanzi_are_level_one_of_the_standard() -> None:
    hanzi = level_one_hanzi()
    assert len(set(hanzi)) == 3755
    assert (hanzi[0], hanzi[-1]) == ("啊", "座")
    assert all("\u4e00" <= character <= "\u9fff" for character in hanzi)


@pytest.mark.parametrize("family", ["byte_bpe", "sentencepiece_bpe", "sentencepiece_unigram"])
def test_tokenizers_of_ours_have_none_but_too_little_chinese(family: Family) -> None:
    assert failed(trained(family), "en", "code") == []
    assert set(failed(trained(family), "en", "zh")) <= set(CHINESE)
    assert "common_hanzi" in failed(trained(family), "zh-Hans")


def test_a_chinese_recipe_has_them_all() -> None:
    config = TrainConfig(family="sentencepiece_bpe", vocab_size=4200, special_tokens=SPECIAL_TOKENS)
    text = ["".join(level_one_hanzi()) * 3, "你好\n" * 50, *documents()[:5]]
    found = pits(train(config.model_copy(update={"character_coverage": 1.0}), text), "zh")
    assert all(pit.passed for pit in found.values()), found
    assert "3,755 of the 3,755" in found["common_hanzi"].explanation
    assert "你好 is 你好" in found["chinese_word"].explanation


@pytest.mark.parametrize("family", ["sentencepiece_bpe", "sentencepiece_unigram"])
def test_required_characters_have_an_entry_though_the_text_has_none(family: Family) -> None:
    settings = {"family": family, "vocab_size": 4800, "required_characters": "gb2312_level_1"}
    found = pits(train(TrainConfig.model_validate(settings), documents()), "zh")
    assert found["common_hanzi"].passed
    assert found["chinese_word"].explanation == "你好 is 你 | 好"


def test_bytes_for_chinese_are_found() -> None:
    only_english = train(TrainConfig(family="byte_bpe", vocab_size=300), ["only english text here"] * 9)
    found = pits(only_english, "zh")
    assert not found["chinese_word"].passed
    assert "0 of the 3,755" in found["common_hanzi"].explanation


@pytest.mark.parametrize("family", ["character", "word", "wordpiece"])
def test_an_unknown_chinese_word_is_found(family: Family) -> None:
    config = TrainConfig(family=family, vocab_size=300, special_tokens=SpecialTokens(eod="<eod>", unk="<unk>"))
    found = pits(train(config, ["only english text here"] * 9), "zh")["chinese_word"]
    assert not found.passed
    assert found.explanation.startswith("你好 is <unk>")


def test_word_pieces_lose_white_space_and_rare_characters() -> None:
    wordpiece = train(TrainConfig(family="wordpiece", vocab_size=2000), documents())
    assert {"indentation", "rare_characters", "leading_space"} <= set(failed(wordpiece))


def test_long_runs_of_digits_are_found() -> None:
    config = TrainConfig(family="byte_bpe", vocab_size=300, pretokenizer="gpt2")
    found = pits(train(config, ["in 20242024 and 20242024"] * 9))["digits"]
    assert not found.passed
    assert "2024" in found.explanation


def test_the_defaults_of_sentencepiece_are_pits(tmp_path: Path) -> None:
    """nmt_nfkc, no byte fallback, a space before each text."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in documents() for line in text.split("\n")]),
        model_prefix=str(tmp_path / "theirs"),
        vocab_size=1000,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    theirs = registry.load(tmp_path / "theirs.model")
    assert {"chinese_punctuation", "indentation", "rare_characters", "leading_space"} <= set(failed(theirs, "zh"))


@pytest.mark.parametrize(
    ("part", "found"),
    [
        ({"normalizer": {"type": "Lowercase"}}, ["compatibility_characters"]),
        ({"normalizer": {"type": "Strip", "strip_left": True, "strip_right": True}}, ["indentation", "leading_space"]),
        ({"normalizer": {"type": "Replace", "pattern": {"Regex": " +"}, "content": " "}}, ["indentation"]),
        ({"normalizer": {"type": "Replace", "pattern": {"String": "，"}, "content": ","}}, ["chinese_punctuation"]),
        (
            {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}},
            ["indentation", "leading_space"],
        ),
    ],
)
def test_each_pit_is_named_and_no_other(part: dict[str, object], found: list[str], tmp_path: Path) -> None:
    file = json.loads(trained("byte_bpe", "none")._engine.to_str())  # type: ignore[attr-defined]
    (tmp_path / "tokenizer.json").write_text(json.dumps(file | part), encoding="utf-8")
    other = registry.load(tmp_path)
    assert failed(other) == found
    if "pre_tokenizer" in part:
        assert "a space before it" in pits(other)["indentation"].explanation


def test_what_nfkc_makes_of_text_is_found() -> None:
    found = pits(trained("byte_bpe", "nfkc"))["compatibility_characters"]
    assert not found.passed
    assert found.explanation == "½ x² ① ﬁ Ａ ｶﾞ ㎏ comes back as 1⁄2 x2 1 fi A ガ kg: NFKC does that"


def test_special_tokens_read_from_text_are_found() -> None:
    class Careless:
        """As Hugging Face tokenizers are by default."""

        engine = tokenizers.Tokenizer.from_str(trained("byte_bpe")._engine.to_str())  # type: ignore[attr-defined]

        def __getattr__(self, name: str) -> object:
            return getattr(trained("byte_bpe"), name)

        def encode(self, texts: object) -> registry.huggingface.Encoded:
            return registry.huggingface.from_lists([self.engine.encode(text.as_py()).ids for text in texts])  # type: ignore[attr-defined]

    assert failed(Careless()) == ["special_tokens_in_text"]  # type: ignore[arg-type]
