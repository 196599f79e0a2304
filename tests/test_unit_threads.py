"""Workers without a unit of their own help with those of others, and no byte tells."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.small_project import write_small_project
from tests.test_graph import tree_digest
from tokpack_core.engine import LocalEngine, threads_of_each
from tokpack_core.stages import corpus, normalize, shards
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.stages.asset import current
from tokpack_core.stages.sample import corpus_parts
from tokpack_core.stages.shards import Framing
from tokpack_core.stages.unit import Unit, run_units
from tokpack_core.store import objects
from tokpack_core.store.actions import Action
from tokpack_core.store.store import open_store


def outputs(one: Unit, folder: Path) -> tuple[Any, dict[str, str]]:
    """Counts and digests of what a unit makes with three threads, which are those with one."""
    found = []
    for threads in (1, 3):
        out = folder / f"{threads}"
        out.mkdir(parents=True)
        found.append((one.build(out, threads=threads), tree_digest(out)))
    assert found[0] == found[1]
    return found[1]


def test_threads_change_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalize, "ROW_GROUP_BYTES", 20_000)
    project = write_small_project(tmp_path)
    lines = [json.dumps({"id": f"row {n}", "text": f"cafe\u0301 {n}. " * 90, "lang": "en"}) + "\n" for n in range(6000)]
    (project.folder / "data" / "docs" / "long.jsonl").write_text("".join(lines))
    project.build("corpus/docs", "corpus/code", "normalized_corpus/docs", "normalized_corpus/code")
    work = project.work()
    sources = {file.name: file for file in corpus.source_files(work, "docs")}
    files = corpus.read_inventory(current(work, "corpus/docs")[1])
    counts, digests = outputs(normalize.make_unit(work.project.corpora["docs"], files, sources), tmp_path / "parts")
    (part,) = corpus_parts(work, "docs")
    assert digests["part-00000.parquet"] == part.sha256
    assert counts["documents"] == part.documents > 6000
    with pq.ParquetFile(part.path) as parquet:
        assert parquet.num_row_groups > 5
    project.build("tokenizer_model/bpe_600")
    tokenizer = tokenizer_stage.current_tokenizer(work, "bpe_600")
    written, digests = outputs(shards.make_unit(*tokenizer, Framing(False), part), tmp_path / "shards")
    assert written.counts["documents"] == part.documents
    assert written.hashed == {"part.bin": digests["part.bin"]}


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
