"""Our own encoder in the place of Hugging Face's library, for long texts of a BPE in SentencePiece's manner.

The library takes 50 times a text that it does not split. Here added tokens are found first (see `added_tokens`), spaces
of the text between them become U+2581, one is put before it where the file says so, and it is merged in windows (see
`merged_pieces`). Before it is used, its ids are compared with the library's on hard and on random texts.

Not for a file whose normalizer or pretokenizer does more, nor one that lacks a byte piece of a character that it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Tokenizer as Engine

from tokpack_core.bpe.regex_syntax import Unsupported
from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.tokenizers.added_tokens import added_tokens
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts, random_texts
from tokpack_core.tokenizers.byteification.token_bytes import META_SPACE, byte_piece
from tokpack_core.tokenizers.encoded import Encode, Encoded, same_ids
from tokpack_core.tokenizers.huggingface.tokenizer_json import description_of
from tokpack_core.tokenizers.library_texts import unchanged
from tokpack_core.tokenizers.sentencepiece.long_texts import one_text
from tokpack_core.tokenizers.sentencepiece.merged_pieces import Ids, MergedPieces, Merges
from tokpack_core.tokenizers.sentencepiece.normalizer import TextNormalizer
from tokpack_core.tokenizers.sentencepiece.piece_trie import byte_trie
from tokpack_core.tokenizers.sentencepiece.proto import Normalization

Prefixed = Literal["never", "always", "unless it is there"]
ESCAPES = {"type": "Replace", "pattern": {"String": " "}, "content": META_SPACE}
PREPENDS = {"type": "Prepend", "prepend": META_SPACE}
EXTRAS = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges")
PREFIX, NOTHING = pa.scalar(META_SPACE, pa.large_string()), pa.scalar("", pa.large_string())
ASCII = 0x80
SPACES = [
    *(
        " " * left + text + " " * right
        for text in ("", "a", "a  b", "\n", "你 好")
        for left in range(4)
        for right in range(3)
    ),
    *(f"{left}{META_SPACE}{right}" for left in ("", " ", "a", META_SPACE) for right in ("", " ", "b", "\n")),
]
MOST_TRIED = 1000
"""Added tokens."""
BYTES_OF_TEXT = (*range(0xC0), *range(0xC2, 0xF5))


def stock_long_encoder(engine: Engine, description: dict[str, Any]) -> Encode:
    """`description`: content of the engine's tokenizer.json. Raises Unsupported for a file that is not encoded here."""
    prefixed, by_normalizer = prefix_of(description)
    merges, byte_ids = merges_of(description["model"])
    merged = MergedPieces(merges, [], byte_ids)
    normalize = engine.normalizer.normalize_str if engine.normalizer else None
    nothing = byte_trie(pa.array([], pa.binary()), np.empty(0, np.int32))
    with_prefix, without = (
        TextNormalizer(Normalization(b"", prefix, False, True, False), nothing, 0) for prefix in (True, False)
    )

    def spaces_written(texts: pa.Array) -> pa.Array:
        if len(texts) == 1:  # a long one is copied once
            has_prefix = prefixed != "never" and (prefixed == "always" or not begins_with_space(texts)[0].as_py())
            return one_text((with_prefix if has_prefix else without)(text_buffers(texts)[0]))
        escaped = pc.replace_substring(texts.cast(pa.large_string()), " ", META_SPACE)
        if prefixed == "never":
            return escaped
        kept = (
            pc.equal(escaped, "") if prefixed == "always" else pc.or_(pc.equal(escaped, ""), begins_with_space(texts))
        )
        return pc.if_else(kept, escaped, pc.binary_join_element_wise(PREFIX, escaped, NOTHING))

    def plain(texts: pa.Array) -> Encoded:
        return merged.encode(texts if by_normalizer else spaces_written(texts))

    around = added_tokens(description["added_tokens"], normalize, spaces_written if by_normalizer else unchanged)
    if around is None:
        raise Unsupported("added tokens that look at what is beside them")
    return lambda texts: around.encode(texts, plain)


def equal_stock_long_encoder(engine: Engine, by_library: Encode) -> Encode | None:
    """An encoder that gives the library's ids on all hard texts, or None."""
    description = description_of(engine)
    try:
        encode = stock_long_encoder(engine, description)
    except Unsupported:
        return None
    return encode if same_ids(*(by(texts_to_compare(description)) for by in (encode, by_library))) else None


def texts_to_compare(description: dict[str, Any]) -> pa.Array:
    added = [token["content"] for token in description["added_tokens"]]
    mixed = random_texts()
    around = [before + token + after + token for before, token, after in zip(mixed, added, mixed[::-1], strict=False)]
    return pa.array([*hard_texts(added[:MOST_TRIED]), *mixed, *around, *SPACES], pa.string())


def begins_with_space(texts: pa.Array) -> pa.Array:
    return pc.or_(pc.starts_with(texts, " "), pc.starts_with(texts, META_SPACE))


def prefix_of(description: dict[str, Any]) -> tuple[Prefixed, bool]:
    """When U+2581 is put before text, and whether the normalizer does that and escapes spaces, or the pretokenizer."""
    normalizer, pretokenizer = description["normalizer"], description["pre_tokenizer"]
    steps = normalizer["normalizers"] if normalizer and normalizer["type"] == "Sequence" else [normalizer]
    if steps in ([ESCAPES], [PREPENDS, ESCAPES]):
        # No space is left to split at.
        splits_spaces = pretokenizer and pretokenizer["type"] == "Split" and pretokenizer["pattern"] == {"String": " "}
        if pretokenizer is None or (splits_spaces and not pretokenizer["invert"]):
            return ("always" if PREPENDS in steps else "never"), True
    elif steps in ([None], []) and pretokenizer and pretokenizer["type"] == "Metaspace" and not pretokenizer["split"]:
        scheme = pretokenizer["prepend_scheme"]
        stretches = any(not token["special"] for token in description["added_tokens"])
        if pretokenizer["replacement"] == META_SPACE and not (scheme == "first" and stretches):
            return ("never" if scheme == "never" else "unless it is there"), False
    raise Unsupported("a normalizer or a pretokenizer that does more")


def merges_of(model: dict[str, Any]) -> tuple[Merges, Ids]:
    """Its merges, and the ids of byte pieces."""
    vocabulary: dict[str, int] = model["vocab"]
    if any(model.get(extra) for extra in EXTRAS):
        raise Unsupported("a BPE with extras")
    characters = {text.encode() for text in vocabulary if len(text) == 1}
    by_byte = {byte_piece(text): token for text, token in vocabulary.items()}
    missing = [byte for byte in BYTES_OF_TEXT if bytes([byte]) not in by_byte]
    if any(byte >= ASCII or bytes([byte]) not in characters for byte in missing):
        raise Unsupported("characters without a token")
    byte_ids = np.array([by_byte.get(bytes([byte]), 0) for byte in range(256)], np.int32)
    ids = {text.encode(): token for text, token in vocabulary.items()}
    return Merges(characters, pairs(model["merges"]), ids), byte_ids


def pairs(merges: list[Any]) -> Iterator[tuple[bytes, bytes, int]]:
    """Empties the list: hundreds of thousands of small lists are let go as they are read."""
    merges.reverse()
    for rank in range(len(merges)):
        merge = merges.pop()
        left, right = merge if isinstance(merge, list) else merge.split(" ")
        if byte_piece(left) or byte_piece(right):
            raise Unsupported("byte pieces that merge")
        yield left.encode(), right.encode(), rank
