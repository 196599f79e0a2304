"""Small packed sets whose every position is known: text by a strategy, and hand-made interleaved documents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tokpack_core.config import Strategy
from tokpack_core.megatron.export import PackedWriter, TokenSource
from tokpack_core.megatron.indexed_dataset import bin_path, dtype_for, idx_path, write_index
from tokpack_core.packing.permutation import permuted
from tokpack_core.packing.plan import PackingPlan
from tokpack_core.packing.strategies import pack
from tokpack_core.training.segments import FILL, IMAGE, TEXT, ImageAttention
from tokpack_core.training.segments_file import ROW, segments_path, segments_stream

SEQUENCE_LENGTH = 32
EOD = 0
Place = tuple[int, int] | None
Span = tuple[str, int]
"""("text" or "image", tokens)."""


@dataclass(frozen=True)
class TextSet:
    """A written prefix and what should stand in it."""

    prefix: Path
    documents: list[list[int]]
    plan: PackingPlan
    order: list[int]

    def places(self, number: int) -> list[Place]:
        """(document, token number) of each position of a pack, None in the filled tail."""
        pack = self.order[number]
        places: list[Place] = []
        for s in range(self.plan.pack_offsets[pack], self.plan.pack_offsets[pack + 1]):
            first = int(self.plan.start[s])
            places += [(int(self.plan.document[s]), t) for t in range(first, first + int(self.plan.length[s]))]
        return places + [None] * (SEQUENCE_LENGTH - len(places))

    def tokens(self, number: int) -> list[int]:
        return [EOD if place is None else self.documents[place[0]][place[1]] for place in self.places(number)]

    def trained(self, number: int) -> list[bool]:
        """Whether the token behind a position is the next token of the same document."""
        places = self.places(number)
        behind = [*places[1:], None]
        return [
            here is not None and there == (here[0], here[1] + 1) for here, there in zip(places, behind, strict=True)
        ]

    def pieces(self, number: int) -> list[list[int]]:
        """The documents of a pack as token lists, without the tail."""
        pieces: list[list[int]] = []
        before: Place = None
        for place, token in zip(self.places(number), self.tokens(number), strict=True):
            if place is None:
                break
            if before is None or place != (before[0], before[1] + 1):
                pieces.append([])
            pieces[-1].append(token)
            before = place
        return pieces


def random_documents(vocab_size: int, seed: int = 0) -> list[list[int]]:
    """Empty, of one token, one pack long, one token longer, and several packs long; EOD at their ends only."""
    rng = np.random.default_rng(seed)
    s = SEQUENCE_LENGTH
    sizes = [0, 0, 1, 1, s, s + 1, 3 * s, 100, s - 1, *rng.integers(0, 45, 60).tolist(), 0]
    return [[*rng.integers(1, vocab_size, size - 1).tolist(), EOD] if size else [] for size in sizes]


def write_text_set(prefix: Path, strategy: Strategy, vocab_size: int, with_segments: bool = False) -> TextSet:
    documents = random_documents(vocab_size)
    lengths = np.array([len(tokens) for tokens in documents])
    dtype = dtype_for(vocab_size)
    tokens = np.array([token for document in documents for token in document], dtype)
    plan = pack(lengths, SEQUENCE_LENGTH, strategy)
    order = permuted(plan.packs, b"test")
    source = TokenSource([tokens], np.zeros(lengths.size, np.int32), np.cumsum(lengths) - lengths)
    docs = prefix.with_name(f"{prefix.name}_docs")
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with PackedWriter(prefix, docs, dtype, SEQUENCE_LENGTH, EOD) as writer:
        half = order.size // 2
        for part in (order[:half], order[half:]):
            writer.write_block(plan, part, source)
    if not with_segments:
        segments_path(docs).unlink()
    return TextSet(prefix, documents, plan, order.tolist())


def write_interleaved_set(
    prefix: Path, packs: list[list[list[Span]]], sequence_length: int, attention: ImageAttention
) -> np.ndarray:
    """Packs of documents of spans, tails filled; returns the tokens, [packs, sequence_length]."""
    rng = np.random.default_rng(1)
    lengths, modes, rows, sizes = [], [], [], []
    for documents in packs:
        spans = [(*span, number) for number, document in enumerate(documents) for span in document]
        tail = sequence_length - sum(span[1] for span in spans)
        spans += [("text", tail, FILL)] if tail else []
        lengths += [span[1] for span in spans]
        modes += [IMAGE if span[0] == "image" else TEXT for span in spans]
        rows += [(span[2], attention) for span in spans]
        sizes.append(len(spans))
    tokens = rng.integers(1, 100, (len(packs), sequence_length)).astype(np.uint16)
    docs = prefix.with_name(f"{prefix.name}_docs")
    tokens.tofile(bin_path(prefix))
    edges = np.concatenate([[0], np.cumsum(sizes)])
    write_index(idx_path(docs), tokens.dtype, np.array(lengths), edges, np.array(modes))
    with segments_stream(docs) as writer:
        writer.add(np.array(rows, ROW))
    return tokens
