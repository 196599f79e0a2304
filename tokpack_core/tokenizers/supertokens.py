"""Appends cross-word tokens to a published tokenizer, mined from a model's own reasoning traces: "Shorthand for
Thought" (arXiv 2604.26355).

The tokenizer is the first stage; its words that are one token are merged with their neighbours as superwords are, the
`top_k` most frequent ones, and appended with the next free ids. Not merged, by structure: what holds a digit or
punctuation, and words that begin with a capital (phrase starts). All old ids stay.

The tokenizer.json is a stock one: its pretokenizer leaves runs of words together and its list of merges is longer. A
text without a new token may, seldom, be encoded otherwise than before, where an old merge reaches over words; how
often is counted on the traces.

`supertokens.json`: `parameters`, `text` (documents, bytes, tokens before and after, tokens saved an added id,
documents whose old tokens changed) and `added`: for each new id its token (in the byte-level alphabet), count
(occurrences when it was merged) and `initialize_from`, the old ids whose mean embedding is where the paper starts the
new one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import regex
from tokenizers import Tokenizer as Engine

from tokpack_core.bpe.regex_splitting import compiled
from tokpack_core.bpe.superword_merges import Supermerges, SupermergeSettings, append_supermerges, standing_alone
from tokpack_core.bpe.superword_runs import run_spool
from tokpack_core.bpe.text_spool import TextSpool, text_spool
from tokpack_core.bpe.whole_words import WholeWords
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.agreement.normalization import differing_documents
from tokpack_core.tokenizers.byteification.token_bytes import byte_level_name
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.huggingface.run_regex import of_words, run_pretokenizer

FILE_NAME = "supertokens.json"
WORD = regex.compile(r" ?[\p{Ll}\p{Lo}\p{M}][\p{L}\p{M}]*")
"""What may be part of a supertoken."""
HOLE = b"\x00\x00"
MOST_WORKERS = 8


@dataclass(frozen=True)
class ExtensionLimits:
    top_k: int = 250
    min_frequency: int = 2
    max_words: int | None = None
    """Most words of a supertoken."""


def extend(
    base: HuggingFaceTokenizer, limits: ExtensionLimits, texts: Iterator[pa.Array]
) -> tuple[HuggingFaceTokenizer, dict[str, Any]]:
    """The longer tokenizer, and the content of `supertokens.json`.

    `texts`: string arrays without nulls, which are read once and kept in a temporary file meanwhile. Raises InputError
    for an empty text, or a tokenizer that is no byte-level BPE.
    """
    exact = base.exact_bpe()
    if exact is None:
        raise InputError("only a tokenizer.json with a byte-level BPE that merges within words can be extended")
    *before, last = exact.splits
    joined, apart = compiled(("|".join(of_words(last)),))[0], compiled(tuple(before))
    contents = [HOLE] * base.vocab_size
    for token_id, token in zip(*(base.vocabulary()[name].to_pylist() for name in ("id", "token")), strict=True):
        contents[token_id] = token or HOLE
    ordinary = set(exact.model.token.tolist()) | set(exact.model.byte_ids.tolist())
    eligible = np.array(
        [token_id in ordinary and may_join(token, joined, apart) for token_id, token in enumerate(contents)]
    )
    workers = min(os.cpu_count() or 1, MOST_WORKERS)
    with text_spool() as spool, run_spool() as runs:
        for _ in spool.keeping(texts):
            pass
        runs.collect(spool.again(), WholeWords(exact.encoder, exact.splits, contents, eligible), workers)
        settings = SupermergeSettings(limits.min_frequency, max_words=limits.max_words)
        found = append_supermerges(runs, standing_alone(contents), limits.top_k, settings)
        longer = appended(base, contents, found, exact.splits)
        parts = old_parts(found, base.vocab_size)
        text = figures(base, longer, parts, spool)
    if not text["bytes"]:
        raise InputError("there is no text to mine supertokens from: give files that hold some")
    if not found.tokens:
        raise InputError(
            f"no phrase of words that are one token each occurs {limits.min_frequency} times: give more of the model's "
            "reasoning traces, or lower `min_frequency`"
        )
    return longer, {
        "parameters": vars(limits),
        "text": text,
        "added": [
            {
                "id": base.vocab_size + place,
                "token": byte_level_name(token),
                "count": count,
                "initialize_from": parts[place],
            }
            for place, (token, count) in enumerate(zip(found.tokens, found.count.tolist(), strict=True))
        ],
    }


def may_join(token: bytes, joined: Any, apart: list[Any]) -> bool:
    """Whether a token is a word that the longer tokenizer's pretokenizer leaves together with its neighbours.

    `joined`: the regex of these, of which marks by themselves may be none; `apart`: what splits text before it.
    """
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return False
    if WORD.fullmatch(text) is None or any(pattern.fullmatch(text) for pattern in apart):
        return False
    return joined.fullmatch(text) is not None


def appended(
    base: HuggingFaceTokenizer, contents: list[bytes], found: Supermerges, splits: tuple[str, ...]
) -> HuggingFaceTokenizer:
    content = json.loads(base.as_json())
    names = [byte_level_name(token) for token in [*contents, *found.tokens]]
    model = content["model"]
    # An added token that the model does not hold would be given the first id after the model's, whatever the file says.
    model["vocab"] |= {token["content"]: token["id"] for token in content["added_tokens"]}
    model["vocab"] |= {name: token_id for token_id, name in enumerate(names) if token_id >= len(contents)}
    written = [merge if isinstance(merge, list) else merge.split(" ") for merge in model["merges"]]
    new = [[names[left], names[right]] for left, right in zip(found.left.tolist(), found.right.tolist(), strict=True)]
    model["merges"] = written + new
    content["pre_tokenizer"] = run_pretokenizer(content["pre_tokenizer"], splits)
    metadata = replace(base.metadata, family="supertokens", ids={})
    return HuggingFaceTokenizer(
        Engine.from_str(json.dumps(content, ensure_ascii=False)), metadata, "the longer tokenizer"
    )


def figures(
    base: HuggingFaceTokenizer, longer: HuggingFaceTokenizer, parts: list[list[int]], spool: TextSpool
) -> dict[str, Any]:
    first_new = base.vocab_size
    sums = {"documents": 0, "bytes": 0, "tokens_before": 0, "tokens_after": 0, "documents_changed_otherwise": 0}
    for array in spool.again():
        texts = array.cast(pa.large_string())
        before, after = base.encode(texts), longer.encode(texts)
        sums["documents"] += len(texts)
        sums["bytes"] += pc.sum(pc.binary_length(texts)).as_py() or 0
        sums["tokens_before"] += before.ids.size
        sums["tokens_after"] += after.ids.size
        sums["documents_changed_otherwise"] += len(differing_documents(before, taken_apart(after, first_new, parts)))
    saved = sums["tokens_before"] - sums["tokens_after"]
    return sums | {"tokens_saved": saved, "tokens_saved_per_id": round(saved / max(len(parts), 1), 3)}


def old_parts(found: Supermerges, first_new: int) -> list[list[int]]:
    """The old ids that each new one is made of, in order."""
    parts: list[list[int]] = []
    for left, right in zip(found.left.tolist(), found.right.tolist(), strict=True):
        sides = (parts[side - first_new] if side >= first_new else [side] for side in (left, right))
        parts.append([token for side in sides for token in side])
    return parts


def taken_apart(encoded: Encoded, first_new: int, parts: list[list[int]]) -> Encoded:
    """The same documents with the old ids in the place of the new ones."""
    flat = np.array([token for part in parts for token in part], np.int32)
    sizes = np.array([len(part) for part in parts], np.int64)
    new = np.maximum(encoded.ids.astype(np.int64) - first_new, -1)
    lengths = np.ones(new.size, np.int64)
    lengths[new >= 0] = sizes[new[new >= 0]]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    owner = np.repeat(np.arange(new.size), lengths)
    within = np.arange(int(ends[-1])) - ends[owner]
    ids = encoded.ids[owner]
    replaced = new[owner] >= 0
    begins = np.concatenate([[0], np.cumsum(sizes)])
    ids[replaced] = flat[begins[new[owner[replaced]]] + within[replaced]]
    return Encoded(ids, ends[encoded.offsets])


def write_report(folder: Path, report: dict[str, Any]) -> None:
    (folder / FILE_NAME).write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
