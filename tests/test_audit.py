"""Audit and tracing: every difference between text and dataset is found, and none is made up."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import refused, tokpack
from tests.small_project import SmallProject, write_small_project
from tests.store_checks import alter_unseen
from tests.test_graph import expected_documents
from tokpack_core.megatron.indexed_reader import IndexedReader
from tokpack_core.stages import normalize
from tokpack_core.stages.asset import Built
from tokpack_core.stages.audit import audit_dataset
from tokpack_core.stages.audit_figures import Audit, chance_of_at_most, upper_bound
from tokpack_core.stages.trace import documents_of_pack, find_document, open_dataset
from tokpack_core.store.files import sha256_of
from tokpack_core.store.lineage import read_graph

DATASET = "megatron_dataset/base"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> SmallProject:
    return write_small_project(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="module")
def built(project: SmallProject) -> Built:
    return project.build()[DATASET]


def run_audit(project: SmallProject, built: Built, documents: int | None = None, seed: int = 0) -> Audit:
    store = project.work().store
    graph = read_graph(store)
    return audit_dataset(open_dataset(store, graph, built.entry.object), graph, documents, seed, [project.folder])


def test_a_sound_dataset_passes_token_by_token(project: SmallProject, built: Built) -> None:
    audit = run_audit(project, built)
    expected = [ids for corpus in ("docs", "code") for ids in expected_documents(project, corpus).values()]
    assert (audit.documents, audit.checked, audit.differing) == (len(expected), len(expected), 0)
    assert audit.tokens == sum(map(len, expected))
    assert "all documents were compared" in audit.conclusion()


def test_a_sample_is_seeded(project: SmallProject, built: Built) -> None:
    first, again, other = (run_audit(project, built, 30, seed) for seed in (1, 1, 2))
    assert first == again
    assert first.tokens != other.tokens
    assert 10 < first.checked < 60
    assert first.differing == 0


TWIN = """\
tokenizers:
  twin_{number}:
    family: pretrained
    path: twin/tokenizer.json
    train_on: {{docs: 1.0}}
    special_tokens: {special_tokens}
    checks: {{max_rare_token_share: 1.0, min_vocabulary_utilization: 0.0}}
datasets:
  of_twin_{number}:
    tokenizer: twin_{number}
    mixture: {{docs: 1.0}}
    packing: {{strategy: best_fit, sequence_length: 512}}
