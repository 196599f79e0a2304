"""SentencePiece: no text is lost in training, any text survives encoding, and the library agrees."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.tokenizer_samples import (
    EOD,
    FAMILIES,
    HOSTILE,
    PAD,
    config,
    documents,
    ids,
    ordinary_text,
    saved_files,
    token_bytes,
    train,
    trained,
)
from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.config import Family, SpecialTokens, TrainConfig, UnicodeForm
from tokpack_core.corpus.text_buffers import read_only
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.sentencepiece.proto import as_published, fields, varint
from tokpack_core.tokenizers.sentencepiece.seed_pieces import seed_pieces
from tokpack_core.tokenizers.sentencepiece.words import LONGEST, SeenText, count_words

SENTENCEPIECE_FAMILIES = FAMILIES[1:]


def library(tokenizer_folder: Path) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_file=str(tokenizer_folder / "tokenizer.model"))


def pieces(family: Family, texts: list[str]) -> set[str]:
    """Pieces of a vocabulary trained on the texts and some English, in which every character has a piece."""
    settings_ = TrainConfig(family=family, vocab_size=1000, character_coverage=1.0)
    tokenizer = train(settings_, [*texts, *documents()[:20]])
    return {token.decode("utf-8", "replace") for token in token_bytes(tokenizer).values()}


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
def test_special_tokens_come_first_and_unk_is_always_there(family: Family) -> None:
    tokenizer = trained(family)
    assert tokenizer.special_tokens == {"eod": 0, "pad": 1, "unk": 2}
    tokens = token_bytes(tokenizer)
    assert [tokens[id_] for id_ in range(3)] == [EOD.encode(), PAD.encode(), b"<unk>"]
    assert [tokens[id_] for id_ in range(3, 259)] == [bytes([byte]) for byte in range(256)]
    table = tokenizer.vocabulary()
    assert table["byte_fallback"].to_pylist() == [False] * 3 + [True] * 256 + [False] * (1500 - 259)
    assert table["special"].to_pylist() == [True] * 3 + [False] * 1497
    assert tokenizer.vocab_size == 1500


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
def test_ids_and_text_are_those_of_the_library(family: Family, tmp_path: Path) -> None:
    tokenizer = trained(family, "nfc")
    tokenizer.save(tmp_path)
    peer = library(tmp_path)
    assert (peer.eos_id(), peer.pad_id(), peer.unk_id(), peer.bos_id()) == (0, 1, 2, -1)
    assert peer.id_to_piece(0) == EOD
    for text in [*HOSTILE, *documents()[:30]]:
        text = unicodedata.normalize("NFC", text)
        if "▁" not in text:
            assert peer.encode(text) == ids(tokenizer, text)
        assert peer.decode(ids(tokenizer, text)) == text


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
def test_a_literal_meta_space_is_three_byte_pieces(family: Family) -> None:
    tokenizer = trained(family)
    between = [3 + 0xE2, 3 + 0x96, 3 + 0x81]
    assert ids(tokenizer, "one▁▁ two") == ids(tokenizer, "one") + between * 2 + ids(tokenizer, " two")
    assert ids(tokenizer, "one two") != ids(tokenizer, "one▁two")


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
def test_long_lines_are_learned_from_and_not_skipped(family: Family) -> None:
    """The Greek letters occur only in one line of 60,000 characters without a space, far beyond the library's limit."""
    long_line = "αβγδ" * 15_000
    assert {"α", "β", "γ", "δ"} <= pieces(family, [long_line])


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
def test_documents_with_reserved_characters_are_learned_from(family: Family) -> None:
    learned = pieces(family, ["αα\0ββ▅γγ▁δδ\n"])
    assert {"α", "β", "γ", "δ"} <= learned
    assert not {"▅", "▁"} & learned


