"""Merged Unigram over languages: its probabilities against all segmentations, its files against other libraries."""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sentencepiece
import tokenizers
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.test_bpe_merges import as_words
from tests.test_modular_bpe import SPECIAL, TEXTS, labelled
from tokpack_core.config import TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.checked_export import FOR_TRANSFORMERS, save_checked
from tokpack_core.tokenizers.modular.sub_tokenizers import SubTokenizers, ids_of, sub_tokenizer
from tokpack_core.tokenizers.pruning import prune
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer
from tokpack_core.tokenizers.sentencepiece.unigram_em import LEAST, fit

SIZE = 340


@pytest.fixture(scope="module")
def whole() -> SentencePieceTokenizer:
    return train()


def train(vocab_size: int = SIZE, texts: dict[str, list[str]] = TEXTS, **options: object) -> SentencePieceTokenizer:
    config = TrainConfig.model_validate(
        {"family": "modular_unigram", "vocab_size": vocab_size, "special_tokens": SPECIAL} | options
    )
    tokenizer = registry.train_modular(config, labelled(texts), "none")
    assert isinstance(tokenizer, SentencePieceTokenizer)
    return tokenizer


def segmentations(word: str, pieces: set[str]) -> Iterator[list[str]]:
    if not word:
        yield []
    for end in range(1, len(word) + 1):
        if word[:end] in pieces:
            for rest in segmentations(word[end:], pieces):
                yield [word[:end], *rest]


def one_round(words: dict[str, int], p: dict[str, float]) -> tuple[dict[str, float], float]:
    """New probabilities, and the logarithm of that of all words by the old ones."""
    expected: Counter[str] = Counter()
    likelihood = 0.0
    for word, count in words.items():
        ways = list(segmentations(word, set(p)))
        weights = [math.prod(p[piece] for piece in way) for way in ways]
        likelihood += count * math.log(sum(weights))
        for way, weight in zip(ways, weights, strict=True):
            for piece in way:
                expected[piece] += count * weight / sum(weights)
    floored = {piece: max(expected[piece], LEAST) for piece in p}
    return {piece: number / sum(floored.values()) for piece, number in floored.items()}, likelihood


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(st.text("aé狗", min_size=1, max_size=6), st.integers(1, 5), min_size=1, max_size=5),
    st.sets(st.text("aé狗", min_size=2, max_size=4), max_size=6),
)
def test_probabilities_are_those_of_all_segmentations(words: dict[str, int], longer: set[str]) -> None:
    pieces = sorted({"a", "é", "狗"} | longer)
    found = fit(pieces, as_words({word.encode(): count for word, count in words.items()}))
    p = {piece: 1 / len(pieces) for piece in pieces}
    before = -math.inf
    rounds = 0
    while True:
        fitted, likelihood = one_round(words, p)
        if likelihood - before < 1e-4 * abs(likelihood) or rounds == 50:
            break
        before, p = likelihood, fitted
        rounds += 1
    assert found.rounds == rounds
    np.testing.assert_allclose(np.exp(found.log_p), [p[piece] for piece in pieces], rtol=1e-9)


def test_characters_without_a_piece_are_gone_over() -> None:
    """狗 has no piece: a and b are both expected once a word, whatever is between them."""
    found = fit(["a", "b"], as_words({"a狗b".encode(): 3}))
    np.testing.assert_allclose(np.exp(found.log_p), [0.5, 0.5])


def test_the_whole_is_the_union_of_its_languages(whole: SentencePieceTokenizer) -> None:
    languages = whole.metadata.languages
    assert set(languages) == set(TEXTS)
    assert np.array_equal(ids_of(whole, list(TEXTS)), np.arange(whole.vocab_size))
    fixed = 3 + 256
    assert all(ids[:fixed].tolist() == list(range(fixed)) for ids in languages.values())
    pieces = whole.vocabulary()["token"].to_pylist()
    for language, texts in TEXTS.items():
        alone = TrainConfig.model_validate(
            {"family": "sentencepiece_unigram", "vocab_size": languages[language].size, "special_tokens": SPECIAL}
        )
        own = registry.train(alone, iter([pa.array(texts)]), "none").vocabulary()["token"].to_pylist()
        assert sorted(pieces[token] for token in languages[language]) == sorted(own)


@pytest.mark.parametrize("languages", [["zh"], ["en", "de"]])
def test_a_sub_tokenizer_opens_elsewhere_with_the_ids_of_the_whole(
    whole: SentencePieceTokenizer, tmp_path: Path, languages: list[str]
) -> None:
    part = sub_tokenizer(whole, languages)
    texts = [text for language in TEXTS for text in TEXTS[language]] + ["naïve 123\n\t狗 の", ""]
    assert save_checked(part, tmp_path, pa.array(texts))["transformers"]["differing_documents"] == 0
    ours = part.encode(pa.array(texts))
    assert np.isin(ours.ids, ids_of(whole, languages)).all()
    assert part.decode(ours).to_pylist() == texts
    assert whole.decode(ours).to_pylist() == texts
    folder = tmp_path / FOR_TRANSFORMERS
    stock = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    library = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.model"))
    expected = ours.ids.tolist()
    assert [i for ids in library.encode(texts) for i in ids] == expected
    assert [i for e in stock.encode_batch(texts, add_special_tokens=False) for i in e.ids] == expected
    assert [i for text in texts for i in theirs(text, add_special_tokens=False)["input_ids"]] == expected
    again = registry.load(tmp_path)
    assert again.encode(pa.array(texts)).ids.tolist() == expected
    assert (folder / "lang_to_ids.json").read_bytes() == (tmp_path / "lang_to_ids.json").read_bytes()


def test_documents_are_encoded_by_their_language(whole: SentencePieceTokenizer) -> None:
    texts, languages = ["the brown house", "狐狸和狗", "der hund", "the fox"], ["en", "zh", "de", None]
    found = SubTokenizers(whole).encode(pa.array(texts), pa.array(languages))
    for document, (text, language) in enumerate(zip(texts, languages, strict=True)):
        own = sub_tokenizer(whole, [language]) if language else whole
        ids = found.ids[found.offsets[document] : found.offsets[document + 1]]
        assert ids.tolist() == own.encode(pa.array([text])).ids.tolist()


def test_the_same_whatever_the_order_of_documents(whole: SentencePieceTokenizer) -> None:
    again = train(texts={language: TEXTS[language][::-1] for language in reversed(TEXTS)})
    assert again.model == whole.model
    assert {k: v.tolist() for k, v in again.metadata.languages.items()} == {
        k: v.tolist() for k, v in whole.metadata.languages.items()
    }


def test_pruning_keeps_the_languages(whole: SentencePieceTokenizer) -> None:
    removable = np.zeros(whole.vocab_size, bool)
    removable[ids_of(whole, ["zh"])] = True
    pruned = prune(whole, removable)
    new = pruned.id_map()["new"].to_pylist()
    for language, ids in whole.metadata.languages.items():
        kept = [new[token] for token in ids.tolist() if new[token] is not None]
        assert pruned.tokenizer.metadata.languages[language].tolist() == kept  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("texts", "options", "said"),
    [
        (TEXTS | {"xx": [""]}, {}, "no text of language 'xx'"),
        (TEXTS, {"languages": ["en"]}, "which `languages` does not name"),
        (TEXTS, {"vocab_size": 262}, "less than the characters of language zh need"),
    ],
)
def test_what_cannot_be_trained_is_said(texts: dict[str, list[str]], options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        train(**({"texts": texts} | options))  # type: ignore[arg-type]
