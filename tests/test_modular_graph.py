"""Modular tokenizers through the whole graph: the ids of each document's language, in shards, report and audit."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.small_project import SmallProject, write_small_project
from tests.test_audit import run_audit
from tests.test_families_in_graph import LENIENT, STRICT
from tests.test_graph import expected_documents
from tokpack_core.megatron.indexed_reader import IndexedReader
from tokpack_core.stages import report, shards
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.metadata import LANGUAGES_FILE_NAME
from tokpack_core.tokenizers.modular.sub_tokenizers import languages_of

DATASET = "megatron_dataset/base"


def tokens_of(project: SmallProject, corpus: str) -> dict[str, dict[str, list[int]]]:
    """The documents of the shards by language and id."""
    found: dict[str, dict[str, list[int]]] = {}
    for shard in shards.read_shards(project.work(), "bpe_600", corpus):
        rows = pq.read_table(shard.folder / "documents.parquet", columns=["id", "lang", "tokens"]).to_pylist()
        reader = IndexedReader(shard.folder / "part")
        ids = np.concatenate([reader.sequence(number) for number in range(len(reader))]).tolist()
        at = 0
        for row in rows:
            found.setdefault(row["lang"], {})[row["id"]] = ids[at : at + row["tokens"]]
            at += row["tokens"]
    return found


@pytest.mark.parametrize(("family", "size"), [("modular_bpe", 600), ("modular_unigram", 420)])
def test_by_language(tmp_path: Path, family: str, size: int) -> None:
    project = write_small_project(tmp_path)
    project.edit(STRICT, LENIENT)
    project.edit("family: byte_bpe\n    vocab_size: 600", f"family: {family}\n    vocab_size: {size}")
    whole = project.build()
    work = project.work()
    ref, folder = tokenizer_stage.current_tokenizer(work, "bpe_600")
    tokenizer = registry.load(folder)
    languages = languages_of(tokenizer)
    assert set(languages) == {"en", "fr", "code"}
    assert languages["en"].size == size
    assert (folder / LANGUAGES_FILE_NAME).is_file()
    expected = expected_documents(project, "docs")
    assert {name: ids for found in tokens_of(project, "docs").values() for name, ids in found.items()} == expected
    assert run_audit(project, whole[DATASET]).differing == 0
    project.edit(f"vocab_size: {size}", f"vocab_size: {size}\n    encode_by_language: true")
    built = project.build()
    assert tokenizer_stage.current_tokenizer(project.work(), "bpe_600")[0] == ref
    assert built[DATASET].entry.object != whole[DATASET].entry.object
    for corpus in ("docs", "code"):
        for language, documents in tokens_of(project, corpus).items():
            ids = np.unique(np.concatenate([np.array(tokens, np.int64) for tokens in documents.values()]))
            assert np.isin(ids, languages[language]).all()
    audit = run_audit(project, built[DATASET])
    assert audit.differing == 0
    assert audit.checked == audit.documents
    _, folder = report.current(project.work(), report.asset_key("bpe_600"))
    counted = report.read_json(folder / report.REPORT)
    assert all(verdict.passed for verdict in report.verdicts(project.work(), "bpe_600") if verdict.name == "round_trip")
    sampled = {row["lang"]: row["tokens"] for row in counted["sample"]["languages"]}
    code = sum(len(tokens) - 1 for tokens in tokens_of(project, "code")["code"].values())
    assert 0 < sampled["code"] <= code
