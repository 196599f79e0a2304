"""Characters and words as families of their own: counts by hand, ids in every library that opens the files."""

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
import tokenizers
from transformers import AutoTokenizer

from tests.tokenizer_samples import EOD, HOSTILE, PAD, SPECIAL_TOKENS, documents, ids, saved_files, train
from tokpack_core.config import SpecialTokens, TrainConfig, UnicodeForm
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.hard_texts import random_texts
from tokpack_core.tokenizers.encoded import Encoded, from_lists
from tokpack_core.tokenizers.word_level_engine import equal_word_level_encoder


def test_characters_by_hand() -> None:
    made = train(TrainConfig(family="character", vocab_size=4), ["aab\n", "b\na c"])
    assert made.vocabulary()["token"].to_pylist() == [b"<unk>", b"a", b"\n", b"b"]
    assert ids(made, "abc\n") == [1, 3, 0, 2]
    assert made.training == {
        "documents": 2,
        "bytes": 9,
        "bytes_dropped": 0,
        "units": 9,
        "different_units": 5,
        "out_of_vocabulary": 2,
        "longest_entry_bytes": 1,
    }


def test_words_by_hand() -> None:
    config = TrainConfig(family="word", vocab_size=100, pretokenizer="gpt2")
    made = train(config, ["the cat the cat the dog", "the cat"])
    assert made.vocabulary()["token"].to_pylist() == [b"<unk>", b" cat", b" the", b"the"]
    assert ids(made, "the cat bites the cat") == [3, 1, 0, 2, 1]
    assert (made.training["units"], made.training["out_of_vocabulary"]) == (8, 1)


def test_a_vocabulary_with_everything_gives_text_back() -> None:
    for family in ("character", "word"):
        config = TrainConfig(family=family, vocab_size=100_000, min_frequency=1, special_tokens=SPECIAL_TOKENS)
        made = train(config, [*documents(), *HOSTILE])
        assert made.training["out_of_vocabulary"] == 0
        texts = pa.array([text for text in [*documents(), *HOSTILE] if "<unk>" not in text], pa.string())
        assert made.decode(made.encode(texts)).to_pylist() == texts.to_pylist()


def test_the_most_frequent_characters_have_entries() -> None:
    made = train(TrainConfig(family="character", vocab_size=60), documents())
    counts = Counter("".join(documents()))
    expected = sorted(counts, key=lambda character: (-counts[character], character))[:59]
    assert made.vocabulary()["token"].to_pylist()[1:] == [character.encode() for character in expected]


@pytest.mark.parametrize("family", ["character", "word"])
def test_the_saved_folder_gives_the_same_ids_everywhere(family: str, tmp_path: Path) -> None:
    settings = {"family": family, "vocab_size": 800, "special_tokens": SPECIAL_TOKENS}
    made = train(TrainConfig.model_validate(settings), documents(), "nfc")
    saved_files(made, tmp_path / "saved")
    again = registry.load(tmp_path / "saved")
    auto = AutoTokenizer.from_pretrained(tmp_path / "saved")
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "saved" / "tokenizer.json"))
    for text in [*documents()[::10], *HOSTILE]:
        expected = ids(made, text)
        assert ids(again, text) == expected
        if not any(special in text for special in (EOD, PAD, "<unk>")):
            assert library.encode(text).ids == expected
            assert auto.encode(text, add_special_tokens=False) == expected
    assert (auto.eos_token_id, auto.pad_token_id, auto.unk_token_id) == (0, 1, 2)


@pytest.mark.parametrize("form", ["none", "nfkc"])
@pytest.mark.parametrize("family", ["character", "word"])
def test_our_encoder_takes_the_place_of_the_library(family: str, form: UnicodeForm) -> None:
    settings = {"family": family, "vocab_size": 800, "special_tokens": SPECIAL_TOKENS}
    made = train(TrainConfig.model_validate(settings), documents(), form)
    content = made.as_json()  # type: ignore[attr-defined]
    engine = tokenizers.Tokenizer.from_str(content)
    engine.encode_special_tokens = True

    def by_library(texts: pa.Array) -> Encoded:
        encodings = engine.encode_batch_fast(texts.to_pylist(), add_special_tokens=False)
        return from_lists([encoding.ids for encoding in encodings])

    encode = equal_word_level_encoder(engine, by_library)
    assert encode is not None
    texts = pa.array([*documents(), *HOSTILE, *random_texts()[::5]], pa.string())
    ours, theirs = encode(texts), by_library(texts)
    assert ours.ids.tolist() == theirs.ids.tolist()
    assert ours.offsets.tolist() == theirs.offsets.tolist()
    other = json.loads(content) | {"pre_tokenizer": {"type": "WhitespaceSplit"}}
    assert equal_word_level_encoder(tokenizers.Tokenizer.from_str(json.dumps(other)), by_library) is None
    added = json.loads(content)
    added["added_tokens"].append(added["added_tokens"][0] | {"id": 5000, "content": "the cat", "special": False})
    engine = tokenizers.Tokenizer.from_str(json.dumps(added))
    engine.encode_special_tokens = True
    encode = equal_word_level_encoder(engine, by_library)
    assert encode is not None
    assert encode(pa.array(["a", "see the cat here"])).ids.tolist().count(engine.token_to_id("the cat")) == 1


@pytest.mark.parametrize(
    ("config", "texts", "said"),
    [
        (TrainConfig(family="character", vocab_size=10), [], "holds no text"),
        (TrainConfig(family="word", vocab_size=9), ["x" * 2000], "hardly splits the text .* choose another `pretok"),
        (TrainConfig(family="wordpiece", vocab_size=9), ["x" * 2000], "needs white space between words; choose anoth"),
        (TrainConfig(family="word", vocab_size=1), ["a"], "one entry and 1 special tokens need 2"),
        (
            TrainConfig(family="character", vocab_size=9, special_tokens=SpecialTokens(eod="a")),
            ["aa"],
            "ordinary text gives the id of special token 'a'",
        ),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(config: TrainConfig, texts: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        train(config, texts)
