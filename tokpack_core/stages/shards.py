"""tokenized_shards/<tokenizer>/<corpus>: a Megatron `.bin/.idx` for each part, documents as sequences.

A unit is one part. It publishes `part.bin`, `part.idx` and `documents.parquet` (id, lang, source, row, split, bytes,
chars, tokens; one row a document, in step with the index, empty ones included). Each non-empty document ends in
exactly one EOD, and starts with BOS if the tokenizer's configuration says so. The asset's object lists its units in
`shards.parquet`. A tokenizer whose report fails a check gets no shards.

Where documents hold images, each image is a run of the placeholder token, as long as the vision scheme says, and
documents.parquet has a column `images`: a list of (start, length, mode, image), starts counted from the document's
first token, BOS included. The counts say what images cost under every scheme.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tokpack_core.config import Project
from tokpack_core.config.vision import VisionConfig
from tokpack_core.corpus.content import per_text_block
from tokpack_core.errors import ConfigError
from tokpack_core.megatron.indexed_dataset import dtype_for
from tokpack_core.megatron.shards import ShardWriter
from tokpack_core.stages import report as report_stage
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.stages.asset import Built, Workplace, current, finish
from tokpack_core.stages.normalize import Part, read_part
from tokpack_core.stages.sample import corpus_parts
from tokpack_core.stages.unit import Unit, Written, run_units
from tokpack_core.store import actions, objects
from tokpack_core.store.actions import Action, library_versions
from tokpack_core.store.objects import ObjectFile, ObjectRef
from tokpack_core.store.store import Store
from tokpack_core.threads import map_in_threads
from tokpack_core.tokenizers.agreement.checked_encoding import encode_checked
from tokpack_core.tokenizers.agreement.encoder_choice import encoder_choice
from tokpack_core.tokenizers.agreement.special_tokens_in_text import encode_with_special_tokens
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.framing import framed, without_last
from tokpack_core.tokenizers.huggingface.interleaved import (
    SPANS,
    ImageCounts,
    bounded_batches,
    encode_interleaved,
    encode_text,
)
from tokpack_core.tokenizers.modular.sub_tokenizers import EncodeBy, encode_plain, sub_tokenizers
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.vision.schemes import warnings

STAGE = "tokenized_shards"
UNIT_STAGE = "tokenized_part"
DOCUMENTS = "documents.parquet"
VERSION = 1

DOCUMENTS_SCHEMA = pa.schema(
    {"id": pa.string(), "lang": pa.string(), "source": pa.string(), "row": pa.int64(), "split": pa.string()}
    | {"bytes": pa.int64(), "chars": pa.int64(), "tokens": pa.int64()}
)
DESCRIBED = DOCUMENTS_SCHEMA.names[:5]
IMAGES_SCHEMA = DOCUMENTS_SCHEMA.append(pa.field("images", SPANS))
"""Where documents hold images."""
SHARDS_SCHEMA = pa.schema(
    {"object": pa.string(), "part": pa.string(), "documents_sha256": pa.string()}
    | {"documents": pa.int64(), "empty_documents": pa.int64(), "tokens": pa.int64(), "bytes": pa.int64()}
)
SUMMED = SHARDS_SCHEMA.names[3:]
SLICE_BYTES = 2**22
Slice = tuple[pa.RecordBatch, bool]
"""Some documents of a batch, and whether they are its last."""


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


@dataclass(frozen=True)
class Framing:
    """How a document becomes tokens: with a BOS before them, with images, with special tokens in its text, with the ids
    of its language's sub-tokenizer."""

    bos: bool
    vision: VisionConfig | None = None
    parse_special_tokens: bool = False
    by_language: bool = False

    def parameters(self) -> dict[str, Any]:
        vision = {"vision": self.vision.parameters()} if self.vision else {}
        chosen = {"parse_special_tokens": self.parse_special_tokens, "by_language": self.by_language}
        return {"bos": self.bos} | vision | {name: True for name, on in chosen.items() if on}

    def encode(self, tokenizer: Tokenizer, batch: pa.RecordBatch) -> tuple[Encoded, pa.Array | None, ImageCounts]:
        """Documents of a part as they stand in shards: tokens, the column `images` if there are any, and their counts.

        Each non-empty document ends in exactly one EOD: one that its text ends in counts.
        """
        eod = tokenizer.special_tokens["eod"]
        bos = tokenizer.special_tokens["bos"] if self.bos else None
        one: EncodeBy = encode_with_special_tokens if self.parse_special_tokens else encode_plain
        if self.by_language:
            languages = per_text_block(batch, "lang")
            encode = partial(sub_tokenizers(tokenizer).encode, languages=languages, encode=one)
        else:
            encode = partial(one, tokenizer)
        if self.vision is None:
            encoded = encode_text(tokenizer, batch, encode)
            filled = pc.greater(pc.binary_length(batch["text"]), 0).to_numpy(zero_copy_only=False)
            column, counts = None, ImageCounts()
        else:
            placeholder = tokenizer.special_tokens["image"]
            encoded, images, counts = encode_interleaved(tokenizer, batch, self.vision, placeholder, encode)
            filled = encoded.lengths > 0
            column = images.as_column(0 if bos is None else 1)
        parsed = without_last(encoded, eod) if self.parse_special_tokens else encoded
        return framed(parsed, filled, bos, eod), column, counts


