"""normalized_corpus/<corpus>: documents as parquet parts, with ids, splits and a report of what was changed.

A unit is a run of whole files. It publishes `part-00000.parquet`, ... (zstd; id, text, lang, source, row, split,
metadata, and `content` where documents hold images: see `corpus.content`), each of about PART_BYTES of text or
PART_DOCUMENTS, `report.json`, and `changed.parquet`: a few documents that the unicode form changed, before and after,
for the proof that a tokenizer carries that form. The asset's object lists all parts in `parts.parquet` and holds the
merged `report.json`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tokpack_core.config import SPLITS, CorpusConfig, NormalizeConfig, ReadConfig
from tokpack_core.corpus.content import (
    CONTENT,
    has_content,
    identities,
    text_block_documents,
    text_blocks,
    with_text_blocks,
)
from tokpack_core.corpus.document_hash import text_ids
from tokpack_core.corpus.documents import read_documents
from tokpack_core.corpus.field_names import no_language, no_metadata
from tokpack_core.corpus.files import SourceFile
from tokpack_core.corpus.normalization import NormalizationChanges, NormalizationReport, normalize
from tokpack_core.corpus.problems import Problems
from tokpack_core.corpus.splits import assign_splits
from tokpack_core.errors import InputError
from tokpack_core.stages import corpus as corpus_stage
from tokpack_core.stages.asset import Built, Workplace, current, finish, read_json, write_json
from tokpack_core.stages.corpus import InventoryFile, read_inventory
from tokpack_core.stages.runs import cut_runs
from tokpack_core.stages.unit import Unit, run_units
from tokpack_core.store import actions, objects
from tokpack_core.store.actions import Action, library_versions
from tokpack_core.store.files import sha256_of
from tokpack_core.store.objects import ObjectFile, ObjectRef
from tokpack_core.store.store import Store
from tokpack_core.threads import map_in_threads

STAGE = "normalized_corpus"
UNIT_STAGE = "normalized_part"
REPORT = "report.json"
CHANGED = "changed.parquet"
VERSION = 3

UNIT_BYTES = 16 * 2**20
"""Aim for the source bytes of a unit: small corpora still keep several workers busy."""
UNIT_FILES = 512
UNIT_LIMIT = 2**30
PART_BYTES = 256 * 2**20
PART_DOCUMENTS = 10**6
ROW_GROUP_BYTES = 8 * 2**20
CHANGED_DOCUMENTS = 50
CHANGED_BYTES = 20_000
"""Most documents of a unit in `changed.parquet`, and the longest one."""

PART_SCHEMA = pa.schema(
    {name: pa.string() for name in ("id", "text", "lang", "source")}
    | {"row": pa.int64()}
    | {name: pa.string() for name in ("split", "metadata")}
)
CONTENT_PART_SCHEMA = PART_SCHEMA.append(pa.field("content", CONTENT))
CHANGED_SCHEMA = pa.schema({"cleaned": pa.string(), "normalized": pa.string()})
PARTS_SCHEMA = pa.schema(
    {"object": pa.string(), "file": pa.string(), "sha256": pa.string(), "documents": pa.int64(), "bytes": pa.int64()}
    | {f"{split}_bytes": pa.int64() for split in SPLITS}
)


@dataclass(frozen=True)
class Part:
    """One parquet file of normalized documents.

    Attributes:
        path: where it is in this store.
        bytes: UTF-8 bytes of text; split_bytes the same by split.
    """

    object: ObjectRef
    path: Path
    sha256: str
    documents: int
    bytes: int
    split_bytes: dict[str, int]

    @property
    def file(self) -> ObjectFile:
        return ObjectFile(self.object, self.path.name)


def asset_key(corpus: str) -> str:
    return f"normalized_corpus/{corpus}"


def parameters(config: CorpusConfig) -> dict[str, Any]:
    """All of a corpus's configuration that shapes its normalized bytes."""
    shaping = config.model_dump(mode="json", exclude={"paths", "owners", "parse_special_tokens"})
    if config.content_field is None:
        del shaping["content_field"]
    return shaping


