"""A byte-level BPE as files that tiktoken and Megatron's TikTokenizer open.

In the folder `tiktoken`, `tokenizer.tiktoken`: a line a token, its bytes in base64 and its rank, which is its id;
`encoding.json`: what `tiktoken.Encoding` takes beside the ranks: name, pat_str, special_tokens, explicit_n_vocab.
tiktoken merges any two tokens whose bytes are a token, the lowest id first; ours are merges in the order of ids. It
does not normalize, so it is given normalized text, and knows one regex, so a pretokenizer of several has no such file.
It drops what no match of the regex covers, where that is a pretoken to us: a regex of one's own is followed by an
alternative for the rest.

With `id_layout: megatron_tiktoken` also `megatron.json`, the vocabulary file of Megatron's TikTokenizer: a list of
{rank, token_bytes, token_str}, ranks from 0, bytes first and by value. Its ids are the ranks behind 1,000 special
tokens: seven with names, which no option of Megatron leaves out, and fillers (megatron-core,
`tokenizers/text/libraries/tiktoken_tokenizer.py`).
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import tiktoken

from tokpack_core.bpe.merge_settings import Merges
from tokpack_core.config import REGEX
from tokpack_core.tokenizers.byte_bpe.pretokenizer_steps import pretokenizer_steps
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.tiktoken.ranks import read_rank_file, write_rank_file

FOLDER = "tiktoken"
RANKS, ENCODING, MEGATRON = "tokenizer.tiktoken", "encoding.json", "megatron.json"
MEGATRON_NAMED = ("<unk>", "<s>", "</s>", "<mask>", "<pad>", "<cls>", "<sep>")
MEGATRON_SPECIAL = [*MEGATRON_NAMED, *(f"<SPECIAL_{number}>" for number in range(len(MEGATRON_NAMED), 1000))]
"""In the order of their ids, as Megatron has them without further arguments."""


def why_not(tokenizer: HuggingFaceTokenizer) -> str | None:
    """What keeps a byte-level BPE of ours from a form for tiktoken; None for nothing."""
    if len(patterns(tokenizer)) != 1:
        return f"the pretokenizer {tokenizer.metadata.settings['pretokenizer']} is several regexes"
    if tokenizer.metadata.settings.get("alphabet") == "seen_bytes":
        return "bytes that the text did not hold have no token"
    return None


def patterns(tokenizer: HuggingFaceTokenizer) -> tuple[str, ...]:
    steps = pretokenizer_steps(tokenizer.pretokenizer())
    return () if steps is None else steps.patterns


def save_for_tiktoken(tokenizer: HuggingFaceTokenizer, folder: Path) -> None:
    """Writes the files into a new folder, of a tokenizer that nothing keeps from it."""
    folder.mkdir()
    settings = tokenizer.metadata.settings
    (pattern,) = patterns(tokenizer)
    if settings["pretokenizer"].startswith(REGEX):
        pattern = rf"{pattern}|(?:(?!{pattern})[\s\S])+"
    table = tokenizer.vocabulary()
    ordinary, special = (
        dict(zip(rows["token"].to_pylist(), rows["id"].to_pylist(), strict=True))
        for rows in (table.filter(pc.invert(table["special"])), table.filter(table["special"]))
    )
    special_tokens = {token.decode(): token_id for token, token_id in special.items()}
    write_rank_file(folder / RANKS, ordinary)
    described = {"name": "tokpack", "pat_str": pattern, "special_tokens": special_tokens}
    write_json(folder / ENCODING, described | {"explicit_n_vocab": len(table)})
    if settings.get("id_layout") == "megatron_tiktoken":
        ordered = sorted(ordinary, key=ordinary.__getitem__)
        write_json(folder / MEGATRON, [megatron_row(rank, token) for rank, token in enumerate(ordered)])


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def megatron_row(rank: int, token: bytes) -> dict[str, Any]:
    text = token.decode("utf-8", "replace")
    return {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": text}


def open_with_tiktoken(folder: Path) -> tiktoken.Encoding:
    """As a user opens the files. (tiktoken's own reader of rank files caches by path.)"""
    described = json.loads((folder / ENCODING).read_bytes())
    return tiktoken.Encoding(**described, mergeable_ranks=read_rank_file(folder / RANKS))


def bytes_by_value(merges: Merges) -> Merges:
    """The same merges with the bytes, which come first, in the order of their values."""
    order = sorted(range(256), key=merges.tokens.__getitem__)
    places = np.arange(len(merges.tokens), dtype=np.int32)
    places[order] = np.arange(256)
    tokens = [*(merges.tokens[token] for token in order), *merges.tokens[256:]]
    return Merges(tokens, places[merges.left], places[merges.right], merges.count)
