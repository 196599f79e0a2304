"""WordPiece: pieces against a trainer that counts everything anew, ids against Hugging Face and transformers."""

import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
import tokenizers
from hypothesis import given, settings
from transformers import AutoTokenizer

from tests.tokenizer_samples import EOD, HOSTILE, PAD, SPECIAL_TOKENS, documents, ids, saved_files, train
from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.corpus.text_buffers import read_only
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.byte_bpe.engine import hard_texts
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.wordpiece import engine as wordpiece_engine
from tokpack_core.tokenizers.wordpiece.engine import equal_wordpiece_encoder
from tokpack_core.tokenizers.wordpiece.merges import learn_pieces

CRITERIA = ("likelihood", "frequency")


def counts_anew(words: dict[str, int], characters: list[str], size: int, least: int, likelihood: bool) -> list[str]:
    pieces = [*characters, *(f"##{character}" for character in characters)]
    spelled = [([word[0], *(f"##{character}" for character in word[1:])], count) for word, count in words.items()]
    while len(pieces) < size:
        pairs: Counter[tuple[str, str]] = Counter()
        single: Counter[str] = Counter()
        for symbols, count in spelled:
            for symbol in symbols:
                single[symbol] += count
            for left, right in pairwise(symbols):
                pairs[left, right] += count
        scores = {
            (left, right): count / (single[left] * single[right]) if likelihood else count
            for (left, right), count in pairs.items()
            if count >= least
        }
        if not scores:
            break
        left, right = min(scores, key=lambda p: (-scores[p], pieces.index(p[0]), pieces.index(p[1])))
        merged = left + right.removeprefix("##")
        if merged not in pieces:
            pieces.append(merged)
        for symbols, _ in spelled:
            place = 0
            while place + 1 < len(symbols):
                if symbols[place : place + 2] == [left, right]:
                    symbols[place : place + 2] = [merged]
                place += 1
    return pieces


def counted(words: dict[str, int]) -> PretokenCounts:
    encoded = [word.encode() for word in words]
    offsets = np.cumsum([0, *map(len, encoded)])
    counts = np.array(list(words.values()), np.int64)
    return PretokenCounts(read_only(np.frombuffer(b"".join(encoded), np.uint8)), offsets, counts)


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(st.text("abé你", min_size=1, max_size=9), st.integers(1, 9), min_size=1, max_size=30),
    st.integers(2, 60),
    st.sampled_from([1, 3]),
    st.booleans(),
)
def test_pieces_are_those_of_counting_anew(words: dict[str, int], size: int, least: int, likelihood: bool) -> None:
    characters = sorted(set("".join(words)))
    expected = counts_anew(words, characters, size, least, likelihood)
    assert learn_pieces(counted(words), characters, size, least, likelihood, 100) == expected


def test_the_two_criteria_by_hand() -> None:
    """a##b: 6 of 7 · 7, frequent parts; x##y: 2 of 2 · 2, which never stand apart."""
    words = {"ab": 6, "a": 1, "zb": 1, "xy": 2}
    characters = ["a", "b", "x", "y", "z"]
    assert learn_pieces(counted(words), characters, 11, 1, False, 100)[10:] == ["ab"]
    assert learn_pieces(counted(words), characters, 11, 1, True, 100)[10:] == ["xy"]


def test_frequency_gives_the_pieces_of_hugging_face() -> None:
    """On counts without ties, where the order of its hash table does not matter."""
    words = {"ab": 1, "bc": 2, "abc": 4, "cab": 8, "ca": 16, "cc": 32}
    text = " ".join(" ".join([word] * count) for word, count in words.items())
    theirs = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=11, special_tokens=["[UNK]"], show_progress=False)
    theirs.train_from_iterator([text], trainer)
    ours = train(TrainConfig(family="wordpiece", vocab_size=11, min_frequency=1, character_coverage=1.0), [text])
    assert set(json.loads(engine_of(ours).to_str())["model"]["vocab"]) == set(theirs.get_vocab())