def build(work: Workplace, corpus: str) -> Built:
    config = work.project.corpora[corpus]
    _, folder = current(work, corpus_stage.asset_key(corpus))
    sources = {file.name: file for file in corpus_stage.source_files(work, corpus)}
    inventory = read_inventory(folder)
    missing = [file.name for file in inventory if file.name not in sources]
    if missing:
        raise InputError(f"corpus {corpus}: {missing[0]} is gone since the inventory; build corpus/{corpus} again")
    runs = cut_runs(inventory, lambda f: f.name, lambda f: f.size, UNIT_BYTES, UNIT_FILES, UNIT_LIMIT)
    units = [make_unit(config, run, sources) for run in runs]
    results = run_units(work.store, work.engine, units, work.on_progress)
    action = Action(STAGE, VERSION, inputs={"units": [str(ref) for ref in results.refs]})
    reports = tuple(ObjectFile(ref, REPORT) for ref in results.refs)
    unit = Unit(action, partial(write_parts, work.store, results.refs), reads=reports)
    built = finish(work, asset_key(corpus), unit, results)
    if not inventory:
        return built
    made = list(zip(results.refs, [unit.action.key for unit in units], strict=True))
    return replace(built, warnings=reading_warnings(work.store, config, made, sources[inventory[0].name]))


def make_unit(config: CorpusConfig, run: list[InventoryFile], sources: dict[str, SourceFile]) -> Unit:
    action = Action(
        UNIT_STAGE,
        VERSION,
        parameters(config),
        {"files": {file.name: file.sha256 for file in run}},
        library_versions("pyarrow", "orjson", "zstandard"),
    )
    inputs = [(sources[file.name], file) for file in run]
    return Unit(action, partial(write_unit, config, inputs), sum(file.size for file in run), in_threads=True)


def write_unit(
    config: CorpusConfig, inputs: list[tuple[SourceFile, InventoryFile]], folder: Path, threads: int = 1
) -> dict[str, Any]:
    """Batches are normalized in `threads` and written in order, so the bytes do not depend on their number."""
    problems = Problems()
    report = NormalizationReport()
    changed: list[pa.RecordBatch] = []
    writer = PartWriter(folder, PART_SCHEMA if config.content_field is None else CONTENT_PART_SCHEMA)
    with_language, absent = 0, list(config.metadata_fields)
    options = ReadConfig(**config.model_dump(include=set(ReadConfig.model_fields)))
    for source, file in inputs:
        normalize_one = partial(with_normalized, config, file.name)
        batches = read_source(source, file, options, problems)
        for batch, normalized, changes in map_in_threads(
            normalize_one, batches, pa.RecordBatch.get_total_buffer_size, threads
        ):
            report.add(normalized["lang"], changes)
            with_language += len(batch) - batch["lang"].null_count
            absent = [name for name in absent if is_absent(name, batch["metadata"])]
            writer.write(normalized)
            if sum(map(len, changed)) < CHANGED_DOCUMENTS:
                raw, new = text_blocks(batch), text_blocks(normalized)
                changed.append(changed_by_unicode_form(raw, new, config.normalize))
                del raw, new
            del batch, normalized
    writer.close()
    sample = pa.Table.from_batches(changed, schema=CHANGED_SCHEMA).slice(0, CHANGED_DOCUMENTS)
    pq.write_table(sample, folder / CHANGED, compression="zstd")
    write_json(folder / REPORT, {"reading": problems.to_json(), "normalization": report.to_json(top=None)})
    named: dict[str, Any] = {} if config.lang_field is None else {"documents_with_language": with_language}
    named |= {"absent_metadata": absent} if absent else {}
    return {"parts": writer.parts, **totals(writer.parts), **named}


def is_absent(name: str, metadata: pa.Array) -> bool:
    """Whether no document has a value in a field, by the JSON that metadata is."""
    return bool(pc.all(pc.match_substring(metadata, f"{orjson.dumps(name).decode()}:null"), min_count=0).as_py())


def read_source(
    source: SourceFile, file: InventoryFile, options: ReadConfig, problems: Problems
) -> Iterator[pa.RecordBatch]:
    """Documents of a source file, which is proven to be the one of the inventory when it has been read."""
    with source.opened() as path:
        try:
            yield from read_documents(path, file.name, options, problems)
        except InputError:
            require_inventoried(source, path, file)
            raise
        require_inventoried(source, path, file)


