"""Every hostile input gives the result that its entry states, under each `on_error`, whatever the block size."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile_entry import HostileInput, Result
from tests.hostile_inputs import hostile_inputs, write_inputs
from tokpack_core.config import ReadConfig
from tokpack_core.corpus import compression, lines
from tokpack_core.corpus.documents import read_documents
from tokpack_core.corpus.problems import Problems
from tokpack_core.errors import InputError

POLICIES = ("error", "skip", "replace")
ENTRIES = hostile_inputs()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    write_inputs(folder)
    return folder


def read(path: Path, entry: HostileInput, on_error: str) -> tuple[list[str], Problems]:
    problems = Problems()
    options = ReadConfig.model_validate({**entry.options, "on_error": on_error})
    batches = list(read_documents(path, entry.file, options, problems))
    assert all(batch.num_rows for batch in batches)
    return [text for batch in batches for text in batch.column("text").to_pylist()], problems


def check(path: Path, entry: HostileInput, on_error: str) -> None:
    expected: Result = getattr(entry, on_error)
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected) as caught:
            read(path, entry, on_error)
        message = str(caught.value)
        assert message.startswith(entry.file)
        assert "\n" not in message
        assert ";" in message, "no remedy"
        return
    texts, problems = read(path, entry, on_error)
    assert tuple(texts) == expected
    assert problems.documents == len(expected)
    assert problems.empty_documents == expected.count("")
    assert bool(problems.skipped) == (on_error == "skip" and isinstance(entry.error, str))
    assert bool(problems.replaced_characters) == (on_error == "replace" and isinstance(entry.error, str))


@pytest.mark.parametrize("on_error", POLICIES)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.file)
def test_stated_result(folder: Path, entry: HostileInput, on_error: str) -> None:
    check(folder / entry.file, entry, on_error)


@pytest.mark.parametrize("block_bytes", [1, 7])
@pytest.mark.parametrize(
    "entry", [e for e in ENTRIES if len(e.data) < 5_000 and "big" not in e.file], ids=lambda entry: entry.file
)
def test_block_size_changes_nothing(
    folder: Path, entry: HostileInput, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(lines, "BLOCK_BYTES", block_bytes)
    for on_error in POLICIES:
        check(folder / entry.file, entry, on_error)