"""
TWINS = {1: '{eod: "<|endoftext|>"}', 2: '{eod: "<|endoftext|>", pad: "<|pad|>"}'}


def test_datasets_of_two_tokenizers_that_give_the_same_ids(tmp_path: Path) -> None:
    """As one vocabulary as .model and as tokenizer.json is: their shards and packs are the same objects."""
    project = write_small_project(tmp_path)
    model = project.build("tokenizer_model/bpe_600")["tokenizer_model/bpe_600"]
    (tmp_path / "twin").mkdir()
    shutil.copyfile(model.folder / "tokenizer.json", tmp_path / "twin" / "tokenizer.json")
    for number, special_tokens in TWINS.items():
        content = TWIN.format(number=number, special_tokens=special_tokens)
        (project.configs / f"twin_{number}.yaml").write_text(content, encoding="utf-8")
    keys = [f"megatron_dataset/of_twin_{number}" for number in TWINS]
    builds = project.build(*keys)
    assert builds["tokenizer_model/twin_1"].entry.object != builds["tokenizer_model/twin_2"].entry.object
    assert builds["packed_sequences/of_twin_1"].entry.object == builds["packed_sequences/of_twin_2"].entry.object
    for key in keys:
        audit = run_audit(project, builds[key])
        assert (audit.checked, audit.differing) == (audit.documents, 0)


def alter_token(path: Path) -> None:
    """Changes one token and puts size, time and mode back."""
    before = path.stat()
    path.chmod(0o644)
    tokens = np.fromfile(path, np.uint16)
    tokens[100] ^= 1
    tokens.tofile(path)
    path.chmod(before.st_mode)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("place", ["shard", "dataset"])
def test_one_wrong_token_is_found_its_document_named_and_the_file_blamed(tmp_path: Path, place: str) -> None:
    project = write_small_project(tmp_path)
    built = project.build()[DATASET]
    if place == "dataset":
        path = built.folder / "docs" / "train_512.bin"
    else:
        path = next((project.store / "objects" / "tokenized_part").glob("*/part.bin"))
    alter_token(path)
    audit = run_audit(project, built)
    assert audit.differing == 1
    assert len(audit.examples) == 1
    said = refused(tmp_path, "audit", DATASET, "--all", store=project.store)
    assert "1 of" in said
    assert f"{path}: content differs from its sha256; remove the object" in said


def test_an_altered_tokenizer_is_called_so(tmp_path: Path) -> None:
    project = write_small_project(tmp_path)
    project.build()
    path = next((project.store / "objects" / "tokenizer_model").glob("*/tokenizer.json"))
    alter_unseen(path)
    said = refused(tmp_path, "audit", DATASET, store=project.store)
    assert said.startswith(f"{path}: content differs from its sha256; remove the object tokenizer_model/")
    assert "differ:" not in said


def test_documents_come_from_their_source_files(tmp_path: Path) -> None:
    """With a record that names an altered file, so that the normalized text is no longer what the source gives."""
    project = write_small_project(tmp_path)
    built = project.build()[DATASET]
    store = project.work().store
    documents = run_audit(project, built).documents
    source = project.folder / "data" / "docs" / "1.jsonl"
    before = sha256_of(source)
    lines = source.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b" the ", b" teh ", 1)
    lines[5] = lines[5].replace(b'"id": "', b'"id": "renamed ')
    source.write_bytes(b"".join(lines))
    changed = run_audit(project, built)
    assert changed.differing == 0
    assert changed.not_from_source == {"data/docs/1.jsonl": "changed since it was read"}
    assert changed.from_source == documents - len(lines)
    for record in (store.actions / "normalized_part").iterdir():
        record.chmod(0o644)
        record.write_bytes(record.read_bytes().replace(before.encode(), sha256_of(source).encode()))
    audit = run_audit(project, built)
    assert (audit.from_source, audit.differing) == (documents, 2)
    ids = {json.loads(lines[3])["id"], json.loads(lines[5])["id"].removeprefix("renamed ")}
    assert {example.partition(" of docs")[0].strip("'") for example in audit.examples} == ids
    assert audit.causes == []


def test_without_its_sources_a_dataset_is_compared_from_normalized_text(tmp_path: Path) -> None:
    project = write_small_project(tmp_path)
    built = project.build()[DATASET]
    shutil.rmtree(project.folder / "data" / "code")
    audit = run_audit(project, built)
    assert audit.differing == 0
    assert audit.from_source == audit.checked - 10
    assert set(audit.not_from_source.values()) == {"no longer there"}
    run = tokpack(tmp_path, "audit", DATASET, "--all", store=project.store)
    assert "data/code/bisect.txt, data/code/csv.txt" in run.err
    assert "and 7 more: no longer there; their documents were compared from the normalized text in the store" in run.err


def test_a_file_of_many_parts_is_read_forward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalize, "ROW_GROUP_BYTES", 20_000)
    monkeypatch.setattr(normalize, "PART_BYTES", 40_000)
    project = write_small_project(tmp_path)
    lines = [json.dumps({"id": f"row {row}", "text": f"row {row}. " * 100, "lang": "en"}) + "\n" for row in range(4000)]
    (project.folder / "data" / "docs" / "long.jsonl").write_text("".join(lines))
    assets = project.build()
    built = assets[DATASET]
    assert assets["normalized_corpus/docs"].counts["parts"] > 3
    for documents in (None, 40):
        audit = run_audit(project, built, documents)
        assert audit.from_source == audit.checked > 10
        assert audit.differing == 0


def test_a_document_is_traced_to_its_tokens(project: SmallProject, built: Built) -> None:
    store = project.work().store
    version = open_dataset(store, read_graph(store), built.entry.object)
    expected = expected_documents(project, "docs")
    for document in [*sorted(expected)[::7], "empty"]:
        (place,) = find_document(version, document)
        tokens: list[int] = []
        for piece in place["segments"]:
            pack = IndexedReader(version.folder / piece["prefix"]).sequence(piece["pack"])
            tokens += pack[piece["offset"] : piece["offset"] + piece["length"]].tolist()
        assert tokens == expected[document]
        assert place["tokens"] == len(tokens)
        source = (project.folder / place["source"]).read_text().splitlines()[place["row"] - 1]
        assert f'"id": "{document}"' in source


def test_the_documents_of_a_pack_are_those_that_lead_to_it(project: SmallProject, built: Built) -> None:
    store = project.work().store
    version = open_dataset(store, read_graph(store), built.entry.object)
    segments = documents_of_pack(version, "docs/train_512", 3)
    assert [s.offset for s in segments] == [sum(s.length for s in segments[:i]) for i in range(len(segments))]
    for segment in segments:
        (place,) = find_document(version, segment.document)
        assert vars(segment) in place["segments"]


def test_the_commands(project: SmallProject, built: Built) -> None:
    found = tokpack(project.folder, "audit", DATASET, "--documents", "20", "--json", store=project.store).json
    assert found["differing"] == 0
    assert "with 95 % confidence fewer than" in found["conclusion"]
    traced = tokpack(project.folder, "lineage", DATASET, "--document", "assert", "--json", store=project.store).json
    assert traced[0]["corpus"] == "docs"
    assert traced[0]["ids"] == expected_documents(project, "docs")["assert"]
    assert "".join(traced[0]["texts"][:-1]).startswith('The "assert" statement')
    lines = tokpack(project.folder, "lineage", DATASET, "--document", "assert", store=project.store).out.splitlines()
    (tokens,) = [line for line in lines if line.startswith("  tokens  ")]
    assert tokens.startswith(f"  tokens  {traced[0]['ids'][0]} {traced[0]['texts'][0]!r}  ")
    assert tokens.endswith(f"  {traced[0]['ids'][-1]} {traced[0]['texts'][-1]!r}")
    assert tokens.count("  …  ") == 1
    shown = tokpack(project.folder, "lineage", DATASET, "--pack", "docs/train_512:0", store=project.store)
    assert " to " in shown.out
    assert "id 'nobody'" in refused(project.folder, "lineage", DATASET, "--document", "nobody", store=project.store)
    assert "no pack 999999" in refused(
        project.folder, "lineage", DATASET, "--pack", "docs/train_512:999999", store=project.store
    )
    assert "is no Megatron dataset" in refused(project.folder, "audit", "corpus/docs", store=project.store)


def test_the_bound_of_a_sample_without_a_difference() -> None:
    """0.95 = 1 - (1 - p)^n gives p = 1 - 0.05^(1/n); for 2,000 it is 0.1497 %."""
    assert upper_bound(0, 2000) == pytest.approx(1 - 0.05 ** (1 / 2000), rel=1e-9)
    assert f"{upper_bound(0, 2000):.2%}" == "0.15%"


def test_the_bound_of_a_sample_with_differences() -> None:
    """One-sided Clopper-Pearson by its definition: at the bound, k or fewer have a chance of 5 %."""
    for differing, checked in ((1, 10), (3, 50), (7, 400)):
        bound = upper_bound(differing, checked)
        assert chance_of_at_most(differing, checked, bound) == pytest.approx(0.05, abs=1e-6)
        assert bound > differing / checked
    assert upper_bound(5, 5) == 1.0
