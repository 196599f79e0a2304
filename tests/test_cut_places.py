"""Long texts for Hugging Face's library are cut only where the parts have the ids of the whole."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, normalizers, trainers
from tokenizers import pre_tokenizers as steps

from tests.tokenizer_samples import documents, ordinary_text
from tokpack_core.tokenizers import long_documents
from tokpack_core.tokenizers.encoded import from_lists
from tokpack_core.tokenizers.encoding_errors import EncodingError
from tokpack_core.tokenizers.huggingface.cut_places import cut_place
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer, ids_of
from tokpack_core.tokenizers.huggingface.tokenizer_json import description_of
from tokpack_core.tokenizers.long_documents import encode_bounded, in_parts
from tokpack_core.tokenizers.metadata import Metadata

NFKC_OF_SENTENCEPIECE = normalizers.Sequence(
    [
        normalizers.Nmt(),
        normalizers.NFKC(),
        normalizers.Strip(left=False, right=True),
        normalizers.Replace(Regex(" {2,}"), "\u2581"),
    ]
)
CUT: dict[str, tuple[Any, Any]] = {
    "whitespace": (None, steps.Whitespace()),
    "whitespace split": (normalizers.Lowercase(), steps.WhitespaceSplit()),
    "bert": (normalizers.BertNormalizer(), steps.BertPreTokenizer()),
    "metaspace": (NFKC_OF_SENTENCEPIECE, steps.Metaspace()),
    "metaspace first": (None, steps.Metaspace(prepend_scheme="first")),
    "metaspace replaced": (normalizers.Replace(" ", "\u2581"), steps.Metaspace(prepend_scheme="never")),
    "t5": (None, steps.Sequence([steps.WhitespaceSplit(), steps.Metaspace()])),
    "digits": (
        normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
        steps.Sequence([steps.Digits(), steps.Punctuation("removed"), steps.Whitespace()]),
    ),
    "delimiter": (normalizers.Replace("``", '"'), steps.CharDelimiterSplit(" ")),
    "spaces alone": (None, steps.Split(" ", "isolated")),
    "spaces before": (
        None,
        steps.Sequence([steps.Digits(True), steps.Split(" ", "merged_with_next")]),
    ),
    "white space": (normalizers.Replace(Regex(r"\s+"), " "), steps.Split(Regex(r"\s+"), "contiguous")),
    "lines": (None, steps.Split("\n", "removed")),
    "bytes": (normalizers.NFC(), steps.ByteLevel(add_prefix_space=True)),
    "bytes of words": (None, steps.Sequence([steps.WhitespaceSplit(), steps.ByteLevel(use_regex=False)])),
}
WHOLE: dict[str, tuple[Any, Any]] = {
    "nothing splits": (None, None),
    "scripts": (None, steps.UnicodeScripts()),
    "one word": (None, steps.Metaspace(split=False)),
    "spaces behind": (None, steps.Split(" ", "merged_with_previous")),
    "a regex": (None, steps.Split(Regex(r"\w+ \w+"), "isolated")),
    "what begins a text": (normalizers.Prepend("x"), steps.Whitespace()),
    "both ends": (normalizers.Strip(), steps.Metaspace()),
    "a string with a space": (normalizers.Replace("a b", "ab"), steps.Whitespace()),
    "spaces become letters": (normalizers.Replace(" ", "x"), steps.Whitespace()),
    "bytes without words": (None, steps.ByteLevel(use_regex=False)),
}


def tokenizer(normalizer: Any, pretokenizer: Any, model: str = "bpe") -> Tokenizer:
    if model == "unigram":
        pieces = [
            ("<unk>", 0.0),
            *(
                (piece, -2.0 - number / 8)
                for number, piece in enumerate(["\u2581", *"abetcd ", "the", "\u2581the", "e\u2581"])
            ),
        ]
        engine = Tokenizer(models.Unigram(pieces, unk_id=0))
    else:
        learned = Tokenizer(models.BPE(unk_token="<unk>"))
        learned.pre_tokenizer = pretokenizer
        learned.train_from_iterator(
            [text[:2000] for text in documents()[::6]],
            trainers.BpeTrainer(vocab_size=400, special_tokens=["<unk>"], show_progress=False),
        )
        engine = learned
    if normalizer is not None:
        engine.normalizer = normalizer
    if pretokenizer is not None:
        engine.pre_tokenizer = pretokenizer
    engine.add_tokens(["<tab>", "``x"])
    engine.encode_special_tokens = True
    return engine


@pytest.mark.parametrize("model", ["bpe", "unigram"])
@pytest.mark.parametrize("kind", CUT)
def test_parts_have_the_ids_of_the_whole(kind: str, model: str) -> None:
    engine = tokenizer(*CUT[kind], model)
    place = cut_place(engine, description_of(engine))
    assert place is not None
    assert len(in_parts(pa.array(["some words.\n" * 9]), place, 10)[0]) > 2
    awkward = st.sampled_from(
        [" ", "  ", "\n", "\t", "\u0301", "``", "``x", "<tab>", "the", "1", "!", "\u3000", "'s", "."]
    )

    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.one_of(awkward, ordinary_text())).map("".join), st.integers(0, 6))
    def same(text: str, length: int) -> None:
        parts = in_parts(pa.array([text], pa.string()), place, length)[0].to_pylist()
        assert [token for ids in ids_of(engine, parts) for token in ids] == ids_of(engine, [text])[0]

    same()


@pytest.mark.parametrize("kind", WHOLE)
def test_what_is_not_known_is_not_cut(kind: str) -> None:
    engine = tokenizer(*WHOLE[kind], "unigram")
    assert cut_place(engine, description_of(engine)) is None


@pytest.mark.parametrize("added", [{"content": "a b"}, {"lstrip": True}, {"rstrip": True}])
def test_added_tokens_that_hold_white_space(added: dict[str, Any]) -> None:
    content = json.loads(tokenizer(None, steps.Whitespace()).to_str())
    content["added_tokens"][-1] |= added
    engine = Tokenizer.from_str(json.dumps(content))
    assert cut_place(engine, description_of(engine)) is None


def test_a_tokenizer_cuts_long_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tokenizer(*CUT["metaspace"], "unigram")
    loaded = HuggingFaceTokenizer(engine, Metadata("pretrained", "none", {}, {}, {}), "a file")
    text = "the cat, the \u00e9t\u00e9. " * 90_000
    expected = ids_of(engine, [text])[0]
    sizes: list[int] = []
    monkeypatch.setattr(
        "tokpack_core.tokenizers.huggingface.model.ids_of",
        lambda own, texts: sizes.append(sum(map(len, texts))) or ids_of(own, texts),
    )
    assert loaded._encode_by_library(pa.array([text])).ids.tolist() == expected
    assert max(sizes) < 1 << 20


def test_a_document_that_memory_is_too_short_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_documents, "UNCHECKED", 100)
    monkeypatch.setattr(long_documents, "available_bytes", lambda: 70 * 150)

    def encode(batch: pa.Array) -> Any:
        return from_lists([[len(text)] for text in batch.to_pylist()])

    texts = pa.array(["a" * 149, "b"])
    assert encode_bounded(encode, texts, None, limit=60).ids.tolist() == [149, 1]
    with pytest.raises(EncodingError, match=r"begins 'a{40}'.*are free.*--max-document-bytes\) to 150 and"):
        encode_bounded(encode, pa.array(["a" * 151]), None, limit=60)
    monkeypatch.setattr(long_documents, "available_bytes", lambda: None)
    assert encode_bounded(encode, pa.array(["a" * 151]), None, limit=60).ids.tolist() == [151]