def require_inventoried(source: SourceFile, path: Path, file: InventoryFile) -> None:
    if sha256_of(path) != file.sha256:
        raise InputError(f"{source.shown}: the file changed since the inventory; build the corpus again")


def with_normalized(
    config: CorpusConfig, source: str, batch: pa.RecordBatch
) -> tuple[pa.RecordBatch, pa.RecordBatch, NormalizationChanges]:
    return batch, *normalized_batch(batch, source, config)


def normalized_batch(
    batch: pa.RecordBatch, source: str, config: CorpusConfig
) -> tuple[pa.RecordBatch, NormalizationChanges]:
    """The documents of a batch as rows of a part, and what was changed in each."""
    texts, changes = normalize(text_blocks(batch), config.normalize)
    content = []
    if has_content(batch):
        changes = by_document(changes, batch["content"])
        texts, cut = with_text_blocks(batch["content"], texts)
        content.append(cut)
    langs = pc.fill_null(batch["lang"], config.lang) if config.lang else batch["lang"]
    ids = batch["id"]
    if config.id_field is None:
        ids = text_ids(identities(texts, content[0]) if content else texts)
    splits = assign_splits(ids, config.splits, config.split_seed)
    sources = pa.repeat(pa.scalar(source), len(batch))
    columns = [ids, texts, langs, sources, batch["row"], splits, batch["metadata"], *content]
    return pa.record_batch(columns, schema=CONTENT_PART_SCHEMA if content else PART_SCHEMA), changes


def by_document(changes: NormalizationChanges, content: pa.Array) -> NormalizationChanges:
    """What was changed in text blocks, summed by document."""
    characters = np.zeros((len(content), changes.characters.shape[1]), np.int64)
    np.add.at(characters, text_block_documents(content), changes.characters)
    return NormalizationChanges(characters, changes.replaced)


def changed_by_unicode_form(raw: pa.Array, normalized: pa.Array, config: NormalizeConfig) -> pa.RecordBatch:
    """Documents of at most CHANGED_BYTES that the unicode form alone makes differ: cleaned, and normalized."""
    if config.unicode == "none":
        return pa.RecordBatch.from_pylist([], schema=CHANGED_SCHEMA)
    differs = pc.and_(pc.not_equal(raw, normalized), pc.less_equal(pc.binary_length(raw), CHANGED_BYTES))
    cleaned, _ = normalize(raw.filter(differs), config.model_copy(update={"unicode": "none"}))
    batch = pa.record_batch([cleaned, normalized.filter(differs)], schema=CHANGED_SCHEMA)
    return batch.filter(pc.not_equal(batch["cleaned"], batch["normalized"]))