def test_reserved_characters_are_counted_and_no_byte_is_dropped() -> None:
    settings_ = TrainConfig(family="sentencepiece_bpe", vocab_size=261)
    training = train(settings_, ["ab ▅▁\0 ab", "", "é" * 5000]).training
    assert training["reserved_characters"] == 3
    assert training["bytes_dropped"] == 0
    assert training["documents"] == 3
    assert training["bytes"] == len(b"ab  ab") + 3 + 3 + 1 + 10_000
    assert training["different_words"] == len(["ab", " ", " ab", "é" * 2048, "é" * 904])


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
def test_line_ends_at_the_end_of_documents_are_learned(family: Family) -> None:
    assert "\n\n\n" in pieces(family, ["字\n\n\n"] * 5000)


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
def test_digits_of_every_script_stand_alone(family: Family) -> None:
    learned = pieces(family, ["2024 year 2024 १२३४वर्ष १२३४ ٢٠٢٤ ２０２４\n"] * 500)
    assert {"2", "१", "٢", "２"} <= learned
    digits = [token for token in learned if re.search(r"\d", token)]
    assert all(len(token) == 1 for token in digits)


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
def test_indentation_is_learned(family: Family) -> None:
    learned = pieces(family, ["def f():\n    return 1\n\n\nclass A:\n    x = 2\n"] * 500)
    assert [token for token in learned if len(token) > 2 and not token.strip(" ")]


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
def test_two_trainings_give_the_same_bytes(family: Family, tmp_path: Path) -> None:
    one, other = (
        saved_files(train(config(family), documents(), "nfc"), tmp_path / name) for name in ("first", "second")
    )
    assert one == other
    assert sorted(one) == ["tokenizer.model", "tokenizer_config.json"]


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
def test_no_path_stands_in_the_model(family: Family, tmp_path: Path) -> None:
    model = saved_files(trained(family, "nfc"), tmp_path / "saved")["tokenizer.model"]
    assert b".tsv" not in model
    assert b"/tmp" not in model


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
def test_a_vocabulary_too_large_or_too_small_is_refused_with_the_limit(family: Family) -> None:
    for wanted in (50_000, 262):
        with pytest.raises(InputError, match=f"`vocab_size` {wanted} is") as refused:
            train(config(family, wanted), ["some words and other words of text"] * 9)
        limit = int(re.findall(r"(?:to|at) (\d+)", str(refused.value))[-1])
        tokenizer = train(config(family, limit), ["some words and other words of text"] * 9)
        assert tokenizer.vocab_size == limit


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
@pytest.mark.parametrize("texts", [[], ["", ""]])
def test_an_empty_corpus_is_refused(family: Family, texts: list[str]) -> None:
    with pytest.raises(InputError, match="no text"):
        train(config(family, 400), texts)


@pytest.mark.parametrize("family", [*SENTENCEPIECE_FAMILIES, "modular_unigram"])
def test_a_coverage_that_the_library_refuses_is_one_sentence(family: Family) -> None:
    with pytest.raises(ValidationError, match=r"raise it to 0\.98"):
        TrainConfig(family=family, vocab_size=400, character_coverage=0.97)
    assert TrainConfig(family=family, vocab_size=400, character_coverage=0.98).character_coverage == 0.98


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
def test_an_error_of_the_source_is_not_swallowed(family: Family) -> None:
    def broken() -> Iterator[pa.Array]:
        yield pa.array(documents())
        raise InputError("line 7 is broken")

    with pytest.raises(InputError, match="line 7 is broken"):
        registry.train(config(family), broken(), "none")


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
@pytest.mark.parametrize("text", ["the", "</s>", "<|end, of text|>", "<文>"])
def test_special_tokens_never_come_from_text(family: Family, text: str) -> None:
    tokenizer = train(config(family, 400, SpecialTokens(eod=text)), documents()[:5] + [f"{text} {text}"] * 50)
    encoded = ids(tokenizer, f"{text} x {text}{text}")
    assert 0 not in encoded
    assert token_bytes(tokenizer)[0] == text.encode()


