"""The family `minimum_cost`: the vocabulary of any byte-level tokenizer, encoded in the fewest tokens.

All ids mean what they meant; only which of them a text gives is another matter. Text is split as the base splits it: a
tokenizer of words by its regex, one of superwords where no superword can reach over. Saved as a stock tokenizer.json
(see `minimum_cost_model`); that of a base with a tokenizer.json keeps its normalizer, added tokens and post-processor.
A SentencePiece model becomes a Unigram one of equal scores, which the library encodes so too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from tokenizers import Tokenizer as Engine

from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byteification.token_bytes import BYTE_TO_CHARACTER, byte_level_name
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.huggingface.run_regex import run_splits
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.minimum_cost.model import EACH, minimum_cost_engine, unigram_entries
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer
from tokpack_core.tokenizers.sentencepiece.proto import with_equal_scores
from tokpack_core.tokenizers.superwords.model import SuperwordTokenizer
from tokpack_core.tokenizers.tiktoken.ranks import TiktokenTokenizer

FAMILY = "minimum_cost"


def fewest_tokens_of(base: Tokenizer) -> HuggingFaceTokenizer | SentencePieceTokenizer:
    """Raises InputError for a base whose entries are not bytes, lack some byte, or have no stock pretokenizer."""
    if isinstance(base, SentencePieceTokenizer):
        metadata = replace(base.metadata, family=FAMILY, ids={})
        return SentencePieceTokenizer(
            with_equal_scores(base.model, EACH), metadata, "the tokenizer of the fewest tokens"
        )
    if isinstance(base, HuggingFaceTokenizer):
        return with_another_model(base)
    if isinstance(base, TiktokenTokenizer):
        splits = base.splits
    elif isinstance(base, SuperwordTokenizer):
        model = base.model
        splits = run_splits(model.splits, model.letters) if model.superwords.size else model.splits
    else:
        why = "its residues have no entry" if base.family == "litetoken" else "its entries are not bytes of text"
        raise refused(base.family, why)
    rows = base.vocabulary().to_pylist()
    if [row["id"] for row in rows] != list(range(base.vocab_size)):
        raise refused(base.family, "its ids have holes")
    names = [row["token"].decode() if row["special"] else byte_level_name(row["token"]) for row in rows]
    special = [row["token"].decode() for row in rows if row["special"]]
    strings = {role: names[token] for role, token in base.special_tokens.items()}
    engine = minimum_cost_engine(names, special, splits, base.unicode)
    metadata = Metadata(FAMILY, base.unicode, strings, {}, dict(base.training))
    return HuggingFaceTokenizer(engine, metadata, "the tokenizer of the fewest tokens")


def with_another_model(base: HuggingFaceTokenizer) -> HuggingFaceTokenizer:
    content, metadata, _ = base.parts()
    model = content["model"]
    if (content["decoder"] or {}).get("type") != "ByteLevel" or model["type"] not in ("BPE", "Unigram"):
        raise refused(base.family, "its entries are not bytes of text")
    names = names_by_id(model["vocab"], base.family)
    special = frozenset(token["content"] for token in content["added_tokens"] if token["special"])
    content["model"] = {
        "type": "Unigram",
        "unk_id": None,
        "vocab": unigram_entries(names, special),
        "byte_fallback": False,
    }
    engine = Engine.from_str(json.dumps(content, ensure_ascii=False))
    return HuggingFaceTokenizer(engine, replace(metadata, family=FAMILY, ids={}), "the tokenizer of the fewest tokens")


def names_by_id(vocabulary: dict[str, int] | list[list[object]], family: str) -> Sequence[str]:
    if isinstance(vocabulary, list):
        return [str(name) for name, _ in vocabulary]
    names = sorted(vocabulary, key=vocabulary.__getitem__)
    if [vocabulary[name] for name in names] != list(range(len(names))):
        raise refused(family, "its ids have holes")
    missing = [byte for byte, character in BYTE_TO_CHARACTER.items() if character not in vocabulary]
    if missing:
        raise refused(family, f"it has no entry for byte 0x{missing[0]:02X}")
    return names


def refused(family: str, why: str) -> InputError:
    return InputError(
        f"a tokenizer of family {family} cannot be encoded in the fewest tokens, since {why}: give one whose "
        "vocabulary is byte-level, such as byte_bpe"
    )
