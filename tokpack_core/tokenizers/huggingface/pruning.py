"""Pruning of a tokenizer.json: entries, merges, added tokens and the ids inside the post-processor, all renumbered."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tokenizers import Tokenizer as Engine

from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byteification.token_bytes import byte_piece
from tokpack_core.tokenizers.huggingface.model import MERGES_SCHEMA, HuggingFaceTokenizer
from tokpack_core.tokenizers.metadata import kept_languages


def prune_huggingface(
    tokenizer: HuggingFaceTokenizer, wanted: NDArray[np.bool_]
) -> tuple[HuggingFaceTokenizer, NDArray[np.bool_]]:
    """The tokenizer and what it keeps, bool [vocab_size]: `wanted` and all that is needed for it."""
    content, metadata, merges = tokenizer.parts()
    model = content["model"]
    kept = wanted.copy()
    kept[[token["id"] for token in content["added_tokens"]]] = True
    if model["type"] == "BPE":
        prune_bpe(model, kept)
    elif model["type"] == "Unigram":
        prune_unigram(model, kept)
    else:
        raise InputError(f"a {model['type']} model cannot be pruned: give one of BPE or Unigram")
    new_ids = np.cumsum(kept) - 1
    for token in content["added_tokens"]:
        token["id"] = int(new_ids[token["id"]])
    content["post_processor"] = renumbered(content["post_processor"], new_ids)
    settings = dict(metadata.settings) | {"vocab_size": int(kept.sum())}
    engine = Engine.from_str(json.dumps(content, ensure_ascii=False))
    languages = kept_languages(metadata.languages, kept)
    metadata = replace(metadata, settings=settings, ids={}, languages=languages)
    pruned = HuggingFaceTokenizer(engine, metadata, "the pruned tokenizer")
    return pruned.with_merges(pruned_merges(merges, kept, new_ids)), kept


def prune_bpe(model: dict[str, Any], kept: NDArray[np.bool_]) -> None:
    """Extends `kept` by what its entries are made of, and leaves the model with these."""
    ids: dict[str, int] = model["vocab"]
    prefix = model.get("continuing_subword_prefix") or ""
    pairs = [merge if isinstance(merge, list) else merge.split(" ") for merge in model["merges"]]
    rows = [(ids[left], ids[right], ids[left + right.removeprefix(prefix)]) for left, right in pairs]
    left, right, product = np.array(rows, np.int64).reshape(-1, 3).T
    single = np.ones(len(kept), bool)
    single[product] = False
    kept |= single & in_model(ids, len(kept)) & whole_words(ids, len(kept), bool(model.get("ignore_merges")))
    before = -1
    while before != (before := int(kept.sum())):
        needed = kept[product]
        kept[left[needed]] = True
        kept[right[needed]] = True
    stay = kept[left] & kept[right] & kept[product]
    model["merges"] = [pairs[row] for row in np.flatnonzero(stay)]
    new_ids = np.cumsum(kept) - 1
    model["vocab"] = {token: int(new_ids[number]) for token, number in ids.items() if kept[number]}


def in_model(ids: dict[str, int], size: int) -> NDArray[np.bool_]:
    found = np.zeros(size, bool)
    found[list(ids.values())] = True
    return found


def whole_words(ids: dict[str, int], size: int, ignore_merges: bool) -> NDArray[np.bool_]:
    """Entries that no merge makes and that must stay: all of them, but with `ignore_merges` those of one character."""
    must = np.ones(size, bool)
    if ignore_merges:
        must[[number for token, number in ids.items() if len(token) > 1 and byte_piece(token) is None]] = False
    return must


def prune_unigram(model: dict[str, Any], kept: NDArray[np.bool_]) -> None:
    pieces = model["vocab"]
    must = [len(piece) == 1 or byte_piece(piece) is not None for piece, _ in pieces]
    kept[: len(pieces)] |= np.array(must, bool)
    if model["unk_id"] is not None:
        kept[model["unk_id"]] = True
        model["unk_id"] = int(kept[: model["unk_id"]].sum())
    model["vocab"] = [piece for piece, stays in zip(pieces, kept, strict=False) if stays]


def renumbered(part: Any, new_ids: NDArray[np.int64]) -> Any:
    """A post-processor with new ids: they stand in lists called `ids`, or behind their token in a pair."""
    if isinstance(part, dict):
        return {
            name: [int(new_ids[number]) for number in value]
            if name == "ids"
            else [value[0], int(new_ids[value[1]])]
            if name in ("sep", "cls")
            else renumbered(value, new_ids)
            for name, value in part.items()
        }
    return [renumbered(value, new_ids) for value in part] if isinstance(part, list) else part


def pruned_merges(merges: pa.Table | None, kept: NDArray[np.bool_], new_ids: NDArray[np.int64]) -> pa.Table | None:
    """The table of our own trainer's merges, of those that stay."""
    if merges is None:
        return None
    columns = [merges[name].to_numpy() for name in ("left", "right", "token")]
    stay = np.logical_and.reduce([kept[column] for column in columns])
    ids = [pa.array(new_ids[column[stay]], pa.int32()) for column in columns]
    return pa.table([*ids, merges["count"].combine_chunks().filter(pa.array(stay))], schema=MERGES_SCHEMA)