def framing_of(action: Action) -> Framing:
    """How the documents of a shard were encoded, by the action that made it."""
    vision = action.parameters.get("vision")
    parse = action.parameters.get("parse_special_tokens", False)
    by_language = action.parameters.get("by_language", False)
    return Framing(action.parameters["bos"], VisionConfig(**vision) if vision else None, parse, by_language)


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
    vision = vision_of(work.project, tokenizer, corpus)
    if vision is not None and "image" not in special_tokens:
        raise ConfigError(
            f"tokenizers.{tokenizer}: its files name no placeholder of images; say which token it is in "
            "special_tokens: {image: ...}"
        )
    framing = framing_in(work.project, tokenizer, corpus)
    units = [make_unit(ref, folder, framing, part) for part in corpus_parts(work, corpus)]
    results = run_units(work.store, work.engine, units, work.on_progress)
    inputs = {"tokenizer": str(ref), "units": [str(r) for r in results.refs]}
    made = list(zip(results.refs, [unit.action.key for unit in units], strict=True))
    parameters = {"vision": vision.parameters()} if vision else {}
    action = Action(STAGE, VERSION, parameters, inputs)
    unit = Unit(action, partial(write_shards, work.store, ref, made, vision))
    return finish(work, asset_key(tokenizer, corpus), unit, results)


def framing_in(project: Project, tokenizer: str, corpus: str) -> Framing:
    """How the documents of a corpus are to be encoded, by the configuration."""
    bos, parse = project.tokenizers[tokenizer].bos, project.corpora[corpus].parse_special_tokens
    by_language = project.tokenizers[tokenizer].encode_by_language
    return Framing(bos, vision_of(project, tokenizer, corpus), parse, by_language)


def vision_of(project: Project, tokenizer: str, corpus: str) -> VisionConfig | None:
    """What images of a corpus become, None for a corpus of text."""
    return project.tokenizers[tokenizer].vision if project.corpora[corpus].content_field is not None else None


def parameters(project: Project, tokenizer: str, corpus: str) -> Any:
    """All of the configuration that shapes the shards of a corpus."""
    framing = framing_in(project, tokenizer, corpus)
    if framing.parse_special_tokens or framing.by_language:
        return framing.parameters()
    return [framing.bos, framing.vision.parameters()] if framing.vision else framing.bos


def make_unit(tokenizer: ObjectRef, tokenizer_folder: Path, framing: Framing, part: Part) -> Unit:
    action = Action(
        UNIT_STAGE,
        VERSION,
        framing.parameters(),
        {"tokenizer": str(tokenizer), "part": part.sha256},
        library_versions(*tokenizer_stage.LIBRARIES, "pyarrow"),
    )
    write = partial(write_shard, tokenizer_folder, framing, part.path, part.sha256)
    return Unit(action, write, part.bytes, (ObjectFile(tokenizer), part.file), in_threads=True)


def write_shard(
    tokenizer_folder: Path, framing: Framing, part: Path, part_sha256: str, folder: Path, threads: int = 1
) -> Written:
    """Row groups are encoded in `threads` and written in order, so the bytes do not depend on their number."""
    tokenizer = tokenizer_stage.load(tokenizer_folder)
    counts: Counter[str] = Counter()
    images = ImageCounts()
    schema = IMAGES_SCHEMA if framing.vision else DOCUMENTS_SCHEMA
    with (
        ShardWriter(folder / "part", dtype_for(tokenizer.vocab_size), tokenizer.vocab_size) as shard,
        pq.ParquetWriter(folder / DOCUMENTS, schema, compression="zstd") as documents,
    ):
        batches = bounded_batches(read_part(part, [*DESCRIBED, "text"]), framing.vision)
        encode = partial(encode_with_rows, tokenizer, framing)
        waiting: list[pa.RecordBatch] = []
        for encoded, rows, found, last in map_in_threads(encode, in_slices(batches), text_bytes, threads):
            shard.append(encoded)
            waiting.append(rows)
            if last:
                documents.write_batch(pa.concat_batches(waiting))
                waiting.clear()
            counts.update(count_rows(rows))
            images += found
    counted = {"part": part_sha256} | {name: counts[name] for name in SUMMED} | encoder_choice(tokenizer).as_json()
    return Written(counted | ({"vision": images.as_dict()} if framing.vision else {}), shard.hashed)


