"""A store that an ordinary user may only read: every reading command works, and a build with nothing to do succeeds."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.ordinary_user import as_ordinary_user
from tests.small_project import SmallProject, write_small_project
from tests.store_checks import content_of
from tokpack_assets import cli as assets_cli
from tokpack_core.cli.app import app
from tokpack_core.errors import StoreError
from tokpack_core.store.files import remove_folder
from tokpack_core.store.store import open_store

DATASET = "megatron_dataset/base"
COMMANDS = [
    ["verify", DATASET],
    ["verify", "store"],
    ["lineage", DATASET],
    ["lineage", DATASET, "--document", "assert"],
    ["lineage", DATASET, "--pack", "docs/train_512:0"],
    ["lineage", DATASET, "--openlineage"],
    ["audit", DATASET, "--documents", "20"],
    ["history", DATASET],
    ["diff", DATASET],
    ["path", DATASET],
    ["pin"],
    ["gc"],
    ["inspect", "PREFIX"],
    ["copy", DATASET, "COPY"],
]


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter: pytest closes its own to others again and again."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    remove_folder(folder)


@pytest.fixture(scope="module")
def project(open_folder: Path) -> SmallProject:
    """Two versions, closed against writing."""
    small = write_small_project(open_folder / "project")
    small.build()
    (small.folder / "data" / "docs" / "new.jsonl").write_text('{"id": "new", "text": "A new document."}\n')
    small.build()
    for path in [small.folder, *small.folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    return small


def run(project: SmallProject, command: list[str], scratch: Path) -> str:
    prefix = next(project.store.glob("objects/megatron_dataset/*/docs/train_512.idx")).with_suffix("")
    names = {"PREFIX": str(prefix), "COPY": str(scratch / f"copy-{os.getuid()}")}
    os.chdir(project.folder)
    result = CliRunner().invoke(app, [names.get(word, word) for word in command])
    assert result.exit_code == 0, (command, result.output, result.exception)
    return result.output


def test_reading_commands_and_builds(project: SmallProject, open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.folder)
    monkeypatch.setenv("TOKPACK_STORE", "store")
    scratch = open_folder / "scratch"
    scratch.mkdir()
    scratch.chmod(0o777)
    monkeypatch.setenv("DAGSTER_HOME", str(scratch / "of root"))
    build = CliRunner().invoke(assets_cli.app, ["build", "--workers", "1"])
    assert build.exit_code == 0, build.output
    said = {" ".join(command): run(project, command, scratch) for command in COMMANDS}
    before = content_of(open_store(project.store))

    def read_all() -> None:
        assert not os.access(project.store / "leases", os.W_OK)
        for command in COMMANDS:
            again = run(project, command, scratch)
            assert command[0] in ("copy", "verify", "gc") or again == said[" ".join(command)]
        built = project.build()
        assert sum(asset.units_run for asset in built.values()) == 0
        os.environ["DAGSTER_HOME"] = str(scratch / "of nobody")
        result = CliRunner().invoke(assets_cli.app, ["build", "--workers", "1"])
        assert result.exit_code == 0, result.output
        assert "\n0 units run" in result.output
        with pytest.raises(StoreError, match=r"store: cannot .*Permission denied.*check the rights"):
            project.build("tokenizer_model/bpe_600", retrain=True)

    as_ordinary_user(read_all)
    assert content_of(open_store(project.store)) == before
