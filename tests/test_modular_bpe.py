"""Sequential BPE over languages, against a plain transcription; its sub-tokenizers, against real tokenizers."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tokenizers
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.test_bpe_merges import as_words, joined
from tokpack_core.bpe.continued_merges import EarlierMerges, continue_merges, continued
from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, MergeSettings
from tokpack_core.bpe.merges import learn_merges
from tokpack_core.config import TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.metadata import LANGUAGES_FILE_NAME
from tokpack_core.tokenizers.modular.sub_tokenizers import SubTokenizers, ids_of, sub_tokenizer

WORDS = {
    "en": ["the quick brown fox jumps over the lazy dog", "and then the other dogs sleep in the brown house"],
    "de": ["der schnelle braune fuchs springt über den faulen hund", "und die anderen hunde schlafen im hause"],
    "zh": ["敏捷的棕色狐狸跳过了懒狗", "其他的狗睡在棕色的房子里", "狐狸和狗", "房子里的狐狸"],
}
TEXTS = {language: [" ".join(words * 3)] * 20 + words for language, words in WORDS.items()}
SPECIAL = {"eod": "<|endoftext|>", "pad": "<|pad|>"}


def labelled(texts: dict[str, list[str]]) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Documents of all languages in turn."""
    rows = [(text, language) for language, found in texts.items() for text in found]
    rows = rows[::2] + rows[1::2]
    for start in range(0, len(rows), 7):
        some = rows[start : start + 7]
        yield pa.array([text for text, _ in some], pa.string()), pa.array([lang for _, lang in some], pa.string())


def train(vocab_size: int = 300, texts: dict[str, list[str]] = TEXTS, **options: object) -> HuggingFaceTokenizer:
    config = TrainConfig.model_validate(
        {"family": "modular_bpe", "vocab_size": vocab_size, "special_tokens": SPECIAL} | options
    )
    tokenizer = registry.train_modular(config, labelled(texts), "none")
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    return tokenizer


def pair_counts(words: list[tuple[list[bytes], int]]) -> Counter[tuple[bytes, bytes]]:
    counts: Counter[tuple[bytes, bytes]] = Counter()
    for word, count in words:
        for pair in pairwise(word):
            counts[pair] += count
    return counts


def plainly_continued(
    words: dict[bytes, int], earlier: list[tuple[bytes, bytes]], size: int, least: int
) -> tuple[list[bool], list[tuple[bytes, bytes]]]:
    """The same step by step: which earlier merges are kept, and the new ones."""
    spelled = [([bytes([byte]) for byte in word], count) for word, count in words.items()]
    symbols = [BYTE_LEVEL_ORDER[place : place + 1] for place in range(256)]
    kept, new = [], []
    for pair in earlier:
        known = set(symbols)
        chosen = len(symbols) < size and pair_counts(spelled)[pair] >= least and pair[0] + pair[1] not in known
        kept.append(chosen)
        if chosen:
            spelled = [(joined(word, pair), count) for word, count in spelled]
            symbols.append(pair[0] + pair[1])
    while len(symbols) < size:
        counts = pair_counts(spelled)
        number = {symbol: place for place, symbol in enumerate(symbols)}
        best = min(counts, key=lambda p: (-counts[p], number[p[0]], number[p[1]]), default=None)
        if best is None or counts[best] < least:
            break
        spelled = [(joined(word, best), count) for word, count in spelled]
        symbols.append(best[0] + best[1])
        new.append(best)
    return kept, new


def as_earlier(pairs: list[tuple[bytes, bytes]]) -> EarlierMerges:
    tokens = [BYTE_LEVEL_ORDER[place : place + 1] for place in range(256)]
    tokens += list(dict.fromkeys(left + right for left, right in pairs))
    number = {token: place for place, token in enumerate(tokens)}
    rows = [(number[left], number[right], number[left + right]) for left, right in pairs]
    left, right, product = np.array(rows, np.int32).reshape(-1, 3).T.copy()
    return EarlierMerges(tokens, left, right, product)


small_words = st.dictionaries(st.text("abc", min_size=1, max_size=9).map(str.encode), st.integers(1, 9), max_size=8)


