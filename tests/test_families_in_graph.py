"""Every family of tokenizers through the whole graph: trained, published, loaded again, encoded, packed, verified."""

from pathlib import Path

import pytest
import tokenizers

from tests.small_project import SmallProject, write_small_project
from tests.test_graph import expected_documents
from tokpack_core.errors import ConfigError, InputError
from tokpack_core.megatron.indexed_reader import IndexedReader
from tokpack_core.megatron.verify import verify
from tokpack_core.stages import export, report, report_checks

LENIENT = "checks: {rare_below: 1, max_rare_token_share: 1.0, min_vocabulary_utilization: 0.0}"
STRICT = "checks: {rare_below: 2, max_rare_token_share: 0.5, min_vocabulary_utilization: 0.5}"


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    written = write_small_project(tmp_path)
    written.edit(STRICT, LENIENT)
    return written


def check(project: SmallProject, name: str = "bpe_600") -> None:
    """Every token of every document arrives in the packs, and the files are sound."""
    built = project.build()
    dataset = built["megatron_dataset/base"]
    expected = [ids for corpus in ("docs", "code") for ids in expected_documents(project, corpus, name).values()]
    eod = dataset.counts["eod"]
    found = []
    for prefix in export.prefixes(dataset):
        faults = verify(prefix, vocab_size=dataset.counts["vocab_size"], sequence_length=512)
        assert faults == [] or not getattr(faults, "faults", faults)
        packs = IndexedReader(prefix)
        found += [token for i in range(len(packs)) for token in packs.sequence(i).tolist() if token != eod]
    assert sorted(found) == sorted(token for ids in expected for token in ids[:-1])
    assert all(ids[-1] == eod and ids.count(eod) == 1 for ids in expected if ids)


@pytest.mark.parametrize("family", ["sentencepiece_bpe", "sentencepiece_unigram"])
@pytest.mark.parametrize("unicode", ["nfc", "nfkc"])
def test_sentencepiece(project: SmallProject, family: str, unicode: str) -> None:
    project.edit("family: byte_bpe", f"family: {family}")
    project.edit("    id_field: id", f"    id_field: id\n    normalize: {{unicode: {unicode}}}")
    project.edit("    lang: code", f"    lang: code\n    normalize: {{unicode: {unicode}}}")
    check(project)
    verdicts = {verdict.name: verdict for verdict in report.verdicts(project.work(), "bpe_600")}
    assert verdicts["round_trip"].passed
    assert verdicts["normalization_agreement"].passed


@pytest.mark.parametrize("family", ["wordpiece", "character", "word"])
def test_lossy_families(project: SmallProject, family: str) -> None:
    """Their round trip is told and stops nothing."""
    project.edit("family: byte_bpe", f"family: {family}")
    check(project)
    verdicts = {verdict.name: verdict for verdict in report.verdicts(project.work(), "bpe_600")}
    assert not verdicts["round_trip"].passed
    assert not verdicts["round_trip"].blocking
    assert f"{family} does not keep all text, by its nature" in verdicts["round_trip"].explanation
    assert not report_checks.checks(project.work().project.tokenizers["bpe_600"])["round_trip"]


@pytest.mark.parametrize("options", ["family: boundless_bpe", "family: superbpe\n    joins: words\n    export: hf"])
def test_superwords(project: SmallProject, options: str) -> None:
    project.edit("family: byte_bpe", options)
    check(project)
    assert {verdict.name: verdict for verdict in report.verdicts(project.work(), "bpe_600")}["round_trip"].passed
    training = project.build()["tokenizer_model/bpe_600"].counts["training"]
    assert training["superwords"] > 0
    assert ("gap_tokens_hf" in training) == ("hf" in options)


def test_counted_vocabulary(project: SmallProject) -> None:
    project.edit("family: byte_bpe", "family: cnf_mce\n    refills: 3")
    check(project)
    assert {verdict.name: verdict for verdict in report.verdicts(project.work(), "bpe_600")}["round_trip"].passed
    assert project.build()["tokenizer_model/bpe_600"].counts["export_check"]["documents"] > 0


def pretrained(project: SmallProject, path: str, special: str) -> None:
    project.edit("family: byte_bpe\n    vocab_size: 600", f"family: pretrained\n    path: {path}")
    project.edit('special_tokens: {eod: "<|endoftext|>", pad: "<|pad|>"}', special)


def publish_tokenizer(project: SmallProject) -> Path:
    """A byte-level BPE as others publish it, in one file."""
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(["the published tokenizer of someone else " * 50], vocab_size=300)
    path = project.folder / "theirs" / "tokenizer.json"
    path.parent.mkdir()
    trained.save(str(path))
    return path


def test_pretrained_hugging_face(project: SmallProject) -> None:
    path = publish_tokenizer(project)
    pretrained(project, "theirs/tokenizer.json", 'special_tokens: {eod: "<|endoftext|>"}')
    check(project)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    ours = expected_documents(project, "docs")
    assert ours["decomposed"][:-1] == theirs.encode("caf\u00e9 \u00c5ngstr\u00f6m").ids


def test_pretrained_without_eod_is_one_sentence(project: SmallProject) -> None:
    publish_tokenizer(project)
    pretrained(project, "theirs", "seed: 0")
    with pytest.raises(ConfigError, match=r"tokenizers\.bpe_600: .* names no end-of-document token"):
        project.build()


def test_pretrained_that_is_not_there_is_one_sentence(project: SmallProject) -> None:
    pretrained(project, "theirs/nothing.json", "seed: 0")
    with pytest.raises(InputError, match=r"tokenizer bpe_600: there is no .*theirs/nothing\.json"):
        project.build()


def test_a_large_vocabulary_is_int32(project: SmallProject) -> None:
    path = publish_tokenizer(project)
    text = path.read_text().replace('"vocab": {', '"vocab": {"far away": 70000, ', 1)
    path.write_text(text)
    pretrained(project, "theirs/tokenizer.json", 'special_tokens: {eod: "<|endoftext|>"}')
    check(project)
    assert project.build()["megatron_dataset/base"].counts["dtype"] == "int32"
