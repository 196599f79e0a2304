"""The interface of CS336's first assignment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

import pytest
import regex
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.test_bpe_merges import by_definition
from tests.tokenizer_samples import EOD, HOSTILE, documents, ordinary_text
from tokpack_core.bpe import cs336
from tokpack_core.bpe.cs336 import Tokenizer, train_bpe
from tokpack_core.bpe.merge_settings import MergeSettings
from tokpack_core.bpe.regex_splitting import count_words
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byteification.token_bytes import byte_level_name
from tokpack_core.tokenizers.pretokenizers import PRETOKENIZERS, SPLITS

SPECIAL = [EOD, f"{EOD}{EOD}", "<a b>"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cs336") / "corpus.txt"
    path.write_text(EOD.join(documents()[:10]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(corpus: Path) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    return train_bpe(corpus, 400, [EOD])


@pytest.fixture(scope="module")
def tokenizer(trained: tuple[dict[int, bytes], list[tuple[bytes, bytes]]]) -> Tokenizer:
    return Tokenizer(*trained, SPECIAL)


def test_training(trained: tuple[dict[int, bytes], list[tuple[bytes, bytes]]]) -> None:
    vocabulary, merges = trained
    expected = by_definition(
        count_words(documents()[:10], SPLITS["gpt2"]), MergeSettings(399, tie_break="lexicographic_greatest")
    )
    assert merges == [(left, right) for left, right, _ in expected]
    assert sorted(vocabulary) == list(range(400))
    assert set(vocabulary.values()) == {
        EOD.encode(),
        *(bytes([byte]) for byte in range(256)),
        *(left + right for left, right in merges),
    }
    assert not any(b"<|" in left + right for left, right in merges)


def test_reading_piece_by_piece_changes_nothing(
    corpus: Path, trained: tuple[dict[int, bytes], list[tuple[bytes, bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cs336, "READ_BYTES", 97)
    assert train_bpe(corpus, 400, [EOD]) == trained


def test_overlapping_special_tokens_are_borders_of_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text"
    path.write_text("xyz<s><s>xyz<s>xyz", encoding="utf-8")
    for size in range(1, 20):
        monkeypatch.setattr(cs336, "READ_BYTES", size)
        found = [text for array in cs336.documents(path, ["<s>", "<s><s>"]) for text in array.to_pylist()]
        assert found == ["xyz"] * 3, size


def test_bad_files_are_one_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        train_bpe(tmp_path / "none", 300, [])
    (tmp_path / "latin1").write_bytes(b"caf\xe9 au lait")
    with pytest.raises(InputError, match="no UTF-8"):
        train_bpe(tmp_path / "latin1", 300, [])
    with pytest.raises(InputError, match="need 258"):
        train_bpe(tmp_path / "latin1", 257, ["a", "b"])


def test_ids_are_those_of_tiktoken(
    tokenizer: Tokenizer, trained: tuple[dict[int, bytes], list[tuple[bytes, bytes]]]
) -> None:
    """tiktoken wants ids in the order of the merges, which ours have."""
    special = {
        name: token_id for token_id, content in tokenizer.vocab.items() for name in SPECIAL if name.encode() == content
    }
    ranks = {content: token_id for token_id, content in trained[0].items() if content != EOD.encode()}
    peer = tiktoken.Encoding("peer", pat_str=PRETOKENIZERS["gpt2"], mergeable_ranks=ranks, special_tokens=special)

    def expected(text: str) -> list[int]:
        names = sorted(SPECIAL, key=len, reverse=True)
        parts = regex.split(f"({'|'.join(map(regex.escape, names))})", text)
        return [i for part in parts for i in ([special[part]] if part in special else peer.encode_ordinary(part))]

    pieces = st.lists(st.one_of(ordinary_text(), st.sampled_from(SPECIAL)), max_size=6).map("".join)

    @settings(max_examples=200, deadline=None)
    @given(pieces)
    def same(text: str) -> None:
        assert tokenizer.encode(text) == expected(text)
        assert tokenizer.decode(tokenizer.encode(text)) == text

    same()
    for text in [*HOSTILE, *documents()[38:50], f"a{EOD * 3}b"]:
        assert tokenizer.encode(text) == expected(text)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(ordinary_text(), st.sampled_from([*SPECIAL, EOD[:5], EOD[5:], " ", "\n"]))), st.data())
def test_pieces_of_any_size_give_the_ids_of_the_whole(
    tokenizer: Tokenizer, parts: list[str], data: st.DataObject
) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[first:stop] for first, stop in pairwise([0, *cuts, len(text)])]
    size = cs336.ENCODE_CHARACTERS
    cs336.ENCODE_CHARACTERS = data.draw(st.integers(1, 12))
    try:
        assert list(tokenizer.encode_iterable(pieces)) == tokenizer.encode(text)
    finally:
        cs336.ENCODE_CHARACTERS = size


def test_an_endless_iterable_gives_ids_at_once(tokenizer: Tokenizer) -> None:
    def endless() -> Iterator[str]:
        while True:
            yield "some words and a line end\n"

    assert len(list(islice(tokenizer.encode_iterable(endless()), 10_000))) == 10_000


def test_files_of_gpt2s_kind(
    tokenizer: Tokenizer, trained: tuple[dict[int, bytes], list[tuple[bytes, bytes]]], tmp_path: Path
) -> None:
    vocabulary, merges = trained
    names = {EOD if content == EOD.encode() else byte_level_name(content): i for i, content in vocabulary.items()}
    (tmp_path / "vocab.json").write_text(json.dumps(names), encoding="utf-8")
    lines = ["#version: 0.2", *(f"{byte_level_name(left)} {byte_level_name(right)}" for left, right in merges)]
    (tmp_path / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    loaded = Tokenizer.from_files(tmp_path / "vocab.json", tmp_path / "merges.txt", SPECIAL)
    assert loaded.vocab == tokenizer.vocab
    assert loaded.encode(f"Some text{EOD}") == tokenizer.encode(f"Some text{EOD}")
    with pytest.raises(InputError, match="lacks the token"):
        Tokenizer({0: b"a"}, [])
