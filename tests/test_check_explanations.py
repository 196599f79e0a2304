"""A check that fails names what is at fault and what to change; which ones stop what is downstream is configured."""

from pathlib import Path
from typing import Any

import pytest

from tests.small_project import SmallProject, write_small_project
from tests.tokenizer_samples import trained
from tokpack_core.config import TokenizerChecks
from tokpack_core.packing.truncation import PackingFigures
from tokpack_core.stages import export_checks, report, report_checks
from tokpack_core.stages.export_checks import readable_verdict, tokens_verdict
from tokpack_core.stages.pack import nothing_lost_verdict
from tokpack_core.stages.report_checks import agreement_verdict, pits_verdict, round_trip_verdict
from tokpack_core.vocabulary.pits import REMEDIES, find_pits


def found(family: str = "byte_bpe", failures: int = 0, examples: tuple[Any, ...] = ()) -> dict[str, Any]:
    """What a report says of the documents that were tried."""
    tried = {"documents": 40, "failures": failures, "examples": list(examples)}
    return {"tokenizer": {"family": family, "unicode": "nfc"}, "round_trip": tried, "normalization_agreement": tried}


@pytest.mark.parametrize(
    ("family", "blocking", "advice"),
    [
        ("byte_bpe", True, "Some of the text has no token: use `alphabet: all_bytes`, or another family, or accept"),
        ("pretrained", True, "The tokenizer's file changes text: take another tokenizer, or accept the loss with chec"),
        ("word", False, "word does not keep all text, by its nature: take byte_bpe or a sentencepiece family"),
    ],
)
def test_round_trip(family: str, blocking: bool, advice: str) -> None:
    places = [{"document": name, "byte": 3, "text": "A", "became": "a"} for name in ("zh/1", "zh/2")]
    verdict = round_trip_verdict(found(family, 7, tuple(places)))
    named = "zh/1 (byte 3: 'A' becomes 'a'), zh/2 (byte 3: 'A' becomes 'a')"
    said = f"7 of 40 test documents do not come back from encode and decode: {named}. "
    assert verdict.explanation.startswith(said + advice)
    assert (verdict.passed, verdict.blocking, verdict.value) == (False, blocking, 7.0)
    passed = round_trip_verdict(found(family))
    assert passed.passed
    assert passed.explanation == "0 of 40 test documents do not come back from encode and decode"


def test_normalization_agreement() -> None:
    verdict = agreement_verdict(found(failures=1, examples=("caf\u00e9\n" + "x" * 100,)), blocking=False)
    assert not verdict.passed
    assert "1 get other ids from their raw text: “caf\u00e9⟨U+000A⟩" in verdict.explanation
    assert "x" * 60 not in verdict.explanation
    assert "Give this tokenizer normalized text alone" in verdict.explanation
    assert "Give this" not in agreement_verdict(found(), blocking=True).explanation


def test_pits() -> None:
    pits = [{"name": "digits", "passed": False, "explanation": "2 entries"}]
    pits.append({"name": "indentation", "passed": True, "explanation": "kept"})
    own = pits_verdict(found() | {"pits": pits}, blocking=True)
    assert own.explanation == "digits: 2 entries: set `digits: single` or `groups_right`"
    taken = pits_verdict(found("pretrained") | {"pits": pits}, blocking=False)
    assert taken.explanation == "digits: 2 entries. They are of the file: take another tokenizer, or live with them"
    assert pits_verdict(found() | {"pits": pits[1:]}, blocking=True).passed
    known = {pit.name for pit in find_pits(trained("byte_bpe"), ["zh"])}
    assert set(REMEDIES) <= known


@pytest.mark.parametrize("severity", ["warn", "block"])
def test_severity_of_the_agreement_is_configured(tmp_path: Path, severity: str) -> None:
    project = write_small_project(tmp_path)
    project.edit("checks: {rare_below: 2,", f"checks: {{normalization_agreement: {severity}, rare_below: 2,")
    limits = project.load().tokenizers["bpe_600"].checks
    assert limits == TokenizerChecks(
        normalization_agreement=severity, rare_below=2, max_rare_token_share=0.5, min_vocabulary_utilization=0.5
    )
    assert report_checks.checks(project.load().tokenizers["bpe_600"])["normalization_agreement"] == (
        severity == "block"
    )
    project.build("vocabulary_report/bpe_600")
    verdict = next(v for v in report.verdicts(project.work(), "bpe_600") if v.name == "normalization_agreement")
    assert verdict.blocking == (severity == "block")


def test_lost_tokens_are_told_by_split() -> None:
    by_split = {
        "zh/train": PackingFigures(documents=3, tokens=100, packs=1),
        "en/test": PackingFigures(documents=1, tokens=50, packs=1, tokens_lost=7),
    }
    figures = by_split["zh/train"] + by_split["en/test"]
    verdict = nothing_lost_verdict(figures, {place: of.as_dict() for place, of in by_split.items()})
    assert not verdict.passed
    assert verdict.explanation.startswith(
        "7 of 150 tokens of 4 documents are lost. They are of en/test 7. Take another "
    )


def test_tokens_that_do_not_add_up_are_told_by_prefix() -> None:
    planned = {
        "zh/train": PackingFigures(tokens=100, dropped_document_tokens=10, packs=2),
        "en/train": PackingFigures(tokens=30, packs=1),
        "en/test": PackingFigures(),
    }
    counts = {
        "sequence_length": 64,
        "packs": {"zh/train_64": 2, "en/train_64": 1},
        "prefixes": {"zh/train_64": {"padding": 38}, "en/train_64": {"padding": 34}},
    }
    right = tokens_verdict(counts, planned)
    assert right.passed
    assert right.explanation == "120 tokens stand in packs, where 120 were planned"
    # One prefix has as many too many as the other has too few: the sum would not show it.
    counts["prefixes"] = {"zh/train_64": {"padding": 36}, "en/train_64": {"padding": 36}}
    wrong = tokens_verdict(counts, planned)
    assert (wrong.passed, wrong.value) == (False, 4.0)
    assert "They differ in en/train_64 (28, not 30), zh/train_64 (92, not 90): build packed_sequ" in wrong.explanation


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> SmallProject:
    return write_small_project(tmp_path_factory.mktemp("explained"))


def test_files_that_megatron_cannot_read_are_named(project: SmallProject) -> None:
    built = project.build()["megatron_dataset/base"]
    path = built.folder / "docs" / "train_512.bin"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-2])
    verdict = readable_verdict(built.folder, built.counts, written_now=True)
    assert not verdict.passed
    assert "docs/train_512" in verdict.explanation
    assert verdict.explanation.endswith(export_checks.REMEDY)
