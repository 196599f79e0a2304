"""What every family says of training text that holds special tokens, no boundaries, or nothing."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from tokpack_core.config import MODULAR, SpecialTokens, TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.protocol import Tokenizer

EOD = "<|endoftext|>"
SIZES: list[tuple[dict[str, Any], int]] = [
    ({"family": "byte_bpe"}, 270),
    ({"family": "byte_bpe", "delete_threshold": 0.9}, 270),
    ({"family": "sentencepiece_bpe"}, 280),
    ({"family": "sentencepiece_unigram"}, 280),
    ({"family": "wordpiece"}, 60),
    ({"family": "character"}, 20),
    ({"family": "word"}, 20),
    ({"family": "superbpe"}, 270),
    ({"family": "superbpe", "joins": "words"}, 270),
    ({"family": "boundless_bpe"}, 270),
    ({"family": "boundless_bpe", "delete_threshold": 0.9}, 270),
    ({"family": "modular_bpe"}, 270),
    ({"family": "modular_unigram"}, 280),
    ({"family": "cnf_mce"}, 270),
]


def trained(options: dict[str, Any], size: int, texts: Iterable[str]) -> Tokenizer:
    config = TrainConfig(vocab_size=size, special_tokens=SpecialTokens(eod=EOD), **options)
    array = pa.array(texts, pa.large_string())
    if config.family in MODULAR:
        return registry.train_modular(config, iter([(array, pa.array(["en"] * len(array)))]), "nfc")
    return registry.train(config, iter([array]), "nfc")


@pytest.mark.parametrize(("options", "size"), SIZES)
def test_special_tokens_in_the_text_are_counted_and_ordinary_text(options: dict[str, Any], size: int) -> None:
    tokenizer = trained(options, size, [f"some words {EOD} and more words {EOD}", "words some more", f"{EOD} words"])
    assert tokenizer.training["special_tokens_in_text"] == 3
    assert tokenizer.special_tokens["eod"] not in tokenizer.encode(pa.array([f"words {EOD}"], pa.large_string())).ids


@pytest.mark.parametrize(("options", "size"), SIZES)
def test_no_special_token_in_the_text_is_no_figure(options: dict[str, Any], size: int) -> None:
    tokenizer = trained(options, size, ["some words and more words", "words some more endoftext <|", "end|> of text"])
    assert "special_tokens_in_text" not in tokenizer.training


@pytest.mark.parametrize(("options", "size"), SIZES)
def test_empty_text_is_one_sentence_that_names_files_and_corpora(options: dict[str, Any], size: int) -> None:
    with pytest.raises(InputError, match="holds no text: name files that hold some; in a configuration, check `train"):
        trained(options, size, [""])


@pytest.mark.parametrize(
    "options",
    [
        {"family": "boundless_bpe"},
        {"family": "boundless_bpe", "delete_threshold": 0.9},
        {"family": "superbpe"},
        {"family": "modular_bpe"},
        {"family": "cnf_mce"},
        {"family": "word"},
    ],
)
def test_text_without_boundaries_names_no_option_that_the_family_has_not(options: dict[str, Any]) -> None:
    texts = ["x" * 3000 + f" {number}" for number in range(5)]
    with pytest.raises(InputError, match=r"choose another `pretokenizer`$"):
        trained(options, 300, texts)
    with pytest.raises(ValidationError, match="has no effect"):
        TrainConfig(vocab_size=300, max_pretoken_bytes=1000, **options)


@pytest.mark.parametrize("options", [{}, {"delete_threshold": 0.9}])
def test_what_can_leave_long_pretokens_out_is_told_so(options: dict[str, Any]) -> None:
    texts = ["x" * 3000 + f" {number}" for number in range(5)]
    with pytest.raises(InputError, match=r"or leave long pretokens out with `max_pretoken_bytes`$"):
        trained({"family": "byte_bpe"} | options, 300, texts)
    trained({"family": "byte_bpe", "max_pretoken_bytes": 1000} | options, 300, texts)


def test_characters_need_no_boundaries_between_words() -> None:
    texts = ["abcabdéa中" * 700, "中文没有空格" * 900]
    tokenizer = trained({"family": "character"}, 6, texts)
    counts = Counter("".join(texts))
    frequent = sorted(counts, key=lambda character: (-counts[character], character))[:4]
    assert [token.decode() for token in tokenizer.vocabulary()["token"].to_pylist()[2:]] == frequent
    assert tokenizer.training["units"] == counts.total()
    assert tokenizer.training["different_units"] == len(counts)
    assert tokenizer.training["out_of_vocabulary"] == counts.total() - sum(counts[c] for c in frequent)


@pytest.mark.parametrize("pattern", [r"\p{N}|\p{L}+|[^\p{L}\p{N}]+", r"\p{N}{1,3}|[^\p{N}]+"])
def test_digits_are_not_free_under_a_regex_that_splits_them(pattern: str) -> None:
    with pytest.raises(ValidationError, match="`pretokenizer` splits them"):
        TrainConfig(family="byte_bpe", vocab_size=300, pretokenizer=f"regex:{pattern}", digits="free")


@pytest.mark.parametrize("pattern", [r"\p{L}+|[^\p{L}]+", r" ?\p{N}+|[^\p{N}]", r"\p{L}+"])
def test_digits_are_free_under_a_regex_that_leaves_them_whole(pattern: str) -> None:
    config = {"family": "byte_bpe", "pretokenizer": f"regex:{pattern}", "digits": "free"}
    tokenizer = trained(config, 263, ["a1234567 b1234567"] * 3)
    assert b"1234567" in tokenizer.vocabulary()["token"].to_pylist()