@settings(max_examples=60, deadline=None)
@given(small_words, small_words, st.integers(1, 12), st.integers(1, 12), st.integers(1, 6))
def test_continues_as_the_plain_transcription(
    first: dict[bytes, int], second: dict[bytes, int], before: int, after: int, least: int
) -> None:
    alone = learn_merges([as_words(first)] if first else [], MergeSettings(256 + before, 1))
    pairs = [(alone.tokens[a], alone.tokens[b]) for a, b in zip(alone.left, alone.right, strict=True)]
    kept, new = plainly_continued(second, pairs, 256 + after, least)
    parts = [as_words(second)] if second else []
    for workers in (1, 2):
        found = continued(parts, as_earlier(pairs), MergeSettings(256 + after, 1), least, workers)
        assert found.kept.tolist() == kept
        made = [(found.spelled[a], found.spelled[b]) for a, b in zip(found.left, found.right, strict=True)]
        assert made == [pair for pair, stays in zip(pairs, kept, strict=True) if stays] + new


def test_a_language_has_the_size_of_its_own_tokenizer() -> None:
    """With no language before it, it is its own tokenizer; after others it has as many entries."""
    tokenizer = train(languages=["de", "en", "zh"])
    assert {language: ids.size for language, ids in tokenizer.metadata.languages.items()} == dict.fromkeys(
        ["de", "en", "zh"], 300
    )
    alone = TrainConfig.model_validate({"family": "byte_bpe", "vocab_size": 300, "special_tokens": SPECIAL})
    monolingual = registry.train(alone, iter([pa.array(TEXTS["de"])]), "none")
    texts = pa.array(TEXTS["de"])
    assert sub_tokenizer(tokenizer, ["de"]).encode(texts).ids.tolist() == monolingual.encode(texts).ids.tolist()
    assert tokenizer.vocab_size < 258 + 3 * (300 - 258)
    shared = np.intersect1d(tokenizer.metadata.languages["de"], tokenizer.metadata.languages["en"])
    assert shared.size > 258


def test_every_entry_is_made_of_its_languages_entries() -> None:
    tokenizer = train()
    merges = tokenizer.parts()[2]
    assert merges is not None
    rows = np.stack([merges[name].to_numpy() for name in ("left", "right", "token")], axis=1)
    for ids in tokenizer.metadata.languages.values():
        inside = rows[np.isin(rows, ids).all(axis=1)]
        assert set(ids[258:].tolist()) <= set(inside[:, 2].tolist())


@pytest.mark.parametrize("languages", [["zh"], ["en", "de"], ["de", "zh", "en"]])
def test_a_sub_tokenizer_opens_elsewhere_with_the_ids_of_the_whole(tmp_path: Path, languages: list[str]) -> None:
    whole = train()
    part = sub_tokenizer(whole, languages)
    part.save(tmp_path)
    assert (tmp_path / LANGUAGES_FILE_NAME).is_file()
    texts = [text for language in TEXTS for text in TEXTS[language]] + ["naïve 123\n\t狗<|endoftext|>", ""]
    ours = part.encode(pa.array(texts))
    stock = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    plain = [text for text in texts if "<|" not in text]
    expected = part.encode(pa.array(plain)).ids.tolist()
    assert [i for e in stock.encode_batch(plain, add_special_tokens=False) for i in e.ids] == expected
    assert [i for text in plain for i in theirs(text, add_special_tokens=False)["input_ids"]] == expected
    assert np.isin(ours.ids, ids_of(whole, languages)).all()
    assert part.decode(ours).to_pylist() == texts
    assert whole.decode(ours).to_pylist() == texts
    again = registry.load(tmp_path)
    assert again.encode(pa.array(texts)).ids.tolist() == ours.ids.tolist()
    assert list(ids_of(again, languages)) == list(ids_of(whole, languages))


def test_documents_are_encoded_by_their_language() -> None:
    tokenizer = train()
    texts = ["the brown house", "狐狸和狗", "der hund", "the fox", "", "狐狸"]
    languages = ["en", "zh", "de", None, "en", "xx"]
    found = SubTokenizers(tokenizer).encode(pa.array(texts), pa.array(languages))
    for document, (text, language) in enumerate(zip(texts, languages, strict=True)):
        own = sub_tokenizer(tokenizer, [language]) if language in TEXTS else tokenizer
        ids = found.ids[found.offsets[document] : found.offsets[document + 1]]
        assert ids.tolist() == own.encode(pa.array([text])).ids.tolist()
    nothing = SubTokenizers(tokenizer).encode(pa.array([], pa.string()), pa.array([], pa.string()))
    assert nothing.ids.size == 0
    assert nothing.offsets.tolist() == [0]


