"""What the entries of a tokenizer.json stand for, and its content parted from its model."""

import orjson
import pyarrow as pa
import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

from tokpack_core.tokenizers.huggingface.tokenizer_json import (
    description_and_model,
    description_of,
    steps_before_model,
    with_model,
)
from tokpack_core.tokenizers.huggingface.vocabulary import vocabulary_of

EOD = "<|end|>"


def rows(table: pa.Table) -> list[tuple[int, bytes, bool, bool]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def added_to(model: models.Model, *tokens: AddedToken) -> Tokenizer:
    engine = Tokenizer(model)
    engine.add_tokens(list(tokens))
    return engine


def test_a_byte_level_vocabulary_is_bytes_and_what_is_not_of_its_alphabet_stands_for_itself() -> None:
    entries = {"<0x41>": 0, "Ġthe": 1, "ä½ł": 2, "你": 3, EOD: 4}
    engine = added_to(models.BPE(entries, []), AddedToken(EOD, special=True), AddedToken("ĠĠ", special=False))
    assert rows(vocabulary_of(engine, True, "")) == [
        (0, b"<0x41>", False, False),
        (1, b" the", False, False),
        (2, "你".encode(), False, False),
        (3, "你".encode(), False, False),
        (4, EOD.encode(), True, False),
        (5, "ĠĠ".encode(), False, False),
    ]


def test_byte_pieces_are_bytes_and_u2581_is_a_space_in_added_tokens_that_are_not_special_too() -> None:
    entries = {"<0x0A>": 2, "\u2581a\u2581": 0, "<0x0a>b": 1, "<0xff>": 3}
    tokens = AddedToken("\u2581\u2581", special=False), AddedToken("\u2581<s>", special=True)
    engine = added_to(models.BPE(entries, []), *tokens)
    assert rows(vocabulary_of(engine, False, "")) == [
        (0, b" a ", False, False),
        (1, b"<0x0a>b", False, False),
        (2, b"\n", False, True),
        (3, b"\xff", False, True),
        (4, b"  ", False, False),
        (5, "\u2581<s>".encode(), True, False),
    ]


def test_the_prefix_that_continues_a_word_is_no_text() -> None:
    engine = Tokenizer(models.WordPiece({"[UNK]": 0, "##ing": 1, "é##": 2, "##": 3}, unk_token="[UNK]"))
    assert [token for _, token, _, _ in rows(vocabulary_of(engine, False, "##"))] == [
        b"[UNK]",
        b"ing",
        "é##".encode(),
        b"",
    ]


@pytest.mark.parametrize("replaced", ['x","model":{"y', ',"model":'])
def test_a_file_is_parted_from_its_model_and_put_together_again(replaced: str) -> None:
    engine = added_to(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]), AddedToken(replaced, special=True))
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    engine.normalizer = normalizers.Replace(replaced, '"model"')
    description, model = description_and_model(engine)
    whole = description_of(engine)
    assert orjson.loads(with_model(description, model)) == whole
    assert orjson.loads(model) == whole.pop("model")
    assert description == whole
    assert steps_before_model(engine) == {name: whole[name] for name in ("normalizer", "pre_tokenizer", "added_tokens")}
