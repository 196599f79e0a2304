"""Files, folders and globs give each real file once, by stable names; what cannot be read is named."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.hostile_tree import write_tree
from tests.ordinary_user import as_ordinary_user
from tokpack_core.config import ReadConfig
from tokpack_core.corpus.documents import read_documents
from tokpack_core.corpus.files import find_files
from tokpack_core.corpus.problems import Problems
from tokpack_core.errors import InputError


def text_of(path: Path) -> list[str]:
    batches = read_documents(path, path.name, ReadConfig(), Problems())
    return [text for batch in batches for text in batch.column("text").to_pylist()]


def names(patterns: Sequence[str], base: Path) -> list[str]:
    return [file.name for file in find_files(patterns, base)]


def test_hostile_tree(tmp_path: Path) -> None:
    expected = write_tree(tmp_path / "tree")
    with pytest.raises(InputError, match=r"dangling\.txt: cannot be read"):
        find_files(["tree"], tmp_path)
    (tmp_path / "tree/dangling.txt").unlink()
    assert names(["."], tmp_path / "tree") == expected
    assert names(["**"], tmp_path / "tree") == expected
    assert names(["tree/**/*.[tT][xX][tT]", "tree"], tmp_path) == sorted(f"tree/{name}" for name in expected)
    for file in find_files(["tree"], tmp_path):
        file.name.encode()
        assert text_of(file.path) == ["text\n"]
        status = os.stat(file.path)
        assert (file.size, file.mtime_ns, file.inode) == (status.st_size, status.st_mtime_ns, status.st_ino)


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("noext", "its extension is none of"),
        ("fifo.txt", "is not a regular file"),
        ("devnull.txt", "is not a regular file"),
        ("dangling.txt", r"dangling\.txt: cannot be read"),
        ("self", "its extension is none of"),
        ("dir.jsonl", "gives no file to read"),
        ("*.nothing", r"\*\.nothing: gives no file to read"),
        ("absent.txt", r"gives no file to read, for there is no .*/absent\.txt; restore it, or correct the path"),
        ("gone/*/x.txt", r"gives no file to read, for there is no .*/gone; restore it, or correct the path"),
    ],
)
def test_bad_patterns_are_named(tmp_path: Path, pattern: str, error: str) -> None:
    write_tree(tmp_path)
    with pytest.raises(InputError, match=error):
        find_files([pattern], tmp_path)


def test_globs_literals_and_links(tmp_path: Path) -> None:
    for name in ("a/1.txt", "a/.hidden/2.txt", "a/b/3.JSONL", "c/[1].txt", "c/1.txt", "c/notes.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "0").symlink_to("c")
    assert names(["c/[1].txt"], tmp_path) == ["c/[1].txt"]
    assert names(["c/[1]*"], tmp_path) == ["c/1.txt"]
    assert names(["*/*.txt"], tmp_path) == ["a/1.txt", "c/1.txt", "c/[1].txt"]
    assert names(["a/**"], tmp_path) == ["a/1.txt", "a/b/3.JSONL"]
    assert names(["a/.hidden/*.txt"], tmp_path) == ["a/.hidden/2.txt"]
    assert names(["0"], tmp_path) == ["0/1.txt", "0/[1].txt"]
    assert names(["0", "c"], tmp_path) == ["c/1.txt", "c/[1].txt"]
    assert names(["../c/1.txt"], tmp_path / "a") == [str(tmp_path / "c/1.txt")]
    assert names([str(tmp_path / "c" / "?.txt")], tmp_path) == ["c/1.txt"]


def test_unreadable_files_are_named() -> None:
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are closed to other users
    (folder / "closed.txt").touch(mode=0)
    folder.chmod(0o755)

    def refused() -> None:
        with pytest.raises(InputError, match=r"closed\.txt: cannot be read"):
            find_files(["."], folder)
        with pytest.raises(InputError, match=r"closed\.txt: cannot be read"):
            text_of(folder / "closed.txt")

    try:
        as_ordinary_user(refused)
    finally:
        shutil.rmtree(folder)
