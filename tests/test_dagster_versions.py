"""What Dagster knows of versions: what is stale and why, what retraining touches, and where everything came from."""

from pathlib import Path

import pytest

from tests.command_line import tokpack
from tests.graph_in_process import GraphInProcess
from tests.small_project import SmallProject, write_small_project
from tokpack_core.commands.lineage import lineage_json
from tokpack_core.commands.store_access import graph_of
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import open_store

SECOND = """\
  bpe_500:
    family: byte_bpe
    vocab_size: 500
    train_on: {docs: 1.0}
    sample_bytes: 100KB
    special_tokens: {eod: "<|endoftext|>"}
    checks: {rare_below: 2, max_rare_token_share: 0.5, min_vocabulary_utilization: 0.5}
datasets:
  other:
    tokenizer: bpe_500
    mixture: {docs: 1.0}
    packing: {sequence_length: 256}
    checks: {min_packing_utilization: 0.5}
"""
CHAIN = {
    "tokenizer_model/bpe_500",
    "vocabulary_report/bpe_500",
    "tokenized_shards/bpe_500/docs",
    "packed_sequences/other",
    "megatron_dataset/other",
}


def two_tokenizers(folder: Path) -> SmallProject:
    project = write_small_project(folder)
    project.edit("datasets:\n", SECOND)
    return project


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> GraphInProcess:
    graph = GraphInProcess(two_tokenizers(tmp_path_factory.mktemp("versions")))
    assert graph.materialize().success
    return graph


def test_two_tokenizers_share_a_normalized_corpus(graph: GraphInProcess) -> None:
    assert graph.stale() == {}
    store = open_store(graph.project.store)
    assert len(list((store.assets / "normalized_corpus" / "docs").glob("*.json"))) == 1
    digest = graph.versions()["normalized_corpus/docs"]
    for tokenizer in ("bpe_600", "bpe_500"):
        tags = graph.newest(f"tokenized_shards/{tokenizer}/docs").tags
        assert tags["dagster/input_data_version/normalized_corpus/docs"] == digest


@pytest.mark.parametrize(
    ("old", "new", "stale"),
    [
        ("sequence_length: 256", "sequence_length: 128", "packed_sequences/other"),
        ("vocab_size: 500", "vocab_size: 501", "tokenizer_model/bpe_500"),
        ("lang: code", "lang: py", "normalized_corpus/code"),
        ("mixture: {docs: 1.0}", "mixture: {docs: 2.0}", "megatron_dataset/other"),
        (
            "family: byte_bpe\n    vocab_size: 500",
            "family: byte_bpe\n    owners: [team:data]\n    vocab_size: 500",
            None,
        ),
        ("max_rare_token_share: 0.5", "max_rare_token_share: 0.4", None),
    ],
)
def test_a_changed_configuration_is_shown_where_it_matters(
    graph: GraphInProcess, old: str, new: str, stale: str | None
) -> None:
    path = graph.project.configs / "project.yaml"
    before = path.read_text(encoding="utf-8")
    graph.project.edit(old, new)
    try:
        assert graph.stale() == ({stale: [f"{stale} has a new code version"]} if stale else {})
    finally:
        path.write_text(before, encoding="utf-8")


def test_lineage_agrees_with_the_event_log(graph: GraphInProcess) -> None:
    """Every version that Dagster recorded as an input stands in the chain that the store tells, and none besides."""
    store = open_store(graph.project.store)
    known = graph_of(store)
    compared = 0
    for key, digest in graph.versions().items():
        up = lineage_json(known, ObjectRef(key.split("/")[0], digest))["up"]
        chain = assets_of(up)
        direct = {pair for branch in up["branches"] for pair in assets_of(branch, deep=False)}
        recorded = {
            (name.removeprefix("dagster/input_data_version/"), version)
            for name, version in graph.newest(key).tags.items()
            if name.startswith("dagster/input_data_version/")
        }
        gates = {pair for pair in recorded if pair[0].startswith(("source/", "vocabulary_report/"))}
        assert recorded - gates <= chain, key
        assert {pair for pair in direct if not pair[0].startswith("tokenizer_model/")} <= recorded, key
        assert (key, digest) in assets_of(up, deep=False)
        compared += len(recorded - gates)
    assert compared == 24
    said = tokpack(graph.project.folder, "lineage", "megatron_dataset/other", "--json", store=graph.project.store).json
    assert said["up"]["object"] == f"megatron_dataset/{graph.versions()['megatron_dataset/other']}"


def assets_of(node: dict, deep: bool = True) -> set[tuple[str, str]]:
    found = {(version["asset"], node["object"].partition("/")[2]) for version in node["versions"]}
    return found.union(*(assets_of(branch) for branch in node["branches"])) if deep else found


def test_a_frozen_tokenizer_is_stale_until_it_is_trained_again(tmp_path: Path) -> None:
    """Its text changed: a rebuild keeps it, still stale; retraining it touches its own chain alone."""
    graph = GraphInProcess(two_tokenizers(tmp_path))
    assert graph.materialize().success
    first = graph.versions()
    path = graph.project.folder / "data" / "docs" / "1.jsonl"
    path.write_text(path.read_text() + '{"id": "new", "text": "' + "qqzz " * 3000 + '", "lang": "en"}\n')
    assert graph.stale() == {"corpus/docs": ["source/docs has a new data version"]}
    assert graph.materialize().success
    waiting = {
        "tokenizer_model/bpe_500": ["normalized_corpus/docs has a new data version"],
        "tokenizer_model/bpe_600": ["normalized_corpus/docs has a new data version"],
    }
    assert graph.stale() == waiting
    kept = graph.newest("tokenizer_model/bpe_500")
    assert kept.tags["dagster/input_data_version/normalized_corpus/docs"] == first["normalized_corpus/docs"]
    assert "kept, though its training text changed since it was trained" in str(kept.metadata["stale"].value)
    assert graph.materialize().success
    assert graph.stale() == waiting

    before = graph.versions()
    assert graph.materialize("tokenizer_model/bpe_500", retrain=frozenset({"tokenizer_model/bpe_500"})).success
    del waiting["tokenizer_model/bpe_500"]
    new = "tokenizer_model/bpe_500 has a new data version"
    behind = {"vocabulary_report/bpe_500": [new], "tokenized_shards/bpe_500/docs": [new]}
    assert graph.stale() == waiting | behind
    assert graph.materialize().success
    after = graph.versions()
    assert {key for key in after if after[key] != before[key]} == CHAIN
    assert graph.stale() == waiting
