"""`tokpack lineage DATASET --document ID` and `--pack PREFIX:NUMBER`: one document, or one pack, through a dataset."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.text import Text

from tokpack_core.commands.results import console, print_json
from tokpack_core.commands.store_access import graph_of, store_that_knows
from tokpack_core.errors import InputError
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.stages.trace import DatasetVersion, documents_of_pack, find_document, open_dataset, tokens_of
from tokpack_core.store import objects
from tokpack_core.store.lineage import find_object
from tokpack_core.store.objects import ObjectRef
from tokpack_core.tokenizers.encoded import Encoded

FIRST_SHOWN = 8
LAST_SHOWN = 2


def trace_and_show(name: str, document: str | None, pack: str | None, json: bool) -> None:
    """Raises InputError when there is no such dataset, document or pack."""
    store = store_that_knows(name)
    graph = graph_of(store)
    version = open_dataset(store, graph, find_object(store, graph, name))
    found: list[dict[str, Any]]
    if document is not None:
        found = with_tokens(version, find_document(version, document))
    else:
        found = [vars(segment) for segment in documents_of_pack(version, *parse_pack(pack or ""))]
    if json:
        print_json(found)
    elif document is not None:
        show_document(version, found)
    else:
        show_pack(found)


def with_tokens(version: DatasetVersion, places: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adds the ids of each document and the text of each id; bytes that are no text by themselves are shown so."""
    tokenizer = tokenizer_stage.load(objects.require_object(version.store, version.tokenizer))
    for place in places:
        ids = tokens_of(version, ObjectRef.parse(place["shard"]), place["shard_row"])
        texts = tokenizer.decode(Encoded(ids.astype(np.int32), np.arange(ids.size + 1)))
        place |= {"ids": ids.tolist(), "texts": texts.to_pylist()}
    return places


def abbreviated(ids: list[int], texts: list[str]) -> str:
    """The first ids with their texts, and the last ones."""
    told = [f"{number} {text!r}" for number, text in zip(ids, texts, strict=True)]
    if len(told) > FIRST_SHOWN + LAST_SHOWN + 1:
        told = [*told[:FIRST_SHOWN], "…", *told[-LAST_SHOWN:]]
    return "  ".join(told)


def parse_pack(text: str) -> tuple[str, int]:
    prefix, _, number = text.rpartition(":")
    if not prefix or not number.isdecimal():
        raise InputError(f"{text!r} names no pack; write the prefix and the number, like en/train_4096:0")
    return prefix, int(number)


def show_document(version: DatasetVersion, places: list[dict[str, Any]]) -> None:
    out = console()
    for place in places:
        out.print(f"[bold]{place['id']}[/]  {place['tokens']:,} tokens, {place['split']} split of {place['corpus']}")
        out.print(f"  source  {place['source']}, row {place['row']}")
        out.print(f"  shard   {place['shard']}, row {place['shard_row']}")
        if place["ids"]:
            out.print(Text(f"  tokens  {abbreviated(place['ids'], place['texts'])}"), soft_wrap=True)
        for piece in place["segments"]:
            end = piece["start"] + piece["length"]
            out.print(
                f"  pack    {piece['pack']} of {version.folder.name[:12]}/{piece['prefix']}, positions "
                f"{piece['offset']} to {piece['offset'] + piece['length']}: tokens {piece['start']} to {end}, "
                f"chunk {piece['chunk'] + 1} of {piece['chunks']}"
            )
        if not place["segments"]:
            out.print("  in no pack: it has no token, or a packing policy dropped it")


def show_pack(segments: list[dict[str, Any]]) -> None:
    out = console()
    for piece in segments:
        end = piece["offset"] + piece["length"]
        chunk = f", chunk {piece['chunk'] + 1} of {piece['chunks']}" if piece["chunks"] > 1 else ""
        out.print(f"  {piece['offset']:>7} to {end:<7} {piece['document']}{chunk}")
