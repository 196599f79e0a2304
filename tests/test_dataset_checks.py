"""The check that Megatron can read a dataset: by megatron-core itself where it is installed, and says which."""

from pathlib import Path

import pytest

from tests.small_project import write_small_project
from tokpack_core.megatron import core_reader
from tokpack_core.megatron.core_reader import read_with_megatron_core
from tokpack_core.stages import export_checks
from tokpack_core.stages.asset import Built
from tokpack_core.stages.export_checks import expected_by_megatron, readable_verdict
from tokpack_core.verdict import Verdict


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return write_small_project(tmp_path_factory.mktemp("checks")).build()["megatron_dataset/base"]


def verdict(dataset: Built, written_now: bool = True) -> Verdict:
    return readable_verdict(dataset.folder, dataset.counts, written_now)


def test_megatron_core_opens_what_was_written(dataset: Built) -> None:
    found = verdict(dataset)
    assert found.passed
    assert found.explanation.startswith("5 prefixes and their views by document: indices are in order, every pack has")
    assert found.explanation.endswith("; megatron-core 0.16.1 opened each and read tokens of it")


def test_files_of_an_earlier_run_are_not_opened_again(dataset: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build in which nothing is to do must not wait for the import of torch."""
    monkeypatch.setattr(export_checks, "read_with_megatron_core", None)
    found = verdict(dataset, written_now=False)
    assert found.passed
    assert found.explanation.endswith("(files of an earlier run: not opened with megatron-core again)")


def test_without_megatron_core_the_check_is_of_structure(dataset: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_reader.importlib.util, "find_spec", lambda _: None)
    found = verdict(dataset)
    assert found.passed
    assert found.explanation.endswith("(megatron-core is not installed here, so it did not open them)")


def test_a_megatron_core_that_cannot_be_imported_is_none(
    dataset: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('no such library')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    assert "did not open them" in verdict(dataset).explanation


def test_what_megatron_core_refuses_fails_the_check(dataset: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults that are told to be in files which look sound: another number of packs, and a file that is not there."""
    expected = expected_by_megatron(dataset.folder, dataset.counts)
    counted, missing = expected[0], expected[1]
    wrong = core_reader.Expected(counted.prefix, counted.documents + 1, counted.tokens, counted.sequence_length)
    absent = core_reader.Expected(f"{missing.prefix}_none", missing.documents, missing.tokens, None)
    longer = core_reader.Expected(counted.prefix, counted.documents, counted.tokens, 1024)
    answer = read_with_megatron_core([wrong, absent, longer])
    assert answer
    version, faults = answer
    assert version == "0.16.1"
    assert f"megatron-core finds {counted.documents} documents with {counted.tokens} tokens instead of" in faults[0]
    assert f"{absent.prefix}: megatron-core cannot open it: " in faults[1]
    assert faults[2].endswith("megatron-core finds sequences of other than 1024 tokens")

    monkeypatch.setattr(export_checks, "read_with_megatron_core", lambda _: answer)
    found = verdict(dataset)
    assert (found.passed, found.value) == (False, 3.0)
    assert found.explanation.startswith(f"3 faults: {faults[0]}")
