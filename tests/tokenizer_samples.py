"""Text and trained tokenizers that the tokenizer tests share; text comes from the standard library."""

from __future__ import annotations

import pydoc_data.topics
import unicodedata
from functools import cache
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa

from tokpack_core.config import Family, SpecialTokens, TrainConfig, UnicodeForm
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.protocol import Tokenizer

FAMILIES: tuple[Family, ...] = ("byte_bpe", "sentencepiece_bpe", "sentencepiece_unigram")
EOD, PAD = "<|endoftext|>", "<|pad|>"
SPECIAL_TOKENS = SpecialTokens(eod=EOD, pad=PAD)

OTHER_SCRIPTS = [
    "你好，世界！自然语言处理的分词。第１章：１２３\n",
    "Привет, мир! Ёлка и йод.\n",
    "नमस्ते दुनिया १२३४\n",
    "def f(x):\n\treturn  x + 1\n\n\nclass A:\n    pass\r\n",
    "café naïve Å ệ 한국어 ﬁ ①\n",
] * 3

HOSTILE = [
    "",
    " ",
    "\n",
    "  leading and trailing  ",
    "\tif x:\n\t\treturn 1\r\n\r\n    y = 2\n",
    f"a{EOD}b{PAD}{PAD} {EOD}",
    "<s>hi</s><unk><pad>[CLS]<0x0A><0x41>",
    "x" * 20_000,
    "a b" * 7_000,
    "🙂‍👩‍👧 🏳️‍🌈",
    "𠀀𠀁丂𪚥",
    "nul\0inside\0",
    "▁literal▁meta▁ ▁▁ ▅",
    "\ufeffmark \ufeff",
    "\u2028\u2029\u0085\x0b\x0c\x1c",
    "\ufffd\uffff\U0010ffff\ue000",
    "1234567890 ١٢٣ १२३ １２３",
    "e\u0301 \u1100\u1161\u11a8 \u212b",
]


def ordinary_text() -> st.SearchStrategy[str]:
    """Any text without surrogates, with the characters that tokenizers treat in their own ways made likely."""
    awkward = st.sampled_from(["▁", "▅", "\t", "\n", "\r", "  ", "\0", "'s", "1", "é", "\u0301", EOD, "<0x41>", "你"])
    return st.lists(st.one_of(awkward, st.text(st.characters(exclude_categories=["Cs"]), max_size=8))).map("".join)


@cache
def documents() -> list[str]:
    return [*pydoc_data.topics.topics.values(), *OTHER_SCRIPTS]


def config(family: Family, vocab_size: int = 1500, special_tokens: SpecialTokens = SPECIAL_TOKENS) -> TrainConfig:
    return TrainConfig(family=family, vocab_size=vocab_size, special_tokens=special_tokens)


def train(settings: TrainConfig, texts: list[str], unicode: UnicodeForm = "none") -> Tokenizer:
    return registry.train(settings, iter([pa.array(texts, pa.string())]), unicode)


@cache
def trained(family: Family, unicode: UnicodeForm = "none") -> Tokenizer:
    return train(config(family), documents(), unicode)


def normalized(text: str, unicode: UnicodeForm) -> str:
    if unicode == "none":
        return text
    return unicodedata.normalize("NFC" if unicode == "nfc" else "NFKC", text)


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    encoded: list[int] = tokenizer.encode(pa.array([text], pa.string())).ids.tolist()
    return encoded


def token_bytes(tokenizer: Tokenizer) -> dict[int, bytes]:
    table = tokenizer.vocabulary()
    return dict(zip(table["id"].to_pylist(), table["token"].to_pylist(), strict=True))


def saved_files(tokenizer: Tokenizer, folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    tokenizer.save(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}