@pytest.mark.parametrize("family", [*SENTENCEPIECE_FAMILIES, "modular_unigram"])
@pytest.mark.parametrize("text", ["<a\0b>", "<0x41>"])
def test_a_special_token_that_the_library_cannot_take_is_named(family: Family, text: str) -> None:
    for role in ("eod", "image"):
        tokens = SpecialTokens.model_validate({"eod": EOD} | {role: text})
        with pytest.raises(ValueError, match=re.escape(f"the special token {text!r} ({role}) ")):
            TrainConfig(family=family, vocab_size=400, special_tokens=tokens)


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
@pytest.mark.parametrize("text", ["<\t>", "<\n>", "\u2581", "<\u2585>", "<\x1f>", "\ue000\ue001", "<0x4a>", " <a,b> "])
def test_a_special_token_of_characters_that_mean_something_to_the_library(family: Family, text: str) -> None:
    config = TrainConfig(family=family, vocab_size=400, special_tokens=SpecialTokens(eod=EOD, image=text))
    tokenizer = registry.train(config, iter([pa.array(documents()[:5])]), "none")
    token = tokenizer.special_tokens["image"]
    assert tokenizer.vocabulary()["token"][token].as_py() == text.encode()
    assert token not in ids(tokenizer, f"x{text} {text}\n")


def test_a_special_token_that_is_the_default_unk_is_refused() -> None:
    with pytest.raises(InputError, match="own unk"):
        train(config("sentencepiece_bpe", 400, SpecialTokens(eod="<unk>")), ["text"])


def words(texts: list[str]) -> dict[str, int]:
    counted = count_words(iter([pa.array(texts, pa.string())]), SeenText()).counted
    data, offsets = counted.data.tobytes(), counted.offsets.tolist()
    found = [data[start:stop].decode() for start, stop in pairwise(offsets)]
    assert found == sorted(found, key=str.encode)
    return dict(zip(found, counted.counts.tolist(), strict=True))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(["a", " ", "   ", "\n", "\n\n", "你" * 700, "word " * 300, "\t" * 2100, "e\u0301", "7"]))
)
def test_words_lose_nothing_and_are_short(parts: list[str]) -> None:
    text = "".join(parts)
    found = words([text])
    assert sum(len(word.encode()) * count for word, count in found.items()) == len(text.encode())
    assert all(0 < len(word) <= LONGEST for word in found)


def test_words_end_where_no_piece_can_cross() -> None:
    assert words(["the cat  sat, the"]) == {"the": 1, " cat": 1, "  sat": 1, ",": 1, " the": 1}
    assert words(["x = 12\n\ty"]) == {"x": 1, " =": 1, " ": 1, "1": 1, "2": 1, "\n\t": 1, "y": 1}
    assert words(["你好，ワールドのカーpiа"]) == {"你好": 1, "，": 1, "ワールドのカー": 1, "pi": 1, "а": 1}
    assert words(["ne\u0301e १२३"]) == {"ne\u0301e": 1, " ": 1, "१": 1, "२": 1, "३": 1}
    assert words(["a▁b▅c\0d"]) == {"a": 1, "b": 1, "c": 1, "d": 1}


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
def test_the_order_of_documents_does_not_matter(family: Family, tmp_path: Path) -> None:
    forth, back = (
        saved_files(train(config(family, 700), texts, "nfc"), tmp_path / name)
        for name, texts in (("forth", documents()[:40]), ("back", documents()[:40][::-1]))
    )
    assert forth == back


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
def test_compression_is_no_worse_than_that_of_plain_training(family: Family, tmp_path: Path) -> None:
    """Held-out text has at most 1 % more tokens than with the library's own training on whole documents."""
    train_texts, held_out = documents()[::2], documents()[1::2]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(train_texts),
        model_prefix=str(tmp_path / "plain"),
        model_type=family.removeprefix("sentencepiece_"),
        vocab_size=1500,
        byte_fallback=True,
        split_digits=True,
        allow_whitespace_only_pieces=True,
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
        normalization_rule_name="identity",
        max_sentence_length=100_000,
        minloglevel=2,
    )
    plain = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "plain.model"))
    ours = train(config(family), train_texts)
    theirs = sum(map(len, plain.encode(held_out)))
    assert ours.encode(pa.array(held_out, pa.string())).ids.size <= 1.01 * theirs


def brute_force_seeds(counts: dict[str, int], covered_text: str) -> dict[str, int]:
    occurrences: Counter[str] = Counter()
    followed: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for word, count in counts.items():
        for start in range(len(word)):
            for stop in range(start + 1, min(start + 16, len(word)) + 1):
                part = word[start:stop]
                one_space = " " not in part[1:] or not part.strip(" ")
                if not one_space or not set(part) <= set(covered_text):
                    break
                occurrences[part] += count
                goes_on = word[start : stop + 1]
                allowed = set(goes_on) <= set(covered_text) and (" " not in goes_on[1:] or not goes_on.strip(" "))
                after = word[stop] if stop < len(word) and allowed and stop - start < 16 else f"end {start} {word}"
                followed[part][after] += count
    return {
        part: total
        for part, total in occurrences.items()
        if (len(part) > 1 and total > 1 and max(followed[part].values()) < total) or is_end(followed[part], part, total)
    }