class PartWriter:
    """Writes batches into parts of about PART_BYTES of text or PART_DOCUMENTS, row groups of about ROW_GROUP_BYTES."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self.folder = folder
        self.schema = schema
        self.parts: list[dict[str, Any]] = []
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._parquet: pq.ParquetWriter | None = None
        self._counts: Counter[str] = Counter()

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._waiting_bytes += batch.get_total_buffer_size()
        if self._waiting_bytes >= ROW_GROUP_BYTES:
            self._flush()
            if self._counts["bytes"] >= PART_BYTES or self._counts["documents"] >= PART_DOCUMENTS:
                self._end_part()

    def close(self) -> None:
        """Writes what waits; a unit without documents still has one part, with no rows."""
        self._flush()
        if self._parquet is not None or not self.parts:
            self._end_part()

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._waiting, schema=self.schema)
        self._waiting, self._waiting_bytes = [], 0
        if table.num_rows:
            self._open().write_table(table, row_group_size=table.num_rows)
            self._counts.update(count_table(table))

    def _open(self) -> pq.ParquetWriter:
        if self._parquet is None:
            path = self.folder / f"part-{len(self.parts):05d}.parquet"
            # Of text, the least and the greatest would be held five times over, for nobody.
            with_statistics = [name for name in PART_SCHEMA.names if name != "text"]
            self._parquet = pq.ParquetWriter(
                path,
                self.schema,
                compression="zstd",
                use_dictionary=["source", "lang"],
                write_statistics=with_statistics,
            )
        return self._parquet

    def _end_part(self) -> None:
        self._open().close()
        counts = {column: self._counts[column] for column in PARTS_SCHEMA.names[3:]}
        self.parts.append({"file": f"part-{len(self.parts):05d}.parquet", **counts})
        self._parquet, self._counts = None, Counter()


def count_table(table: pa.Table) -> dict[str, int]:
    sizes = pc.binary_length(table["text"])
    counts = {"documents": table.num_rows, "bytes": pc.sum(sizes).as_py()}
    for split in SPLITS:
        chosen = pc.equal(table["split"], split)
        counts[f"{split}_bytes"] = pc.sum(sizes.filter(chosen)).as_py() or 0
    return counts


def totals(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {column: sum(row[column] for row in rows) for column in PARTS_SCHEMA.names[3:]}


def write_parts(store: Store, refs: list[ObjectRef], folder: Path) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    problems, report = Problems(), NormalizationReport()
    for ref in refs:
        manifest = objects.read_manifest(store, ref)
        for part in manifest.counts["parts"]:
            rows.append({"object": str(ref), "sha256": manifest.file(part["file"]).sha256, **part})
        found = read_json(objects.folder_of(store, ref) / REPORT)
        problems.merge(Problems.from_json(found["reading"]))
        report.merge(NormalizationReport.from_json(found["normalization"]))
    pq.write_table(pa.Table.from_pylist(rows, schema=PARTS_SCHEMA), folder / "parts.parquet", compression="zstd")
    write_json(folder / REPORT, {"reading": problems.to_json(), "normalization": report.to_json()})
    return {"parts": len(rows), **totals(rows), "problems": problems.to_json(), "normalization": report.to_json()}


def reading_warnings(
    store: Store, config: CorpusConfig, made: list[tuple[ObjectRef, str]], first: SourceFile
) -> tuple[str, ...]:
    """A sentence for each kind of field that was named and that no document has a value in.

    `made`: units with the keys of their actions, whose counts tell it: other fields may give the same parts. `first`:
    the file of which the sentences name the fields.
    """
    if config.lang_field is None and not config.metadata_fields:
        return ()
    found = [counts for counts in (actions.counts_of(store, *one) for one in made) if counts["documents"]]
    if not found:
        return ()
    # Of units that were made before this was counted, nothing is known.
    unnamed = config.lang_field is not None and not any(counts.get("documents_with_language", 1) for counts in found)
    absent = set(config.metadata_fields).intersection(*(counts.get("absent_metadata", ()) for counts in found))
    said = [no_language(config.lang_field, first)] if unnamed and config.lang_field else []
    return (*said, *([no_metadata(sorted(absent), first)] if absent else []))


def read_parts(store: Store, folder: Path) -> list[Part]:
    """The parts of a normalized corpus, in order."""
    rows = pq.ParquetFile(folder / "parts.parquet").read().to_pylist()
    return [
        Part(
            ObjectRef.parse(row["object"]),
            objects.folder_of(store, ObjectRef.parse(row["object"])) / row["file"],
            row["sha256"],
            row["documents"],
            row["bytes"],
            {split: row[f"{split}_bytes"] for split in SPLITS},
        )
        for row in rows
    ]


def listed_parts(folder: Path) -> set[str]:
    """`unit/file` of every part that a normalized corpus lists."""
    rows = pq.ParquetFile(folder / "parts.parquet").read(columns=["object", "file"]).to_pylist()
    return {f"{row['object']}/{row['file']}" for row in rows}


def read_part(path: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Row groups of a part as batches of the given columns; memory is bounded by one row group.

    With `text` comes `content`, where documents hold images.
    """
    with pq.ParquetFile(path) as parquet:
        if "text" in columns and "content" in parquet.schema_arrow.names:
            columns = [*columns, "content"]
        for group in range(parquet.num_row_groups):
            table = parquet.read_row_group(group, columns=columns).combine_chunks()
            yield from table.to_batches()