def test_the_same_whatever_the_order_of_documents(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    train().save(tmp_path / "a")
    train(texts={language: TEXTS[language][::-1] for language in reversed(TEXTS)}).save(tmp_path / "b")
    for name in ("tokenizer.json", "lang_to_ids.json", "tokenizer_config.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("languages", [["zh", ["en", "de"]], ["zh", "*"]])
def test_several_languages_have_one_sub_tokenizer(languages: list[str | list[str]]) -> None:
    ids = train(languages=languages).metadata.languages
    assert ids["en"].tolist() == ids["de"].tolist()
    joined = {"zh": TEXTS["zh"], "en": TEXTS["en"] + TEXTS["de"]}
    assert ids["en"].tolist() == train(texts=joined, languages=["zh", "en"]).metadata.languages["en"].tolist()


def test_one_language_gives_its_own_tokenizer() -> None:
    tokenizer = train(texts={"de": TEXTS["de"]})
    assert tokenizer.vocab_size == 300
    assert tokenizer.metadata.languages["de"].tolist() == list(range(300))


def test_a_language_of_little_text_has_fewer_entries() -> None:
    tokenizer = train(texts=TEXTS | {"xx": ["zz"]})
    assert tokenizer.metadata.languages["xx"].size == 258
    assert tokenizer.training["entries_missing"] == 300 - 258


@pytest.mark.parametrize(
    ("texts", "options", "said"),
    [
        ({}, {}, "holds no text: name files"),
        ({"en": [""]}, {}, "holds no text: name files"),
        (TEXTS | {"xx": [""]}, {}, "no text of language 'xx'"),
        (TEXTS, {"languages": ["en", "de", "zh", "fr"]}, "no text of language 'fr'"),
        (TEXTS, {"languages": ["en", "de"]}, "documents of language 'zh', which `languages` does not name"),
        (TEXTS, {"vocab_size": 257}, "too small"),
    ],
)
def test_what_cannot_be_trained_is_said(texts: dict[str, list[str]], options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        train(**({"texts": texts} | options))  # type: ignore[arg-type]


def test_documents_without_language_are_refused() -> None:
    config = TrainConfig.model_validate({"family": "modular_bpe", "vocab_size": 300})
    texts = iter([(pa.array(["a"]), pa.array([None], pa.string()))])
    with pytest.raises(InputError, match=r"1 documents of a batch have no language.*lang_field"):
        registry.train_modular(config, texts, "none")


def test_unknown_languages_and_other_families_are_refused() -> None:
    tokenizer = train()
    with pytest.raises(InputError, match="no language 'fr': it has zh, de, en"):
        sub_tokenizer(tokenizer, ["en", "fr"])
    with pytest.raises(InputError, match="no language is named"):
        sub_tokenizer(tokenizer, [])
    plain = TrainConfig.model_validate({"family": "byte_bpe", "vocab_size": 260})
    with pytest.raises(InputError, match="byte_bpe tokenizer has no languages"):
        SubTokenizers(registry.train(plain, iter([pa.array(["a b"])]), "none"))
    with pytest.raises(ValueError, match="names a language twice"):
        TrainConfig.model_validate({"family": "modular_bpe", "vocab_size": 300, "languages": ["en", "en"]})
    with pytest.raises(ValueError, match="by itself"):
        TrainConfig.model_validate({"family": "modular_bpe", "vocab_size": 300, "languages": ["en", ["de", "*"]]})
    with pytest.raises(ValueError, match="`languages` has no effect on byte_bpe"):
        TrainConfig.model_validate({"family": "byte_bpe", "vocab_size": 300, "languages": ["en"]})


def test_a_damaged_file_of_languages_is_said(tmp_path: Path) -> None:
    train().save(tmp_path)
    (tmp_path / LANGUAGES_FILE_NAME).write_text('{"en": [3, 2]}')
    with pytest.raises(InputError, match=r"lang_to_ids\.json is not an object of language to ascending ids"):
        registry.load(tmp_path)


def test_continuing_takes_the_size_of_the_text_alone() -> None:
    """Counts are lowered until the vocabulary is full."""
    first, second = {b"abab": 50, b"abc": 9}, {b"bcbc": 7, b"ab": 6, b"cd": 3, b"ef": 3, b"gh": 2}
    alone = learn_merges([as_words(first)], MergeSettings(259, 1))
    pairs = [(alone.tokens[a], alone.tokens[b]) for a, b in zip(alone.left, alone.right, strict=True)]
    found = continue_merges([as_words(second)], as_earlier(pairs), MergeSettings(261, 1))
    assert len(found.spelled) == 261
    assert found.kept.tolist() == [True, False, False]
    assert set(found.spelled[256:]) == {b"ab", b"bc", b"bcbc", b"cd", b"ef"}