def engine_of(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    return tokenizer._engine


@pytest.fixture(scope="module")
def trained() -> Tokenizer:
    config = TrainConfig(family="wordpiece", vocab_size=1500, special_tokens=SPECIAL_TOKENS)
    return train(config, documents(), "nfc")


def test_the_order_of_documents_does_not_matter(trained: Tokenizer, tmp_path: Path) -> None:
    config = TrainConfig(family="wordpiece", vocab_size=1500, special_tokens=SPECIAL_TOKENS)
    shuffled = documents()[:]
    random.Random(0).shuffle(shuffled)
    files = saved_files(train(config, shuffled, "nfc"), tmp_path / "shuffled")
    assert files == saved_files(trained, tmp_path / "trained")


def test_ids_are_special_tokens_then_characters_then_merges(trained: Tokenizer) -> None:
    vocabulary = json.loads(engine_of(trained).to_str())["model"]["vocab"]
    names = sorted(vocabulary, key=vocabulary.__getitem__)
    characters = trained.training["characters"]
    assert trained.special_tokens == {"eod": 0, "pad": 1, "unk": 2}
    assert names[:3] == [EOD, PAD, "[UNK]"]
    assert names[3 : 3 + characters] == sorted(names[3 : 3 + characters])
    assert names[3 + characters : 3 + 2 * characters] == [f"##{name}" for name in names[3 : 3 + characters]]
    assert trained.vocab_size == len(names) == 1500


def test_the_saved_folder_gives_the_same_ids_everywhere(trained: Tokenizer, tmp_path: Path) -> None:
    saved_files(trained, tmp_path / "saved")
    again = registry.load(tmp_path / "saved")
    auto = AutoTokenizer.from_pretrained(tmp_path / "saved")
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "saved" / "tokenizer.json"))
    for text in [*documents()[::10], *HOSTILE]:
        expected = ids(trained, text)
        assert ids(again, text) == expected
        if EOD not in text and PAD not in text:
            assert library.encode(text).ids == expected
            assert auto.encode(text, add_special_tokens=False) == expected
    assert auto.eos_token_id == trained.special_tokens["eod"]
    assert auto.unk_token_id == trained.special_tokens["unk"]
    assert len(auto) == trained.vocab_size


def bert(lowercase: bool) -> tokenizers.Tokenizer:
    """As BERT's own files are: special tokens in the middle of the ids, text lower-cased."""
    made = tokenizers.BertWordPieceTokenizer(lowercase=lowercase)
    made.train_from_iterator(documents(), vocab_size=2000, show_progress=False)
    return made._tokenizer


@pytest.mark.parametrize("lowercase", [True, False])
def test_our_encoder_takes_the_place_of_the_library(lowercase: bool) -> None:
    engine = bert(lowercase)
    engine.encode_special_tokens = True

    def by_library(texts: pa.Array) -> registry.huggingface.Encoded:
        encodings = engine.encode_batch_fast(texts.to_pylist(), add_special_tokens=False)
        return registry.huggingface.from_lists([encoding.ids for encoding in encodings])

    encode = equal_wordpiece_encoder(engine, by_library, hard_texts(["[CLS]", "[SEP]"]))
    assert encode is not None
    texts = pa.array([*documents(), *HOSTILE, "", "[CLS] a[SEP]"], pa.string())
    ours, theirs = encode(texts), by_library(texts)
    assert ours.ids.tolist() == theirs.ids.tolist()
    assert ours.offsets.tolist() == theirs.offsets.tolist()
    rng = random.Random(1)
    codes = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    rng.shuffle(codes)
    some = pa.array(["".join(codes[start : start + 50]) for start in range(0, 100_000, 50)], pa.string())
    assert encode(some).ids.tolist() == by_library(some).ids.tolist()
    with pytest.MonkeyPatch.context() as patch:  # long documents are normalized in parts
        patch.setattr(wordpiece_engine, "BATCH_BYTES", 5)
        for part in (some.slice(0, 300), texts):
            assert encode(part).ids.tolist() == by_library(part).ids.tolist()


def test_words_with_uncovered_characters_are_counted() -> None:
    text = "ab " * 99 + "añ"
    made = train(TrainConfig(family="wordpiece", vocab_size=100, character_coverage=0.99), [text])
    figures = {"documents": 1, "bytes": 300, "bytes_dropped": 3, "words": 100, "words_dropped": 1, "characters": 2}
    assert made.training == figures
    assert ids(made, "ab añ") == [5, 0]


@pytest.mark.parametrize(
    ("config", "texts", "said"),
    [
        (TrainConfig(family="wordpiece", vocab_size=100), [""], "holds no text"),
        (TrainConfig(family="wordpiece", vocab_size=100), [" \n"], "nothing but white space"),
        (TrainConfig(family="wordpiece", vocab_size=6), ["abc"], "3 characters, each in two forms, and 1 special"),
        (
            TrainConfig(family="wordpiece", vocab_size=50, special_tokens=SpecialTokens(eod="end")),
            ["the end"] * 9,
            "ordinary text gives the id of special token 'end'",
        ),
    ],
)
def test_what_cannot_be_trained_is_one_sentence(config: TrainConfig, texts: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        train(config, texts)


def test_the_largest_size_takes_no_more_memory() -> None:
    tokenizer = train(TrainConfig(family="wordpiece", vocab_size=2**31 - 1, min_frequency=1), ["aab aab abc"])
    assert {b"a", b"aab", b"abc"} <= set(tokenizer.vocabulary()["token"].to_pylist())
