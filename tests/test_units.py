"""What a change costs, in units that run: whole files of real size, through the stages as Dagster calls them."""

import json
import os
import random
import signal
from pathlib import Path

import pytest

from tests.small_project import SmallProject
from tokpack_core.engine import LocalEngine
from tokpack_core.stages.held_reader import held_dataset
from tokpack_core.stages.unit import Progress, Unit, run_units
from tokpack_core.store import history, objects
from tokpack_core.store.actions import Action
from tokpack_core.store.garbage_collection import collect, plan
from tokpack_core.store.store import open_store

CONFIG = """\
corpora:
  web: {paths: [data], id_field: id, lang: en}
tokenizers:
  tok:
    family: byte_bpe
    vocab_size: 400
    train_on: {web: 1.0}
    sample_bytes: 300KB
    special_tokens: {eod: "<|endoftext|>"}
    checks: {rare_below: 1, max_rare_token_share: 1.0, min_vocabulary_utilization: 0.0}
datasets:
  base:
    tokenizer: tok
    mixture: {web: 1.0}
    packing: {strategy: best_fit, sequence_length: 512}
"""
SENTENCE = "content addressed units are made of whole files so that one more costs little and nothing else runs"


def write_file(folder: Path, name: str, size: int) -> None:
    words = random.Random(name)
    with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
        written = number = 0
        while written < size:
            text = " ".join(words.choices(SENTENCE.split(" "), k=words.randint(20, 800)))
            written += file.write(json.dumps({"id": f"{name}-{number}", "text": text}) + "\n")
            number += 1


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    for folder in ("configs", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "configs" / "project.yaml").write_text(CONFIG)
    return SmallProject(tmp_path)


def test_one_file_more_in_fifty_runs_one_or_two_units_of_each_kind(project: SmallProject) -> None:
    for number in range(50):
        write_file(project.folder / "data", f"{number:03d}", 1_500_000)
    first = project.build(workers=2)
    assert first["normalized_corpus/web"].units_run >= 4
    write_file(project.folder / "data", "0255", 1_500_000)
    again = project.build(workers=2)
    ran = {key: built.units_run for key, built in again.items()}
    reused = {key: built.units_reused for key, built in again.items()}
    assert ran["tokenizer_model/tok"] == 0
    # One more than the units is the asset's own list of them.
    assert 2 <= ran["normalized_corpus/web"] <= 3
    assert 2 <= ran["tokenized_shards/tok/web"] <= 3
    assert reused["normalized_corpus/web"] >= first["normalized_corpus/web"].units_run - 3
    assert reused["tokenized_shards/tok/web"] >= first["tokenized_shards/tok/web"].units_run - 3
    assert 2 <= ran["packed_sequences/base"] <= 1 + 2 * 3
    (project.folder / "data" / "0255.jsonl").unlink()
    back = project.build(workers=2)
    assert back["megatron_dataset/base"].entry.object == first["megatron_dataset/base"].entry.object
    assert sum(built.units_run for key, built in back.items() if not key.startswith("corpus/")) == 0


def test_twenty_thousand_tiny_files_make_tens_of_units(project: SmallProject) -> None:
    for number in range(20_000):
        name = f"{number:05d}"
        (project.folder / "data" / f"{name}.jsonl").write_text(f'{{"id": "{name}", "text": "file {name}"}}\n')
    built = project.build("normalized_corpus/web", workers=2)["normalized_corpus/web"]
    assert built.counts["documents"] == 20_000
    assert 20 < built.units_run < 80


def test_a_reader_keeps_its_dataset_and_ends_with_its_process(project: SmallProject) -> None:
    write_file(project.folder / "data", "a", 200_000)
    project.build()
    write_file(project.folder / "data", "b", 200_000)
    project.build()
    store = project.work().store
    old, _ = (entry.object for entry in history.entries(store, "megatron_dataset/base"))
    prefix = objects.folder_of(store, old) / "web" / "train_512"
    opened, ready = os.pipe()
    child = os.fork()
    if child == 0:
        with held_dataset(prefix) as dataset:
            os.write(ready, b"%d" % len(dataset))
            signal.pause()
        os._exit(0)
    assert int(os.read(opened, 20)) > 0
    collect(store, plan(store, 1, 0))
    assert objects.exists(store, old)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    collect(store, plan(store, 1, 0))
    assert not objects.exists(store, old)


def test_units_that_are_alike_are_counted_one_by_one(tmp_path: Path) -> None:
    """Two empty corpora have one packing block, and progress ends at two of two."""
    seen: list[Progress] = []
    units = [Unit(Action("test_unit", 1), write_nothing)] * 2
    run_units(open_store(tmp_path, create=True), LocalEngine(1), units, seen.append)
    assert [(progress.done, progress.total, progress.weight_done) for progress in seen] == [(1, 2, 1), (2, 2, 2)]


def write_nothing(folder: Path) -> dict[str, int]:
    return {}
