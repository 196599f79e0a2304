"""What changed between two versions of a dataset: source files, tokenizer, configuration, documents and tokens.

Shards that both versions share are the same documents and are not read; only the others are compared, by id.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tokpack_core.stages.trace import DatasetVersion
from tokpack_core.store import objects
from tokpack_core.store.lineage import LineageGraph
from tokpack_core.store.objects import ObjectRef

EXAMPLES = 10
Change = tuple[Any, Any]


@dataclass
class CorpusDiff:
    """Of one corpus: source files by name, and documents by id."""

    files_added: list[str] = field(default_factory=list)
    files_removed: list[str] = field(default_factory=list)
    files_changed: list[str] = field(default_factory=list)
    documents: Change = (0, 0)
    tokens: Change = (0, 0)
    documents_added: int = 0
    documents_removed: int = 0
    documents_retokenized: int = 0
    """Documents of both versions with another number of tokens."""
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class DatasetDiff:
    """Pairs are (old, new); `configuration` has only what differs, by stage and key."""

    old: str
    new: str
    tokenizer: Change
    tokenizer_changed: bool
    configuration: dict[str, Change]
    packs: Change
    corpora: dict[str, CorpusDiff]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def diff_datasets(graph: LineageGraph, old: DatasetVersion, new: DatasetVersion) -> DatasetDiff:
    """Raises StoreError when something that a version was made from is gone."""
    versions = (old, new)
    corpora = sorted({block.corpus for version in versions for block in version.blocks})
    return DatasetDiff(
        str(old.ref),
        str(new.ref),
        (str(old.tokenizer), str(new.tokenizer)),
        old.tokenizer != new.tokenizer,
        configuration_changes(graph, old, new),
        (sum(block.packs for block in old.blocks), sum(block.packs for block in new.blocks)),
        {corpus: diff_corpus(graph, corpus, old, new) for corpus in corpora},
    )


def configuration_changes(graph: LineageGraph, old: DatasetVersion, new: DatasetVersion) -> dict[str, Change]:
    before, after = settings(graph, old), settings(graph, new)
    names = sorted({*before, *after})
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def settings(graph: LineageGraph, version: DatasetVersion) -> dict[str, Any]:
    """Parameters of the actions behind a version: `stage.key`."""
    found: dict[str, Any] = {}
    for ref in (version.ref, version.plans, version.tokenizer, *corpus_units(graph, version).values()):
        action = graph.action(ref)
        found |= {f"{ref.stage}.{name}": value for name, value in (action.parameters if action else {}).items()}
    return found


def corpus_units(graph: LineageGraph, version: DatasetVersion) -> dict[str, ObjectRef]:
    """One unit of normalized text of each corpus, whose parameters hold for all."""
    return {block.corpus: next(iter(normalized_units(graph, block.shards)), version.ref) for block in version.blocks}


def normalized_units(graph: LineageGraph, shards: list[ObjectRef]) -> list[ObjectRef]:
    units: list[ObjectRef] = []
    for shard in shards:
        action = graph.action(shard)
        units += graph.files.get(action.inputs["part"], [])[:1] if action else []
    return list(dict.fromkeys(units))


def shards_of(version: DatasetVersion, corpus: str) -> list[ObjectRef]:
    return list(dict.fromkeys(s for block in version.blocks if block.corpus == corpus for s in block.shards))


def source_files(graph: LineageGraph, shards: list[ObjectRef]) -> dict[str, str]:
    """sha256 by name of the files behind shards."""
    found: dict[str, str] = {}
    for unit in normalized_units(graph, shards):
        found |= graph.sources.get(unit, {})
    return found


def diff_corpus(graph: LineageGraph, corpus: str, old: DatasetVersion, new: DatasetVersion) -> CorpusDiff:
    before, after = shards_of(old, corpus), shards_of(new, corpus)
    old_files, new_files = source_files(graph, before), source_files(graph, after)
    both = old_files.keys() & new_files.keys()
    found = CorpusDiff(
        sorted(new_files.keys() - old_files.keys()),
        sorted(old_files.keys() - new_files.keys()),
        sorted(name for name in both if old_files[name] != new_files[name]),
    )
    found.documents, found.tokens = (
        (sum(count(old, s, name) for s in before), sum(count(new, s, name) for s in after))
        for name in ("documents", "tokens")
    )
    shared = set(before) & set(after)
    compare_documents(found, old, [s for s in before if s not in shared], new, [s for s in after if s not in shared])
    return found


def count(version: DatasetVersion, shard: ObjectRef, name: str) -> int:
    return int(objects.read_manifest(version.store, shard).counts[name])


def compare_documents(
    found: CorpusDiff, old: DatasetVersion, before: list[ObjectRef], new: DatasetVersion, after: list[ObjectRef]
) -> None:
    old_rows, new_rows = read_documents(old, before), read_documents(new, after)
    added = new_rows.filter(pc.invert(pc.is_in(new_rows["id"], value_set=old_rows["id"])))
    removed = old_rows.filter(pc.invert(pc.is_in(old_rows["id"], value_set=new_rows["id"])))
    joined = old_rows.join(new_rows, "id", right_suffix="_new", join_type="inner", use_threads=False)
    found.documents_added, found.documents_removed = added.num_rows, removed.num_rows
    found.documents_retokenized = pc.sum(pc.not_equal(joined["tokens"], joined["tokens_new"])).as_py() or 0
    found.examples = [f"+ {i}" for i in added["id"][:EXAMPLES].to_pylist()]
    found.examples += [f"- {i}" for i in removed["id"][:EXAMPLES].to_pylist()]


def read_documents(version: DatasetVersion, shards: list[ObjectRef]) -> pa.Table:
    """Columns id and tokens of all documents of the shards."""
    paths = [objects.require_object(version.store, shard) / "documents.parquet" for shard in shards]
    tables = [pq.ParquetFile(path).read(columns=["id", "tokens"]) for path in paths]
    empty = pa.schema({"id": pa.string(), "tokens": pa.int64()}).empty_table()
    return pa.concat_tables([empty, *tables])
