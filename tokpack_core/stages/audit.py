"""The audit of a dataset: encodes documents again with the recorded tokenizer and compares token by token.

Documents are drawn by a keyed hash of their id, or all are taken. Each is read again from its source file, as recorded,
fetched if it is behind a URL, and normalized and encoded anew; where the source file is gone or changed, the normalized
text of the store stands in for it. Id and tokens are compared with the shard, and through the packing plan with the
positions of the exported `.bin`. Tokenizer, plans and texts must be proven; shards and `.bin` are what is judged, so
they are read as they are. The splits of a shard are compared together, so each source file is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tokpack_core.corpus.splits import sample_mask
from tokpack_core.errors import StoreError
from tokpack_core.megatron.indexed_reader import IndexedReader, release_pages
from tokpack_core.stages import shards as shards_stage
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.stages.audit_figures import Audit
from tokpack_core.stages.normalize import read_part
from tokpack_core.stages.pack import Block
from tokpack_core.stages.shards import DOCUMENTS
from tokpack_core.stages.source_texts import DRAWN, DRAWN_CONTENT, SourceTexts
from tokpack_core.stages.token_comparison import Expected, Flags, compare_with_packs, compare_with_shard
from tokpack_core.stages.trace import DatasetVersion, part_path, plan_columns
from tokpack_core.store import objects
from tokpack_core.store.actions import Action, library_versions
from tokpack_core.store.files import sha256_of
from tokpack_core.store.lineage import LineageGraph
from tokpack_core.store.objects import ObjectFile, ObjectRef
from tokpack_core.store.store import Store
from tokpack_core.tokenizers.encoded import Encoded, concatenate
from tokpack_core.tokenizers.protocol import Tokenizer

EXAMPLES = 20


@dataclass(frozen=True)
class Drawn:
    """A sample: documents by a keyed hash of their id, each with the probability `fraction`."""

    fraction: float
    seed: int

    def rows(self, version: DatasetVersion, shard: ObjectRef, splits: list[str]) -> pa.Table:
        """shard_row, id, lang, source, row and split of the drawn documents of `splits`."""
        table = read_rows(version, shard, ["id", "lang", "source", "row", "split"])
        chosen = pc.is_in(table["split"], pa.array(splits)).to_numpy()
        if self.fraction < 1.0:
            chosen &= sample_mask(table["id"].combine_chunks(), self.seed, self.fraction)
        places = pa.array(np.flatnonzero(chosen))
        return table.append_column("shard_row", pa.array(np.arange(len(table)))).take(places)


@dataclass(frozen=True)
class PackedBlock:
    """A block of packs as its plan and files tell.

    Attributes:
        packs: None where the block has no pack, and its prefix perhaps no file.
        first_pack: number, within the prefix, of its first pack.
    """

    block: Block
    plan: dict[str, npt.NDArray[np.int64]]
    packs: IndexedReader | None
    first_pack: int


@dataclass(frozen=True)
class Auditor:
    """What every shard is compared with."""

    version: DatasetVersion
    graph: LineageGraph
    tokenizer: Tokenizer
    drawn: Drawn
    texts: SourceTexts
    audit: Audit


def audit_dataset(
    version: DatasetVersion,
    graph: LineageGraph,
    documents: int | None,
    seed: int,
    folders: list[Path],
    on_done: Callable[[int], None] = lambda _: None,
) -> Audit:
    """Compares about `documents` documents, or all if None.

    Args:
        folders: where names of source files may start.
        on_done: told how many tokens of the dataset were passed.

    Raises:
        StoreError: the tokenizer, a plan, or the text of a document is gone or was altered.
        InputError: a source file changes while it is read.
    """
    for fault in objects.verify_object(version.store, version.tokenizer):
        raise StoreError(f"{fault}; the tokenizer that this dataset was encoded with is needed to audit it")
    tokenizer = tokenizer_stage.load(objects.folder_of(version.store, version.tokenizer))
    total = sum(shard_documents(version, block) for block in version.blocks)
    fraction = 1.0 if documents is None else min(1.0, documents / max(total, 1))
    audit = Audit(documents=total)
    with closing(SourceTexts(graph, folders, audit.not_from_source)) as texts:
        auditor = Auditor(version, graph, tokenizer, Drawn(fraction, seed), texts, audit)
        passed = 0
        for (_, shards), blocks in groupby(packed_blocks(version), lambda p: (p.block.corpus, p.block.shards)):
            splits = list(blocks)
            for part, shard in enumerate(shards):
                audit_shard(auditor, splits, part, shard)
            passed += sum(packed.block.tokens for packed in splits)
            on_done(passed)
    return audit


def packed_blocks(version: DatasetVersion) -> Iterator[PackedBlock]:
    """The blocks of the dataset; those of the splits of the same shards follow each other."""
    for block, first_pack in zip(version.blocks, version.first_pack, strict=True):
        packs = IndexedReader(version.prefix(block)) if block.packs else None
        yield PackedBlock(block, plan_columns(version, block), packs, first_pack)


def shard_documents(version: DatasetVersion, block: Block) -> int:
    """Documents of the block's split."""
    split = [read_rows(version, shard, ["split"])["split"] for shard in block.shards]
    return sum(pc.sum(pc.equal(column, block.split)).as_py() or 0 for column in split)


