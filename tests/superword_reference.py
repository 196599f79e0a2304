"""Superword training and encoding as their descriptions say, one merge at a time over all the text; slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER
from tokpack_core.bpe.regex_splitting import compiled, pretokens
from tokpack_core.config import TieBreak

Chunk = list[bytes]
Pair = tuple[bytes, bytes]


@dataclass
class Made:
    """Merges in their order: left, right, count, whether it joins whole words."""

    steps: list[tuple[bytes, bytes, int, bool]] = field(default_factory=list)

    @property
    def tokens(self) -> list[bytes]:
        return [left + right for left, right, _, _ in self.steps]


def boundless_by_definition(
    documents: Iterable[str],
    splits: tuple[str, ...],
    vocab_size: int,
    min_frequency: int,
    tie_break: TieBreak,
    words_win_ties: bool,
    eligible: Callable[[bytes], bool],
) -> Made:
    """BoundlessBPE in one pass: word pairs within chunks and pairs of whole chunks are counted side by side."""
    texts = split_documents(documents, splits)
    made = Made()
    # Ties by id: words stand before superwords, each in the order in which they were made.
    order: dict[bytes, tuple[int, int]] = {bytes([byte]): (0, k) for k, byte in enumerate(BYTE_LEVEL_ORDER)}
    while 256 + len(made.steps) < vocab_size:
        inner: Counter[Pair] = Counter(pair for text in texts for chunk in text for pair in pairwise(chunk))
        outer: Counter[Pair] = Counter(
            (left[0], right[0])
            for text in texts
            for left, right in pairwise(text)
            if len(left) == len(right) == 1 and eligible(left[0]) and eligible(right[0])
        )
        outer = Counter({pair: count for pair, count in outer.items() if pair[0] + pair[1] not in order})
        word, superword = best(inner, tie_break, order), best(outer, tie_break, order)
        word_count, super_count = inner[word] if word else 0, outer[superword] if superword else 0
        if max(word_count, super_count) < max(min_frequency, 1):
            break
        whole = super_count > word_count or (super_count == word_count and not words_win_ties)
        pair = superword if whole else word
        assert pair is not None
        made.steps.append((*pair, super_count if whole else word_count, whole))
        order[pair[0] + pair[1]] = (int(whole), len(made.steps) + 256)
        for text in texts:
            if whole:
                joined = replaced([chunk[0] if len(chunk) == 1 else None for chunk in text], pair)
                text[:] = rebuilt(text, joined)
            else:
                text[:] = [[token for token in replaced(chunk, pair) if token is not None] for chunk in text]
    return made


def encode_by_definition(
    document: str, splits: tuple[str, ...], made: Made, eligible: Callable[[bytes], bool]
) -> list[bytes]:
    """All merges in their one order, over the whole text."""
    [text] = split_documents([document], splits)
    content = document.encode()
    for left, right, _, whole in made.steps:
        if left + right not in content:
            continue
        if whole:
            single = [chunk[0] if len(chunk) == 1 and eligible(chunk[0]) else None for chunk in text]
            text = rebuilt(text, replaced(single, (left, right)))
        else:
            text = [[token for token in replaced(chunk, (left, right)) if token is not None] for chunk in text]
    return [token for chunk in text for token in chunk]


def split_documents(documents: Iterable[str], splits: tuple[str, ...]) -> list[list[Chunk]]:
    patterns = compiled(splits)
    return [
        [[bytes([byte]) for byte in word.encode()] for word in pretokens(document, patterns)] for document in documents
    ]


def best(counts: Counter[Pair], tie_break: TieBreak, order: dict[bytes, tuple[int, int]]) -> Pair | None:
    most = max(counts.values(), default=0)
    tied = [pair for pair, count in counts.items() if count == most]
    if not tied:
        return None
    if tie_break == "hugging_face":
        return min(tied, key=lambda pair: (order[pair[0]], order[pair[1]]))
    return max(tied) if tie_break == "lexicographic_greatest" else min(tied)


def replaced(tokens: list[bytes] | list[bytes | None], pair: Pair) -> list[bytes | None]:
    """From left to right; None stands for what no pair holds."""
    result: list[bytes | None] = []
    place = 0
    while place < len(tokens):
        whole = tuple(tokens[place : place + 2]) == pair
        result.append(b"".join(pair) if whole else tokens[place])
        place += 1 + whole
    return result


def rebuilt(text: list[Chunk], joined: list[bytes | None]) -> list[Chunk]:
    """The chunks of a text after whole ones were joined."""
    chunks = iter(text)
    result = []
    for token in joined:
        chunk = next(chunks)
        if token is None:
            result.append(chunk)
            continue
        result.append([token])
        if token != chunk[0]:
            next(chunks)
    return result
