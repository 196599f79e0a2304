"""The whole graph on real text: what is built, what is reused, what a change touches, what stops at a gate."""

import hashlib
import json
import mmap
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.small_project import SmallProject, write_small_project
from tokpack_core.config import SpecialTokens
from tokpack_core.errors import ConfigError, GateError, InputError
from tokpack_core.megatron.indexed_reader import IndexedReader
from tokpack_core.megatron.verify import verify
from tokpack_core.stages import export, normalize, pack, report, sample, shards
from tokpack_core.stages.graph import plan_graph
from tokpack_core.store import history, objects
from tokpack_core.tokenizers import registry

EVERY_ASSET = [
    "corpus/code",
    "normalized_corpus/code",
    "corpus/docs",
    "normalized_corpus/docs",
    "tokenizer_model/bpe_600",
    "vocabulary_report/bpe_600",
    "tokenized_shards/bpe_600/code",
    "tokenized_shards/bpe_600/docs",
    "packed_sequences/base",
    "megatron_dataset/base",
]


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    return write_small_project(tmp_path)


def tree_digest(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def objects_digest(project: SmallProject) -> dict[str, str]:
    return tree_digest(project.store / "objects")


def expected_documents(project: SmallProject, corpus: str, name: str = "bpe_600") -> dict[str, list[int]]:
    """Token ids of each document by id, encoded one by one with the published tokenizer, EOD at the end."""
    work = project.work()
    tokenizer = registry.load(
        objects.folder_of(work.store, history.require_latest(work.store, f"tokenizer_model/{name}").object),
        SpecialTokens(),
    )
    expected = {}
    for part in sample.corpus_parts(work, corpus):
        for row in pq.read_table(part.path).to_pylist():
            ids = tokenizer.encode(pa.array([row["text"]])).ids.tolist()
            expected[row["id"]] = [*ids, tokenizer.special_tokens["eod"]] if row["text"] else []
    return expected


def test_every_asset_is_built_and_every_token_arrives(project: SmallProject) -> None:
    built = project.build(workers=2)
    assert list(built) == EVERY_ASSET
    dataset = built["megatron_dataset/base"]
    for corpus in ("docs", "code"):
        expected = expected_documents(project, corpus)
        found = []
        eod = dataset.counts["eod"]
        for prefix in (path for path in export.prefixes(dataset) if path.parent.name == corpus):
            assert verify(prefix, vocab_size=600, sequence_length=512) == []
            assert verify(prefix.with_name(f"{prefix.name}_docs"), vocab_size=600) == []
            packs = IndexedReader(prefix)
            assert {len(packs.sequence(i)) for i in range(len(packs))} == {512}
            found += [token for i in range(len(packs)) for token in packs.sequence(i).tolist() if token != eod]
        wanted = [token for ids in expected.values() for token in ids[:-1]]
        assert sorted(found) == sorted(wanted)


def test_documents_keep_step_with_their_shard(project: SmallProject) -> None:
    project.build("tokenized_shards/bpe_600/docs")
    expected = expected_documents(project, "docs")
    work = project.work()
    seen = {}
    for shard in shards.read_shards(work, "bpe_600", "docs"):
        reader = IndexedReader(shard.folder / "part")
        bounds = reader.index.document_indices
        for row, document in enumerate(pq.read_table(shard.folder / "documents.parquet").to_pylist()):
            sequences = [reader.sequence(i).tolist() for i in range(bounds[row], bounds[row + 1])]
            tokens = [token for sequence in sequences for token in sequence]
            assert tokens == expected[document["id"]]
            assert document["tokens"] == len(tokens)
            seen[document["id"]] = document
    assert seen["empty"]["tokens"] == 0
    assert seen["decomposed"]["lang"] == "fr"
    assert seen["decomposed"]["chars"] == len("caf\u00e9 \u00c5ngstr\u00f6m")
    assert len(seen) == len(expected)


def test_nothing_changed_means_no_work(project: SmallProject) -> None:
    first = project.build()
    before = tree_digest(project.store)
    again = project.build()
    assert {key: built.units_run for key, built in again.items()} == dict.fromkeys(EVERY_ASSET, 0)
    assert {key: built.entry for key, built in again.items()} == {key: built.entry for key, built in first.items()}
    assert tree_digest(project.store) == before


def test_the_number_of_workers_changes_no_byte(tmp_path: Path) -> None:
    one, two = write_small_project(tmp_path / "one"), write_small_project(tmp_path / "two")
    one.build(workers=1)
    two.build(workers=2)
    assert objects_digest(one) == objects_digest(two)


def test_a_changed_corpus_writes_new_objects_and_leaves_a_mapped_file_alone(project: SmallProject) -> None:
    old = project.build()
    path = old["megatron_dataset/base"].folder / "docs" / "train_512.bin"
    before = objects_digest(project)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    content = hashlib.sha256(mapped[:]).hexdigest()
    added = "".join(json.dumps({"id": f"new-{i}", "text": f"text {i} " * 50, "lang": "en"}) + "\n" for i in range(40))
    (project.folder / "data" / "docs" / "9.jsonl").write_text(added, encoding="utf-8")
    new = project.build()
    assert new["megatron_dataset/base"].entry.object != old["megatron_dataset/base"].entry.object
    assert new["megatron_dataset/base"].entry.number == 2
    assert hashlib.sha256(mapped[:]).hexdigest() == content
    after = objects_digest(project)
    assert {name: after[name] for name in before} == before
    tokenizer = new["tokenizer_model/bpe_600"]
    assert tokenizer.units_run == 0
    assert tokenizer.entry == old["tokenizer_model/bpe_600"].entry
    assert tokenizer.stale == "its training text changed since it was trained"
    assert new["tokenized_shards/bpe_600/code"].units_run == 0


def test_a_touched_file_rebuilds_nothing_downstream(project: SmallProject) -> None:
    first = project.build()
    path = project.folder / "data" / "docs" / "0.jsonl"
    path.write_bytes(path.read_bytes())
    again = project.build()
    assert {key: built.units_run for key, built in again.items()} == {
        key: int(key == "corpus/docs") for key in EVERY_ASSET
    }
    assert again["corpus/docs"].entry.object == first["corpus/docs"].entry.object


def test_a_frozen_tokenizer_is_trained_again_on_request_and_when_its_configuration_changes(
    project: SmallProject,
) -> None:
    first = project.build("tokenizer_model/bpe_600")["tokenizer_model/bpe_600"]
    (project.folder / "data" / "code" / "more.txt").write_text("zzqx " * 5000, encoding="utf-8")
    kept = project.build("tokenizer_model/bpe_600")["tokenizer_model/bpe_600"]
    assert kept.entry == first.entry
    assert kept.stale
    again = project.build("tokenizer_model/bpe_600", retrain=True)["tokenizer_model/bpe_600"]
    assert again.entry.number == 2
    assert again.stale is None
    project.edit("vocab_size: 600", "vocab_size: 500")
    smaller = project.build("tokenizer_model/bpe_600")["tokenizer_model/bpe_600"]
    assert smaller.counts["vocab_size"] == 500


def test_a_failed_gate_stops_the_shards_and_a_changed_limit_rebuilds_nothing(project: SmallProject) -> None:
    project.edit("min_vocabulary_utilization: 0.5", "min_vocabulary_utilization: 1.0")
    project.edit("max_rare_token_share: 0.5", "max_rare_token_share: 0.0")
    project.build("vocabulary_report/bpe_600")
    with pytest.raises(GateError, match="rare"):
        project.build()
    failed = {v.name for v in report.verdicts(project.work(), "bpe_600") if not v.passed}
    assert "rare_token_share" in failed
    project.edit("min_vocabulary_utilization: 1.0", "min_vocabulary_utilization: 0.1")
    project.edit("max_rare_token_share: 0.0", "max_rare_token_share: 0.9")
    built = project.build()
    assert built["vocabulary_report/bpe_600"].units_run == 0
    assert built["megatron_dataset/base"].units_run == 1


def test_a_bad_packing_stops_the_export_with_the_remedy(project: SmallProject) -> None:
    project.edit("strategy: best_fit", "strategy: naive")
    project.edit("min_packing_utilization: 0.5", "min_packing_utilization: 0.99")
    with pytest.raises(GateError, match=r"best_fit \(now naive\)") as failure:
        project.build()
    work = project.work()
    assert history.latest(work.store, "packed_sequences/base") is not None
    assert history.latest(work.store, "megatron_dataset/base") is None
    counts = project.build("packed_sequences/base")["packed_sequences/base"].counts
    filled = {
        place: 1 - figures["padding"] / (512 * figures["packs"])
        for place, figures in counts["by_split"].items()
        if figures["packs"]
    }
    worst = min(filled, key=lambda place: (filled[place], place))
    assert f"Least filled: {worst} ({filled[worst]:.2%} of " in str(failure.value)


def test_a_gate_that_only_warns_stops_nothing(project: SmallProject) -> None:
    project.edit("min_packing_utilization: 0.5", "min_packing_utilization: 1.0, warn: [packing_utilization]")
    project.edit("max_rare_token_share: 0.5", "max_rare_token_share: 0.0, warn: [rare_token_share]")
    built = project.build()
    assert "megatron_dataset/base" in built
    work = project.work()
    found = [*report.verdicts(work, "bpe_600"), *pack.verdicts(work, "base")]
    warned = {verdict.name for verdict in found if not verdict.passed and not verdict.blocking}
    assert {"rare_token_share", "packing_utilization"} <= warned
    plans = {plan.key: plan.check_names for plan in plan_graph(work.project)}
    assert plans["vocabulary_report/bpe_600"]["rare_token_share"] is False
    assert plans["packed_sequences/base"] == {"packing_utilization": False, "nothing_lost": True}


def test_policies_that_drop_every_token_stop_the_export(project: SmallProject) -> None:
    project.edit("strategy: best_fit, sequence_length: 512", "long_documents: drop, sequence_length: 2")
    with pytest.raises(GateError, match="Policies dropped every token"):
        project.build()


def test_a_source_that_changes_after_the_inventory_stops_the_run_with_its_name(project: SmallProject) -> None:
    project.build("corpus/docs")
    path = project.folder / "data" / "docs" / "1.jsonl"
    path.write_text('{"id": "x", "text": "other"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"1\.jsonl: the file changed since the inventory"):
        normalize.build(project.work(), "docs")


def test_a_source_file_written_into_with_its_time_put_back_is_hashed_again(tmp_path: Path) -> None:
    project = write_small_project(tmp_path)
    before = project.build("normalized_corpus/docs")
    path = project.folder / "data" / "docs" / "1.jsonl"
    status = path.stat()
    content = path.read_bytes().replace(b" the ", b" teh ", 1)
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    after = project.build("normalized_corpus/docs")
    for asset in ("corpus/docs", "normalized_corpus/docs"):
        assert after[asset].entry.object != before[asset].entry.object


def test_a_bad_document_is_named_and_nothing_is_published(project: SmallProject) -> None:
    with (project.folder / "data" / "docs" / "1.jsonl").open("a") as file:
        file.write('{"id": "broken", "text": \n')
    lines = len((project.folder / "data" / "docs" / "1.jsonl").read_text().splitlines())
    with pytest.raises(InputError, match=rf"1\.jsonl, line {lines}"):
        project.build()
    store = project.work().store
    assert list(store.tmp.iterdir()) == []
    project.edit("    id_field: id", "    id_field: id\n    on_error: skip")
    built = project.build()
    assert sum(built["normalized_corpus/docs"].counts["problems"]["skipped"].values()) == 1


def test_a_new_store_gives_the_same_dataset(tmp_path: Path) -> None:
    one = write_small_project(tmp_path / "one")
    digest = one.build()["megatron_dataset/base"].entry.object
    (one.folder / "store").rename(one.folder / "moved")
    assert one.build()["megatron_dataset/base"].entry.object == digest


def test_splits_are_disjoint_and_only_train_is_sampled(project: SmallProject) -> None:
    built = project.build("tokenizer_model/bpe_600")
    work = project.work()
    drawn = sample.plan_sample(work, "bpe_600")
    texts = {t for batch in sample.sample_texts(work.store, drawn, 0) for t in batch.to_pylist()}
    parts = [part for corpus in ("docs", "code") for part in sample.corpus_parts(work, corpus)]
    rows = [row for part in parts for row in pq.read_table(part.path).to_pylist()]
    train = {row["text"] for row in rows if row["split"] == "train"}
    assert texts <= train
    assert {row["split"] for row in rows} == {"train", "valid", "test"}
    size = sum(len(text.encode()) for text in texts)
    assert 0.5 * 200_000 < size < 2 * 200_000
    assert built["tokenizer_model/bpe_600"].counts["vocab_size"] == 600


def test_the_raw_text_gets_the_ids_of_the_normalized_text(project: SmallProject) -> None:
    project.build("vocabulary_report/bpe_600")
    verdict = next(v for v in report.verdicts(project.work(), "bpe_600") if v.name == "normalization_agreement")
    assert verdict.passed
    assert "of 1 documents" in verdict.explanation


def test_bos_starts_every_document(project: SmallProject) -> None:
    project.edit('pad: "<|pad|>"}', 'pad: "<|pad|>", bos: "<s>"}\n    bos: true')
    project.build("tokenized_shards/bpe_600/docs")
    for shard in shards.read_shards(project.work(), "bpe_600", "docs"):
        reader = IndexedReader(shard.folder / "part")
        sequences = [reader.sequence(i) for i in range(len(reader))]
        firsts, lasts = ({int(s[at]) for s in sequences} for at in (0, -1))
        assert len(firsts) == len(lasts) == 1
        assert firsts != lasts
        assert all(np.count_nonzero(s == s[0]) == 1 and np.count_nonzero(s == s[-1]) == 1 for s in sequences)


def test_a_published_token_that_is_both_bos_and_eod_does_not_start_documents(project: SmallProject) -> None:
    """GPT-2 names one token for all roles; as BOS it would be a second EOD in each document."""
    trained = project.build("tokenizer_model/bpe_600")["tokenizer_model/bpe_600"].folder
    published = project.folder / "published"
    published.mkdir()
    (published / "tokenizer.json").write_bytes((trained / "tokenizer.json").read_bytes())
    (published / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|endoftext|>"}), encoding="utf-8")
    project.edit("family: byte_bpe\n    vocab_size: 600", "family: pretrained\n    path: published\n    bos: true")
    project.edit('{eod: "<|endoftext|>", pad: "<|pad|>"}', '{bos: "<|endoftext|>"}')
    with pytest.raises(ConfigError, match=r"bpe_600\.bos: BOS and EOD are one token"):
        project.build("tokenized_shards/bpe_600/docs")


def test_the_store_is_no_source_text(project: SmallProject) -> None:
    project.work()
    project.edit("paths: [data/code]", 'paths: ["."]')
    with pytest.raises(InputError, match=r"corpus code: its paths take in \S+/store/\S+, a file of the store"):
        project.build("corpus/code")