def is_end(followed: Counter[str], part: str, total: int) -> bool:
    """Whether all that follows is the end of a word: such a substring is not part of a longer one."""
    return len(part) > 1 and total > 1 and all(after.startswith("end ") for after in followed)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.from_regex(r" {0,3}[abé]{1,18}", fullmatch=True), st.integers(1, 5), min_size=1, max_size=8))
def test_seed_pieces_are_those_of_counting_every_substring(counts: dict[str, int]) -> None:
    encoded = [word.encode() for word in counts]
    offsets = np.cumsum([0, *map(len, encoded)])
    weights = np.array(list(counts.values()), np.int64)
    data = read_only(np.frombuffer(b"".join(encoded), np.uint8))
    known = np.zeros(0x110000, bool)
    known[[ord(character) for character in " ab"]] = True
    found = seed_pieces(PretokenCounts(data, offsets, weights), known)
    assert dict(zip(found.pieces, found.counts.tolist(), strict=True)) == brute_force_seeds(counts, " ab")
    scores = [len(piece) * count for piece, count in zip(found.pieces, found.counts.tolist(), strict=True)]
    assert scores == sorted(scores, reverse=True)


@settings(max_examples=60, deadline=None)
@given(ordinary_text())
def test_encoding_in_parts_equals_the_library_wherever_it_is_lossless(text: str) -> None:
    tokenizer = trained("sentencepiece_bpe")
    parts = [ids(tokenizer, part) for part in text.split("▁")]
    expected = parts[0]
    for part in parts[1:]:
        expected = [*expected, 3 + 0xE2, 3 + 0x96, 3 + 0x81, *part]
    assert ids(tokenizer, text) == expected


def test_what_only_training_needed_is_removed_from_a_model() -> None:
    def field(number: int, value: bytes) -> bytes:
        return varint(number << 3 | 2) + varint(len(value)) + value

    spec = field(1, b"user_defined") + varint(3 << 3) + b"\0" + field(2, b"x" * 300)
    trained_as = field(2, b"") + varint(4 << 3) + b"\x07"
    score = varint(2 << 3 | 5) + b"\0\0\0\0"

    def model(piece: str, in_trainer: bytes, in_normalizer: bytes) -> bytes:
        parts = (field(1, piece.encode()) + score, trained_as + in_trainer, spec + in_normalizer)
        return b"".join(field(number, part) for number, part in enumerate(parts, 1)) + b"\x2d\0\0\0\0"

    raw = model("\ue000x\ue001", field(7, b"tsv") + field(54, b"/tmp/seeds.tsv"), field(6, b"/tmp/rules.tsv"))
    assert as_published(raw, {"\ue000": "\t", "\ue001": "\n"}) == model("\tx\n", b"", b"")
    assert [number for number, *_ in fields(raw)] == [1, 2, 3, 5]
    with pytest.raises(ValueError, match="cut"):
        as_published(raw[:-1], {})


@pytest.mark.parametrize("family", SENTENCEPIECE_FAMILIES)
@pytest.mark.parametrize("form", ["none", "nfc", "nfkc"])
def test_boundaries_teach_no_character(family: Family, form: UnicodeForm) -> None:
    """Neither a reserved character nor what stands for it in training is in a piece, and no piece crosses it."""
    settings_ = TrainConfig(family=family, vocab_size=700, character_coverage=1.0)
    tokenizer = train(settings_, [*["字▁词▅句\0章\n"] * 400, *documents()[:10]], form)
    learned = [token.decode("utf-8", "replace") for id_, token in token_bytes(tokenizer).items() if id_ >= 257]
    assert [token for token in learned if set("字词句章\0▅▁") & set(token.strip("\n"))] == [
        token for token in learned if token.strip("\n") in ("字", "词", "句", "章")
    ]
    assert {"字", "词", "句", "章"} <= set(learned)
