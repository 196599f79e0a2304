"""`tokpack gc`, `pin`, `lease`, `history` and `diff` on a store with two versions of a dataset."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command_line import refused, tokpack
from tests.small_project import SmallProject, write_small_project
from tests.test_graph import expected_documents
from tokpack_core.store import history, objects
from tokpack_core.store.store import open_store

DATASET = "megatron_dataset/base"


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    """A dataset, then a corpus with one file more and one less, then the dataset again."""
    written = write_small_project(tmp_path)
    written.build()
    rows = [{"id": f"new-{i}", "text": f"new text {i}", "lang": "en"} for i in range(5)]
    (tmp_path / "data" / "docs" / "9.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "data" / "docs" / "2.jsonl").unlink()
    written.build()
    return written


def test_history_lists_both_versions(project: SmallProject) -> None:
    rows = tokpack(project.folder, "history", DATASET, "--json", store=project.store).json
    assert [row["number"] for row in rows] == [2, 1]
    assert all(row["here"] for row in rows)
    shown = tokpack(project.folder, "history", DATASET, store=project.store).out.splitlines()
    assert len(shown) == 2
    assert "was never built" in refused(project.folder, "history", "corpus/none", store=project.store)


def test_diff_tells_files_documents_and_tokens(project: SmallProject) -> None:
    found = tokpack(project.folder, "diff", DATASET, "--json", store=project.store).json
    docs, code = found["corpora"]["docs"], found["corpora"]["code"]
    assert docs["files_added"] == ["data/docs/9.jsonl"]
    assert docs["files_removed"] == ["data/docs/2.jsonl"]
    assert docs["files_changed"] == []
    now = expected_documents(project, "docs")
    assert docs["documents"][1] == len(now)
    assert docs["tokens"][1] == sum(map(len, now.values()))
    assert docs["documents_added"] == 5
    assert docs["documents_removed"] == docs["documents"][0] + 5 - docs["documents"][1]
    assert docs["documents_retokenized"] == 0
    assert (code["documents_added"], code["files_added"], code["tokens"][0]) == (0, [], code["tokens"][1])
    assert not found["tokenizer_changed"]
    assert found["configuration"] == {}
    shown = tokpack(project.folder, "diff", DATASET, store=project.store).out
    assert "+ data/docs/9.jsonl" in shown
    assert "has no version 7" in refused(project.folder, "diff", DATASET, "--new", "7", store=project.store)


def test_diff_tells_what_was_configured_otherwise(project: SmallProject) -> None:
    project.edit("sequence_length: 512", "sequence_length: 256")
    project.build()
    found = tokpack(project.folder, "diff", DATASET, "--json", store=project.store).json
    assert found["configuration"]["packed_sequences.sequence_length"] == [512, 256]
    assert found["corpora"]["docs"]["documents_added"] == 0


def gc(project: SmallProject, *more: str) -> dict:
    arguments = ("gc", "--keep", "1", "--min-age-hours", "0", "--json", *more)
    return tokpack(project.folder, *arguments, store=project.store).json


def test_gc_shows_first_and_removes_when_told(project: SmallProject) -> None:
    store = open_store(project.store)
    old, new = (entry.object for entry in history.entries(store, DATASET))
    shown = gc(project)
    assert str(old) in [item["object"] for item in shown["garbage"]]
    assert objects.exists(store, old)
    gc(project, "--yes")
    assert not objects.exists(store, old)
    assert objects.exists(store, new)
    for name in (old.digest, old.digest[:12], str(old)):
        said = refused(project.folder, "lineage", name, store=project.store)
        assert f"{old} was version 1 of {DATASET} of 20" in said
        assert f"`tokpack history {DATASET}`" in said
    assert tokpack(project.folder, "verify", project.store).code == 0
    assert all(built.units_run == 0 for built in project.build().values())


def test_a_pin_keeps_a_version_with_all_it_was_made_from(project: SmallProject) -> None:
    store = open_store(project.store)
    old = history.entries(store, DATASET)[0].object
    pinned = tokpack(project.folder, "pin", "paper", old.digest, "--json", store=project.store).json
    assert pinned[0]["objects"] == [str(old)]
    gc(project, "--yes")
    assert objects.exists(store, old)
    assert tokpack(project.folder, "audit", old.digest, "--documents", "20", store=project.store).code == 0
    tokpack(project.folder, "pin", "paper", "--remove", store=project.store)
    gc(project, "--yes")
    assert not objects.exists(store, old)
    assert "there is no pin paper" in refused(project.folder, "pin", "paper", "--remove", store=project.store)


def test_a_lease_keeps_a_version_while_a_command_runs(project: SmallProject) -> None:
    store = open_store(project.store)
    old = history.entries(store, DATASET)[0].object
    ready, go = project.folder / "ready", project.folder / "go"
    child = os.fork()
    if child == 0:
        script = f"touch {ready}; while [ ! -e {go} ]; do sleep 0.1; done; exit 7"
        outcome = tokpack(
            project.folder, "lease", old.digest, "--", "bash", "-c", script, store=project.store, may_fail=True
        )
        os._exit(outcome.code)
    for _ in range(600):
        if ready.exists():
            break
        time.sleep(0.1)
    gc(project, "--yes")
    assert objects.exists(store, old)
    go.touch()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    gc(project, "--yes")
    assert not objects.exists(store, old)


def interrupted(script: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a `tokpack` that runs `script`, where INTERRUPT is Ctrl-C."""
    begin = "import os, signal, sys; sys.argv = ['/usr/bin/tokpack']; import tokpack_assets.cli as cli\n"
    script = script.replace("INTERRUPT", "os.kill(os.getpid(), signal.SIGINT)")
    run = subprocess.run([sys.executable, "-c", begin + script], capture_output=True, text=True, timeout=60)
    return run.returncode, run.stdout, run.stderr


def test_an_interrupt_is_one_line_before_within_and_after_the_work() -> None:
    said = (130, "", "stopped; what was finished is kept, nothing is left half-written\n")
    assert interrupted("INTERRUPT") == said
    work = "cli.app.command()(work)\ncli.app(['work'])"
    assert interrupted(f"def work():\n  with cli.show_errors(): INTERRUPT\n{work}") == said
    assert interrupted(f"def work():\n  with cli.show_errors(): pass\n  INTERRUPT\n{work}") == said
    undone = "try: INTERRUPT\n   finally: print('undone')"
    assert interrupted(f"def work():\n  with cli.show_errors():\n   {undone}\n{work}") == (130, "undone\n", said[2])


def test_an_interrupt_of_the_first_import_shows_no_traceback() -> None:
    script = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "tokpack_core":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["/usr/bin/tokpack"]
import tokpack_assets.cli
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (-signal.SIGINT, "", "")
