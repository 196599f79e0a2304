"""The audit of a dataset: encodes documents again with the recorded tokenizer and compares token by token.

Documents are drawn by a keyed hash of their id, or all are taken. Of each, the normalized text is encoded anew, and
its ids are compared with the shard, and through the packing plan with the positions of the exported `.bin`.

A sample of n documents of which k differ bounds the share of differing documents by the upper end of the one-sided
Clopper-Pearson interval (Clopper and Pearson, Biometrika 26, 1934); for k = 0 it is 1 - 0.05^(1/n), about 3/n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tokpack_core.corpus.splits import sample_mask
from tokpack_core.megatron.indexed_reader import IndexedReader, release_pages
from tokpack_core.packing.truncation import PackingFigures
from tokpack_core.stages import shards as shards_stage
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.stages.normalize import read_part
from tokpack_core.stages.pack import Block
from tokpack_core.stages.trace import DatasetVersion, part_path, plan_columns
from tokpack_core.store import objects
from tokpack_core.store.lineage import LineageGraph
from tokpack_core.store.objects import ObjectRef
from tokpack_core.tokenizers.encoded import Encoded, concatenate
from tokpack_core.tokenizers.protocol import Tokenizer

CONFIDENCE = 0.95
EXAMPLES = 20

Flags = npt.NDArray[np.bool_]
Int64 = npt.NDArray[np.int64]


@dataclass
class Audit:
    """What was compared and what differed.

    Attributes:
        documents: documents in the dataset; `checked` of them were encoded again.
        differing: those whose tokens differ in the shard or in the dataset.
        dropped: checked documents of which a packing policy left tokens out, as it was told.
        examples: what differs, in words.
    """

    documents: int = 0
    checked: int = 0
    tokens: int = 0
    differing: int = 0
    dropped: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def upper_bound(self) -> float:
        """With 95 % confidence, at most this share of all documents differs."""
        if self.checked >= self.documents:
            return self.differing / max(self.documents, 1)
        return upper_bound(self.differing, self.checked)

    def conclusion(self) -> str:
        said = f"{self.differing:,} of {self.checked:,} documents differ"
        if self.checked >= self.documents:
            return f"{said}; all documents were compared"
        return f"{said}: with 95 % confidence fewer than {self.upper_bound:.2%} of all {self.documents:,} do"


def upper_bound(differing: int, checked: int) -> float:
    """Upper end of the one-sided 95 % Clopper-Pearson interval for `differing` of `checked`."""
    if differing >= checked:
        return 1.0
    low, high = differing / checked, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chance_of_at_most(differing, checked, middle) > 1 - CONFIDENCE else (low, middle)
    return high


def chance_of_at_most(differing: int, checked: int, share: float) -> float:
    """P(X <= differing) of a binomial with `checked` trials of chance 0 < `share` < 1."""
    log, log1 = math.log(share), math.log1p(-share)
    choices = (log_choose(checked, k) for k in range(differing + 1))
    return math.fsum(math.exp(ways + k * log + (checked - k) * log1) for k, ways in enumerate(choices))


def log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def audit_dataset(version: DatasetVersion, graph: LineageGraph, documents: int | None, seed: int) -> Audit:
    """Compares about `documents` documents, or all if None.

    Raises:
        StoreError: something that the dataset was made from is gone or damaged.
    """
    total = sum(shard_documents(version, block) for block in version.blocks)
    fraction = 1.0 if documents is None else min(1.0, documents / max(total, 1))
    tokenizer = tokenizer_stage.load(objects.require_object(version.store, version.tokenizer))
    audit = Audit(documents=total)
    for number in range(len(version.blocks)):
        audit_block(version, graph, number, tokenizer, fraction, seed, audit)
    return audit


def shard_documents(version: DatasetVersion, block: Block) -> int:
    """Documents of the block's split."""
    split = [pq.read_table(documents_path(version, shard), columns=["split"])["split"] for shard in block.shards]
    return sum(int(np.count_nonzero(column.to_numpy() == block.split)) for column in split)


def documents_path(version: DatasetVersion, shard: ObjectRef) -> str:
    return str(objects.require_object(version.store, shard) / "documents.parquet")


def audit_block(
    version: DatasetVersion,
    graph: LineageGraph,
    number: int,
    tokenizer: Tokenizer,
    fraction: float,
    seed: int,
    audit: Audit,
) -> None:
    block = version.blocks[number]
    plan = plan_columns(version, block)
    packs = IndexedReader(version.prefix(block)) if block.packs else None
    for part, shard in enumerate(block.shards):
        action = graph.action(shard)
        if action is None or action.inputs["tokenizer"] != str(version.tokenizer):
            audit.examples.append(f"{shard}: encoded with another tokenizer than {version.tokenizer}")
            audit.differing += 1
            continue
        rows, ids, expected = encode_again(version, graph, shard, block.split, tokenizer, fraction, seed)
        audit.checked += rows.size
        audit.tokens += expected.ids.size
        differs = compare_with_shard(version, shard, rows, expected)
        if packs is not None:
            first = version.first_pack[number]
            wrong, missing = compare_with_packs(version, plan, part, rows, expected, packs, first)
            differs |= wrong
            audit.dropped += int(np.count_nonzero(missing))
            release_pages(packs.tokens)
        audit.differing += int(np.count_nonzero(differs))
        room = max(0, EXAMPLES - len(audit.examples))
        audit.examples += [
            f"{ids[i].as_py()!r} of {block.corpus}, {shard} row {rows[i]}" for i in np.flatnonzero(differs)[:room]
        ]