def in_slices(batches: Iterable[pa.RecordBatch]) -> Iterator[Slice]:
    """Each batch in slices of about SLICE_BYTES of text, so that no thread waits long for another's last one."""
    for batch in batches:
        step = -(-len(batch) * SLICE_BYTES // max(batch["text"].nbytes, SLICE_BYTES))
        for start in range(0, len(batch), step):
            yield batch.slice(start, step), start + step >= len(batch)


def encode_with_rows(
    tokenizer: Tokenizer, framing: Framing, item: Slice
) -> tuple[Encoded, pa.RecordBatch, ImageCounts, bool]:
    """The documents of a slice, what documents.parquet says of them, and whether it is the last of its batch."""
    batch, last = item
    encoded, spans, found = encode_described(tokenizer, batch, framing)
    return encoded, document_rows(batch, encoded, spans), found, last


def text_bytes(item: Slice) -> int:
    return int(item[0]["text"].nbytes)


def encode_described(
    tokenizer: Tokenizer, batch: pa.RecordBatch, framing: Framing
) -> tuple[Encoded, pa.Array | None, ImageCounts]:
    """The documents of a batch. Raises InputError naming the source of a document that cannot be encoded."""

    def name(number: int) -> str:
        source, row, document = (batch[column][number].as_py() for column in ("source", "row", "id"))
        return f"{source}, row {row}: document {document!r}"

    encode = partial(framing.encode, tokenizer)
    return encode_checked(encode, batch, itemgetter(0), tokenizer.vocab_size, name)


def document_rows(batch: pa.RecordBatch, encoded: Encoded, images: pa.Array | None) -> pa.RecordBatch:
    texts = batch["text"]
    sizes = [pc.binary_length(texts).cast(pa.int64()), pc.utf8_length(texts).cast(pa.int64())]
    columns = [batch[name] for name in DESCRIBED] + sizes + [pa.array(np.diff(encoded.offsets))]
    if images is None:
        return pa.record_batch(columns, schema=DOCUMENTS_SCHEMA)
    return pa.record_batch([*columns, images], schema=IMAGES_SCHEMA)


def count_rows(rows: pa.RecordBatch) -> dict[str, int]:
    return {
        "documents": len(rows),
        "empty_documents": pc.sum(pc.equal(rows["tokens"], 0)).as_py() or 0,
        "tokens": pc.sum(rows["tokens"]).as_py() or 0,
        "bytes": pc.sum(rows["bytes"]).as_py() or 0,
    }


def write_shards(
    store: Store, tokenizer: ObjectRef, made: list[tuple[ObjectRef, str]], vision: VisionConfig | None, folder: Path
) -> dict[str, Any]:
    """Lists the shards, each given with the key of its action."""
    rows = []
    images = ImageCounts()
    differing: set[str] = set()
    for ref, key in made:
        sha256 = objects.read_manifest(store, ref).file(DOCUMENTS).sha256
        recorded = actions.counts_of(store, ref, key)
        differing.update(recorded.get("encoder_warnings", ()))
        rows.append({"object": str(ref), "documents_sha256": sha256, **recorded})
        images += ImageCounts.from_dict(recorded.get("vision", {}))
    pq.write_table(pa.Table.from_pylist(rows, schema=SHARDS_SCHEMA), folder / "shards.parquet", compression="zstd")
    counts: dict[str, Any] = {"tokenizer": str(tokenizer), "shards": len(rows)} | {
        n: sum(row[n] for row in rows) for n in SUMMED
    }
    if differing:
        counts["encoder_warnings"] = sorted(differing)
    if vision is None:
        return counts
    return counts | {"vision": {"scheme": vision.scheme, **images.as_dict(), "warnings": warnings(vision)}}


def listed_units(folder: Path) -> set[str]:
    return set(pq.ParquetFile(folder / "shards.parquet").read(columns=["object"])["object"].to_pylist())


def read_shards(work: Workplace, tokenizer: str, corpus: str) -> list[Shard]:
    """The newest shards of a corpus, in the order of its parts."""
    _, folder = current(work, asset_key(tokenizer, corpus))
    rows = pq.ParquetFile(folder / "shards.parquet").read().to_pylist()
    shards = []
    for row in rows:
        ref = ObjectRef.parse(row["object"])
        where = objects.folder_of(work.store, ref)
        shards.append(Shard(ref, where, row["part"], row["documents_sha256"], row["documents"], row["tokens"]))
    return shards
