"""An encode that is killed goes on from its checkpoint, and its bytes are those of one that was not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command_line import EOD, TOKPACK, read_raw, refused, tokpack
from tests.small_project import write_small_project
from tests.test_merge import same_bytes
from tokpack_core.commands.reading import open_reading
from tokpack_core.config import ReadConfig
from tokpack_core.errors import InputError

DIES = """
import os, sys
from tokpack_core.commands import encode_run, token_files
from tokpack_core.corpus import compression, lines
compression.BLOCK_BYTES = lines.BLOCK_BYTES = 1000
encode_run.CHECKPOINT_BYTES, encode_run.ENCODE_BYTES = 2000, 1
left = int(sys.argv.pop(1))
append = token_files.TokenFiles.append
def dying(self, number, encoded):
    global left
    left -= 1
    append(self, number, encoded)
    if left == 0:
        for file in (*self._tokens, *self._lengths):
            file.flush()
        os._exit(9)
token_files.TokenFiles.append = dying
from tokpack_core.cli.app import app
app()
"""
NAMES = ("a.jsonl", "b.jsonl")
KEYS = ("--json-keys", "text", "--json-keys", "title")
ENCODE = ("encode", "--tokenizer", "tok", "--append-eod", *KEYS, "--workers", "2", "--on-error", "skip")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("resume")
    write_small_project(root)
    train = ("--family", "byte_bpe", "--vocab-size", "500", "--special-token", f"eod={EOD}", "--output", "tok")
    tokpack(root, "train", *train, "data/docs")
    texts = [row["text"] for row in map(json.loads, (root / "data" / "docs" / "0.jsonl").open(encoding="utf-8"))]
    rows = [json.dumps({"text": text, "title": f"{number} {text[:40]}"}) for number, text in enumerate(texts)]
    rows.insert(5, '{"text": 1, "title": 2}')
    for name in NAMES:
        (root / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    tokpack(root, *ENCODE, "--output", "whole", *NAMES)
    return root


def killed(folder: Path, appends: int, *arguments: str | Path) -> None:
    command = [sys.executable, "-c", DIES, str(appends), *map(str, arguments)]
    assert subprocess.run(command, cwd=folder, check=False, capture_output=True, timeout=120).returncode == 9


def test_killed_again_and_again_the_bytes_are_the_same(folder: Path, tmp_path: Path) -> None:
    arguments = (*ENCODE, "--resume", "--output", tmp_path / "x", *NAMES)
    checkpoint = tmp_path / ".x.unfinished" / "unfinished" / "checkpoint.json"
    places = []
    for appends in (4, 25, 25, 8):
        killed(folder, appends, *arguments)
        state = json.loads(checkpoint.read_bytes())
        places.append((state["file"], state["key"], state["documents"]))
    assert places == sorted(places)
    assert len(set(places)) >= 3, places
    assert not list(tmp_path.glob("x*"))
    done = tokpack(folder, *arguments, "--json").json
    for key in ("text", "title"):
        assert same_bytes(tmp_path / f"x_{key}_document", folder / f"whole_{key}_document")
    whole = json.loads((folder / "whole.manifest.json").read_bytes())
    assert done["counts"] == whole["counts"]
    assert done["inputs"] == whole["inputs"]
    assert {path.name for path in tmp_path.iterdir()} == {
        "x.manifest.json",
        *(f"x_{key}_document.{ending}" for key in ("text", "title") for ending in ("bin", "idx")),
    }


def test_what_was_stopped_is_not_mixed_with_another_job(folder: Path, tmp_path: Path) -> None:
    arguments = ("encode", "--tokenizer", "tok", "--resume", "--output", tmp_path / "x")
    killed(folder, 6, *arguments, "--on-error", "skip", *NAMES)
    said = refused(folder, *arguments, "--on-error", "skip", "--append-eod", *NAMES)
    assert "had other files, options, engine or tokenizer" in said
    assert "x.unfinished" in said
    tokpack(folder, *arguments, "--on-error", "skip", *NAMES)
    assert len(read_raw(tmp_path / "x").document_indices) > 1


def as_after_the_first_rename(output: Path, draft_name: str) -> Path:
    """Puts back into the draft folder what is renamed last, and returns that folder."""
    draft = output / draft_name
    draft.mkdir()
    for name in ("x.idx", "x.manifest.json"):
        os.rename(output / name, draft / name)
    return draft


def test_a_run_killed_between_its_last_renames_is_done_again(folder: Path, tmp_path: Path) -> None:
    arguments = ("encode", "--tokenizer", "tok", "--resume", "--on-error", "skip", "--output", tmp_path / "x", *NAMES)
    tokpack(folder, *arguments)
    wanted = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    as_after_the_first_rename(tmp_path, ".x.unfinished")
    tokpack(folder, *arguments)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == wanted


def test_of_a_killed_run_that_cannot_be_resumed_nothing_is_left(folder: Path, tmp_path: Path) -> None:
    """Wherever it was killed: while it wrote, or between its renames, one of which was done."""
    arguments = ("encode", "--tokenizer", "tok", "--on-error", "skip", "--output", tmp_path / "x", *NAMES)
    tokpack(folder, *arguments)
    wanted = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    draft = as_after_the_first_rename(tmp_path, ".x.draft")
    tokpack(folder, *arguments)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == wanted
    for path in tmp_path.iterdir():
        path.unlink()
    draft.mkdir()
    (draft / "x.bin").write_bytes(b"half of it")
    assert "no file to read" in refused(folder, *arguments, "not_there.jsonl")
    tokpack(folder, *arguments)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == wanted


def test_a_run_killed_after_its_last_rename_has_nothing_left_to_do(folder: Path, tmp_path: Path) -> None:
    arguments = ("encode", "--tokenizer", "tok", "--on-error", "skip", "--output", tmp_path / "x")
    first = tokpack(folder, *arguments, "--resume", "--json", *NAMES).json
    wanted = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    (tmp_path / ".x.unfinished").mkdir()
    assert tokpack(folder, *arguments, "--resume", "--json", *NAMES).json == first
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()} == wanted
    assert "exists already" in refused(folder, *arguments, *NAMES)
    assert "exists already" in refused(folder, *arguments, "--resume", NAMES[0])
    assert "exists already" in refused(folder, *arguments, "--resume", "--append-eod", *NAMES)
    (tmp_path / "x.bin").unlink()
    assert "x.idx exists already" in refused(folder, *arguments, "--resume", *NAMES)


def test_two_runs_do_not_write_one_output(folder: Path, tmp_path: Path) -> None:
    for name in (".x.unfinished", ".x.draft"):
        (tmp_path / name).mkdir()
    holding = "import fcntl, os, sys; d = os.open(sys.argv[1], os.O_RDONLY); fcntl.flock(d, fcntl.LOCK_EX); input()"
    holders = [
        subprocess.Popen([sys.executable, "-c", holding, tmp_path / name], stdin=subprocess.PIPE, text=True)
        for name in (".x.unfinished", ".x.draft")
    ]
    time.sleep(1)
    said = [
        refused(folder, "encode", "--tokenizer", "tok", *options, "--output", tmp_path / "x", NAMES[0])
        for options in (["--resume"], [])
    ]
    for holder in holders:
        holder.communicate("\n")
    assert all("another run is writing it" in sentence for sentence in said)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".x.draft", ".x.unfinished"]


def test_a_full_disk_is_one_sentence_and_the_rest_is_resumed(folder: Path, tmp_path: Path) -> None:
    arguments = ("--tokenizer", "tok", "--resume", "--on-error", "skip", "--output", tmp_path / "x", *NAMES)
    limited = f"ulimit -f 4; exec {TOKPACK} encode " + " ".join(map(str, arguments))
    run = subprocess.run(["bash", "-c", limited], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 1
    assert run.stderr.startswith("error: ")
    assert "raise the limit on file sizes" in run.stderr
    assert len(run.stderr.splitlines()) == 1
    tokpack(folder, "encode", *arguments)
    tokpack(folder, "encode", "--tokenizer", "tok", "--on-error", "skip", "--output", tmp_path / "y", *NAMES)
    assert same_bytes(tmp_path / "x", tmp_path / "y")


@pytest.mark.parametrize("hash_last", [True, False])
def test_a_file_that_is_removed_while_it_is_read_is_named_with_the_remedy(tmp_path: Path, hash_last: bool) -> None:
    file = tmp_path / "a.txt"
    file.write_text("text", encoding="utf-8")
    reading = open_reading([str(file)], ReadConfig(), None)
    reading.hash_last = hash_last
    documents = reading.documents(reading.files[0], reading.options, reading.problems, lambda done: None)
    next(documents)
    file.unlink()
    with pytest.raises(InputError, match=r"a\.txt: the file can no longer be read \(No such file .*restore it and run"):
        list(documents)