def read_rows(version: DatasetVersion, shard: ObjectRef, columns: list[str]) -> pa.Table:
    objects.require_files(version.store, [ObjectFile(shard, DOCUMENTS)])
    path = objects.folder_of(version.store, shard) / DOCUMENTS
    return pq.ParquetFile(path).read(columns=columns)


def audit_shard(auditor: Auditor, splits: list[PackedBlock], part: int, shard: ObjectRef) -> None:
    """Compares the drawn documents of a shard, which is `part` of each of the blocks `splits`."""
    version, audit = auditor.version, auditor.audit
    action = auditor.graph.action_with(shard, "tokenizer", str(version.tokenizer))
    if action is None:
        audit.examples.append(f"{shard}: encoded with another tokenizer than {version.tokenizer}")
        audit.differing += 1
        return
    rows = auditor.drawn.rows(version, shard, [packed.block.split for packed in splits])
    expected = encode_again(auditor, shard, action, rows)
    differs = expected.renamed | compare_with_shard(version, shard, expected)
    wrong_file = [(shard, "part.bin"), (shard, "part.idx")] if differs.any() else []
    for packed in splits:
        if packed.packs is None:
            continue
        of_split = pc.equal(rows["split"], packed.block.split).to_numpy()
        wrong, missing = compare_with_packs(
            version, packed.plan, part, expected, of_split, packed.packs, packed.first_pack
        )
        differs |= wrong
        audit.dropped += int(np.count_nonzero(missing))
        name = version.prefix(packed.block).relative_to(version.folder).as_posix()
        wrong_file += [(version.ref, f"{name}.bin"), (version.ref, f"{name}.idx")] if wrong.any() else []
        release_pages(packed.packs.tokens)
    note_differences(audit, splits[0].block.corpus, shard, action, expected, differs)
    causes = [cause for cause in (damage(version.store, *file) for file in wrong_file) if cause]
    audit.causes += [cause for cause in causes if cause not in audit.causes]


def note_differences(
    audit: Audit, corpus: str, shard: ObjectRef, action: Action, expected: Expected, differs: Flags
) -> None:
    audit.checked += expected.rows.size
    audit.tokens += expected.tokens.ids.size
    audit.differing += int(np.count_nonzero(differs))
    room = max(0, EXAMPLES - len(audit.examples))
    audit.examples += [
        f"{expected.ids[int(i)].as_py()!r} of {corpus}, {shard} row {expected.rows[i]}"
        for i in np.flatnonzero(differs)[:room]
    ]
    now = library_versions(*action.libraries) if differs.any() else action.libraries
    changed = [f"{name} {old} then, {now[name]} now" for name, old in action.libraries.items() if now[name] != old]
    cause = f"encoded by other libraries: {', '.join(changed)}"
    if changed and cause not in audit.causes:
        audit.causes.append(cause)


def damage(store: Store, ref: ObjectRef, path: str) -> str | None:
    """What is wrong with a file that holds wrong tokens, if it is not the one that was published."""
    if sha256_of(objects.folder_of(store, ref) / path) == objects.stated_manifest(store, ref).file(path).sha256:
        return None
    return f"{objects.folder_of(store, ref) / path}: content differs from its sha256; {objects.removal(store, ref)}"


def encode_again(auditor: Auditor, shard: ObjectRef, action: Action, documents: pa.Table) -> Expected:
    """The drawn documents of a shard from their sources, else from the normalized part, encoded now."""
    framing = shards_stage.framing_of(action)
    schema = DRAWN_CONTENT if framing.vision else DRAWN
    found = auditor.texts.read(action.inputs["part"], documents, schema)
    auditor.audit.from_source += len(found)
    missing = np.ones(len(documents), np.bool_)
    missing[found["place"].to_numpy()] = False
    read = documents["source"].to_pylist()
    # A document that its unchanged source file does not give is no document without a source: it differs.
    lost = missing & np.array([name not in auditor.texts.refused for name in read], np.bool_)
    table = pa.concat_tables([found, normalized_texts(auditor, shard, documents, missing, schema)])
    table = table.take(pc.sort_indices(table["place"])).append_column("lang", documents["lang"])
    renamed = lost | ~pc.equal(table["id"], documents["id"]).to_numpy()
    encoded = [framing.encode(auditor.tokenizer, batch)[0] for batch in table.to_batches()]
    tokens = concatenate(encoded) if encoded else Encoded(np.zeros(0, np.int32), np.zeros(1, np.int64))
    return Expected(documents["shard_row"].to_numpy(), documents["id"], renamed, tokens)


def normalized_texts(
    auditor: Auditor, shard: ObjectRef, documents: pa.Table, wanted: Flags, schema: pa.Schema
) -> pa.Table:
    """The wanted documents from the normalized part, as `SourceTexts.read` gives them."""
    found: list[pa.RecordBatch] = []
    rows, places = documents["shard_row"].to_numpy()[wanted], np.flatnonzero(wanted)
    path = part_path(auditor.version.store, auditor.graph, shard) if rows.size else None
    first = 0
    for batch in read_part(path, ["id", "text"]) if path else ():
        begin, end = np.searchsorted(rows, [first, first + len(batch)])
        here = batch.take(pa.array(rows[begin:end] - first))
        found.append(
            pa.record_batch([pa.array(places[begin:end]), *(here[n] for n in schema.names[1:])], schema=schema)
        )
        first += len(batch)
    return pa.Table.from_batches(found, schema=schema)