def encode_again(
    version: DatasetVersion,
    graph: LineageGraph,
    shard: ObjectRef,
    split: str,
    tokenizer: Tokenizer,
    fraction: float,
    seed: int,
) -> tuple[Int64, pa.Array, Encoded]:
    """Rows in the shard, ids, and tokens encoded now, of the drawn documents."""
    action = graph.action(shard)
    framing = shards_stage.framing_of(action) if action else shards_stage.Framing(bos=False)
    rows: list[Int64] = []
    ids: list[pa.Array] = []
    encoded: list[Encoded] = []
    first = 0
    for batch in read_part(part_path(version.store, graph, shard), ["id", "text", "split"]):
        drawn = batch["split"].to_numpy(zero_copy_only=False) == split
        if fraction < 1.0:
            drawn &= sample_mask(batch["id"], seed, fraction)
        chosen = batch.filter(pa.array(drawn))
        encoded.append(framing.encode(tokenizer, chosen)[0])
        rows.append(first + np.flatnonzero(drawn))
        ids.append(chosen["id"])
        first += len(batch)
    if not rows:
        return np.zeros(0, np.int64), pa.array([], pa.string()), Encoded(np.zeros(0, np.int32), np.zeros(1, np.int64))
    return np.concatenate(rows), pa.concat_arrays(ids), concatenate(encoded)


def compare_with_shard(version: DatasetVersion, shard: ObjectRef, rows: Int64, expected: Encoded) -> Flags:
    """Which documents have other tokens in the shard."""
    reader = IndexedReader(objects.require_object(version.store, shard) / "part")
    bounds = reader.index.document_indices
    lengths = np.concatenate([[0], np.cumsum(reader.index.sequence_lengths, dtype=np.int64)])
    begins, ends = lengths[bounds[rows]], lengths[bounds[rows + 1]]
    differs = ends - begins != np.diff(expected.offsets)
    same = np.flatnonzero(~differs)
    wrong = unequal_runs(reader.tokens, begins[same], expected.ids, expected.offsets[:-1][same], (ends - begins)[same])
    differs[same[wrong]] = True
    return differs


def compare_with_packs(
    version: DatasetVersion,
    plan: dict[str, npt.NDArray[np.int64]],
    part: int,
    rows: Int64,
    expected: Encoded,
    packs: IndexedReader,
    first_pack: int,
) -> tuple[Flags, Flags]:
    """Which documents have other tokens at their places in the packs, and of which some are in no pack."""
    place = np.full(max(int(rows.max(initial=-1)), int(plan["document"].max(initial=-1))) + 1, -1, np.int64)
    place[rows] = np.arange(rows.size)
    segments = np.flatnonzero(plan["part"] == part)
    document = place[plan["document"][segments]]
    segments, document = segments[document >= 0], document[document >= 0]
    lengths = plan["length"][segments].astype(np.int64)
    begins = (first_pack + plan["pack"][segments]) * version.sequence_length + plan["offset"][segments]
    wrong = unequal_runs(
        packs.tokens, begins, expected.ids, expected.offsets[document] + plan["start"][segments], lengths
    )
    differs = np.zeros(rows.size, np.bool_)
    differs[document[wrong]] = True
    packed = np.bincount(document, lengths, rows.size).astype(np.int64)
    missing = packed != np.diff(expected.offsets)
    if not drops_tokens(version):
        differs |= missing
        missing &= False
    return differs, missing


def drops_tokens(version: DatasetVersion) -> bool:
    """Whether a packing policy of the dataset leaves tokens out."""
    figures = objects.read_manifest(version.store, version.plans).counts["figures"]
    return PackingFigures.from_dict(figures).tokens_dropped > 0


def unequal_runs(
    one: npt.NDArray[np.integer], one_begins: Int64, other: npt.NDArray[np.integer], other_begins: Int64, lengths: Int64
) -> Int64:
    """Indices of the runs of `lengths` whose tokens are not the same in both arrays."""
    filled = np.flatnonzero(lengths)
    lengths = lengths[filled]
    ends = np.cumsum(lengths)
    within = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
    left = one[np.repeat(one_begins[filled], lengths) + within]
    right = other[np.repeat(other_begins[filled], lengths) + within]
    if not filled.size:
        return filled
    return filled[np.logical_or.reduceat(left != right, ends - lengths)]
