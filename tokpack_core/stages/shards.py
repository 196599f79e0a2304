"""tokenized_shards/<tokenizer>/<corpus>: a Megatron `.bin/.idx` for each part, documents as sequences.

A unit is one part. It publishes `part.bin`, `part.idx` and `documents.parquet` (id, lang, source, row, split, bytes,
chars, tokens; one row a document, in step with the index, empty ones included). Each non-empty document ends in
exactly one EOD, and starts with BOS if the tokenizer's configuration says so. The asset's object lists its units in
`shards.parquet`. A tokenizer whose report fails a check gets no shards.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tokpack_core.errors import ConfigError
from tokpack_core.megatron.indexed_dataset import dtype_for
from tokpack_core.megatron.shards import ShardWriter
from tokpack_core.stages import report as report_stage
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.stages.asset import Built, Workplace, current, finish
from tokpack_core.stages.normalize import Part, read_part
from tokpack_core.stages.sample import corpus_parts
from tokpack_core.stages.unit import Unit, run_units
from tokpack_core.store import objects
from tokpack_core.store.actions import Action, library_versions
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.framing import framed

STAGE = "tokenized_shards"
UNIT_STAGE = "tokenized_part"
VERSION = 1

DOCUMENTS_SCHEMA = pa.schema(
    {"id": pa.string(), "lang": pa.string(), "source": pa.string(), "row": pa.int64(), "split": pa.string()}
    | {"bytes": pa.int64(), "chars": pa.int64(), "tokens": pa.int64()}
)
SHARDS_SCHEMA = pa.schema(
    {"object": pa.string(), "part": pa.string(), "documents_sha256": pa.string()}
    | {"documents": pa.int64(), "empty_documents": pa.int64(), "tokens": pa.int64(), "bytes": pa.int64()}
)
SUMMED = SHARDS_SCHEMA.names[3:]


@dataclass(frozen=True)
class Shard:
    """The tokens of one part.

    Attributes:
        part: sha256 of the normalized part.
        documents_sha256: content of documents.parquet, which is all that packing depends on.
    """

    object: ObjectRef
    folder: Path
    part: str
    documents_sha256: str
    documents: int
    tokens: int


def asset_key(tokenizer: str, corpus: str) -> str:
    return f"tokenized_shards/{tokenizer}/{corpus}"


def build(work: Workplace, tokenizer: str, corpus: str) -> Built:
    report_stage.require_passed(work, tokenizer)
    ref, folder = tokenizer_stage.current_tokenizer(work, tokenizer)
    bos = work.project.tokenizers[tokenizer].bos
    special_tokens = objects.read_manifest(work.store, ref).counts["special_tokens"]
    if bos and special_tokens["bos"] == special_tokens["eod"]:
        raise ConfigError(
            f"tokenizers.{tokenizer}.bos: BOS and EOD are one token ({special_tokens['eod']}), and a document has one "
            "EOD, at its end; remove `bos: true` or name another token in special_tokens.bos"
        )
    units = [make_unit(ref, folder, bos, part) for part in corpus_parts(work, corpus)]
    results = run_units(work.store, work.engine, units, work.on_progress)
    inputs = {"tokenizer": str(ref), "units": [str(r) for r in results.refs]}
    unit = Unit(Action(STAGE, VERSION, inputs=inputs), partial(write_shards, work.store, ref, results.refs))
    return finish(work, asset_key(tokenizer, corpus), unit, results)


def make_unit(tokenizer: ObjectRef, tokenizer_folder: Path, bos: bool, part: Part) -> Unit:
    action = Action(
        UNIT_STAGE,
        VERSION,
        {"bos": bos},
        {"tokenizer": str(tokenizer), "part": part.sha256},
        library_versions(*tokenizer_stage.LIBRARIES, "pyarrow"),
    )
    return Unit(action, partial(write_shard, tokenizer_folder, bos, part.path, part.sha256), part.bytes)


def write_shard(tokenizer_folder: Path, bos: bool, part: Path, part_sha256: str, folder: Path) -> dict[str, Any]:
    tokenizer = tokenizer_stage.load(tokenizer_folder)
    eod = tokenizer.special_tokens["eod"]
    start = tokenizer.special_tokens["bos"] if bos else None
    counts: Counter[str] = Counter()
    columns = [name for name in DOCUMENTS_SCHEMA.names if name not in ("bytes", "chars", "tokens")]
    with (
        ShardWriter(folder / "part", dtype_for(tokenizer.vocab_size), tokenizer.vocab_size) as shard,
        pq.ParquetWriter(folder / "documents.parquet", DOCUMENTS_SCHEMA, compression="zstd") as documents,
    ):
        for batch in read_part(part, [*columns, "text"]):
            texts = batch["text"]
            encoded = framed(tokenizer.encode(texts), non_empty(texts), start, eod)
            shard.append(encoded)
            rows = document_rows(batch.select(columns), texts, encoded)
            documents.write_batch(rows)
            counts.update(count_rows(rows))
    return {"part": part_sha256} | {name: counts[name] for name in SUMMED}


def non_empty(texts: pa.Array) -> np.ndarray:
    return pc.greater(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False)


def document_rows(described: pa.RecordBatch, texts: pa.Array, encoded: Encoded) -> pa.RecordBatch:
    sizes = [pc.binary_length(texts).cast(pa.int64()), pc.utf8_length(texts).cast(pa.int64())]
    tokens = pa.array(np.diff(encoded.offsets))
    return pa.record_batch([*described.columns, *sizes, tokens], schema=DOCUMENTS_SCHEMA)


def count_rows(rows: pa.RecordBatch) -> dict[str, int]:
    return {
        "documents": len(rows),
        "empty_documents": pc.sum(pc.equal(rows["tokens"], 0)).as_py() or 0,
        "tokens": pc.sum(rows["tokens"]).as_py() or 0,
        "bytes": pc.sum(rows["bytes"]).as_py() or 0,
    }


def write_shards(store: Store, tokenizer: ObjectRef, refs: list[ObjectRef], folder: Path) -> dict[str, Any]:
    rows = []
    for ref in refs:
        manifest = objects.read_manifest(store, ref)
        sha256 = manifest.file("documents.parquet").sha256
        rows.append({"object": str(ref), "documents_sha256": sha256, **manifest.counts})
    pq.write_table(pa.Table.from_pylist(rows, schema=SHARDS_SCHEMA), folder / "shards.parquet", compression="zstd")
    return {"tokenizer": str(tokenizer), "shards": len(rows)} | {n: sum(row[n] for row in rows) for n in SUMMED}


def read_shards(work: Workplace, tokenizer: str, corpus: str) -> list[Shard]:
    """The newest shards of a corpus, in the order of its parts."""
    _, folder = current(work, asset_key(tokenizer, corpus))
    rows = pq.read_table(folder / "shards.parquet", memory_map=False).to_pylist()
    shards = []
    for row in rows:
        ref = ObjectRef.parse(row["object"])
        where = objects.require_object(work.store, ref)
        shards.append(Shard(ref, where, row["part"], row["documents_sha256"], row["documents"], row["tokens"]))
    return shards
