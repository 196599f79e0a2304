"""The model of a tokenizer.json as our encoder takes it: a BPE over bytes, which the file writes in its alphabet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tokpack_core.tokenizers.byteification.token_bytes import BYTE_TO_CHARACTER, byte_level_bytes, byte_level_tokens

if TYPE_CHECKING:
    from tokpack_core.bpe.encoder import BpeModel

EXTRAS = ("dropout", "continuing_subword_prefix", "end_of_word_suffix")
BYTES_OF_TEXT = (*range(0xC0), *range(0xC2, 0xF5))
"""Those that UTF-8 has: an alphabet learned from text has no others."""
SPACE = BYTE_TO_CHARACTER[ord(" ")]


def plain_byte_bpe(model: dict[str, Any]) -> bool:
    return (
        model["type"] == "BPE"
        and not any(model.get(extra) for extra in EXTRAS)
        and not model.get("fuse_unk")
        and (
            model.get("unk_token") in model["vocab"]
            or all(BYTE_TO_CHARACTER[byte] in model["vocab"] for byte in BYTES_OF_TEXT)
        )
    )


def bpe_model(model: dict[str, Any]) -> BpeModel:
    from tokpack_core.bpe.encoder import BpeModel

    ids: dict[str, int] = model["vocab"]
    pairs = [merge if isinstance(merge, list) else merge.split(" ") for merge in model["merges"]]
    firsts, seconds = [first for first, _ in pairs], [second for _, second in pairs]
    left, right, token = (
        np.fromiter(map(ids.__getitem__, names), np.int32, len(pairs))
        for names in (firsts, seconds, map(add, firsts, seconds))
    )
    unknown = ids.get(model.get("unk_token") or "", -1)
    whole = spelled_tokens(ids) if model.get("ignore_merges") else ()
    return BpeModel(
        np.array([ids.get(BYTE_TO_CHARACTER[byte], unknown) for byte in range(256)], np.int32),
        left,
        right,
        token,
        np.arange(left.size, dtype=np.int32),
        tuple((token, token_id) for token, token_id in whole if token),
    )


def spelled_tokens(ids: dict[str, int]) -> Iterator[tuple[bytes, int]]:
    """Bytes and id of the tokens that are written in the byte-level alphabet."""
    tokens = byte_level_tokens(pa.array(list(ids), pa.string())).to_pylist()
    return ((token, token_id) for token, token_id in zip(tokens, ids.values(), strict=True) if token is not None)


def go_across_words(names: Iterable[str]) -> bool:
    """Whether one of these tokens has a space between what is no white space."""
    with_space = (byte_level_bytes(name) for name in names if name.find(SPACE, 1) > 0)
    return any(token is not None and " " in token.decode(errors="replace").strip() for token in with_space)
