"""Workers without a unit of their own help to encode the shards of others, and no byte tells."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.small_project import write_small_project
from tests.test_graph import tree_digest
from tokpack_core.engine import LocalEngine, threads_of_each
from tokpack_core.stages import normalize, shards
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.stages.sample import corpus_parts
from tokpack_core.stages.shards import Framing
from tokpack_core.stages.unit import Unit, run_units
from tokpack_core.store import objects
from tokpack_core.store.actions import Action
from tokpack_core.store.store import open_store

UP_TO_SHARDS = ("corpus/docs", "corpus/code", "normalized_corpus/docs", "normalized_corpus/code")


def test_threads_change_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalize, "ROW_GROUP_BYTES", 20_000)
    project = write_small_project(tmp_path)
    lines = [json.dumps({"id": f"row {row}", "text": f"row {row}. " * 100, "lang": "en"}) + "\n" for row in range(6000)]
    (project.folder / "data" / "docs" / "long.jsonl").write_text("".join(lines))
    project.build(*UP_TO_SHARDS, "tokenizer_model/bpe_600")
    work = project.work()
    (part,) = corpus_parts(work, "docs")
    with pq.ParquetFile(part.path) as parquet:
        assert parquet.num_row_groups > 5
    _, folder = tokenizer_stage.current_tokenizer(work, "bpe_600")
    found, counts = [], []
    for threads in (1, 3):
        out = tmp_path / f"{threads}"
        out.mkdir()
        counts.append(shards.write_shard(folder, Framing(False), part.path, part.sha256, out, threads))
        found.append(tree_digest(out))
    assert found[0] == found[1]
    assert counts[0] == counts[1]
    assert counts[0]["documents"] == part.documents


@pytest.mark.parametrize(("workers", "units", "threads"), [(1, 1, 1), (2, 1, 2), (2, 2, 1), (8, 3, 2), (2, 5, 1)])
def test_workers_are_shared_out(workers: int, units: int, threads: int) -> None:
    assert threads_of_each(LocalEngine(workers), units) == threads


@pytest.mark.parametrize(("weight", "in_threads", "told"), [(10**9, True, 6), (10**9, False, 0), (10, True, 1)])
def test_a_lone_unit_is_told_how_many_threads_it_has(tmp_path: Path, weight: int, in_threads: bool, told: int) -> None:
    def build(folder: Path, threads: int = 0) -> dict[str, Any]:
        (folder / "a").write_text("a")
        return {"threads": threads}

    store = open_store(tmp_path / "store", create=True)
    lone = Unit(Action("stage", 1), build, weight, in_threads=in_threads)
    (ref,) = run_units(store, LocalEngine(6), [lone], lambda _: None).refs
    assert objects.read_manifest(store, ref).counts == {"threads": told}
