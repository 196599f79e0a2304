"""An encode that was killed after its output had its name: run again, it has nothing left to do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.commands.opened_tokenizer import OpenedTokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, unfinished_folder
from tokpack_core.commands.reading import Reading
from tokpack_core.commands.run_manifest import read_run_manifest


def finished_encode(
    output: Path, opened: OpenedTokenizer, reading: Reading, parameters: dict[str, Any]
) -> dict[str, Any] | None:
    """The manifest that stands at `output`, if it is of the same files, options and tokenizer and its files are there.

    What the run left beside its output is removed. Raises InputError for a manifest that was altered.
    """
    path = output.with_name(f"{output.name}{MANIFEST_ENDING}")
    if not path.is_file():
        return None
    content = read_run_manifest(path).content
    tokenizer = content["tokenizer"] or {}
    same = (
        content["command"] == "encode"
        and content["parameters"] == orjson.loads(orjson.dumps(parameters))
        and (tokenizer.get("digest"), tokenizer.get("eod_string")) == (opened.digest, opened.eod)
        and all(is_whole(path.parent / entry["path"], entry["size"]) for entry in content["outputs"])
        and content["inputs"] == inputs_of(reading)
    )
    if not same:
        return None
    shutil.rmtree(unfinished_folder(output), ignore_errors=True)
    return content


def is_whole(file: Path, size: int) -> bool:
    return file.is_file() and file.stat().st_size == size


def inputs_of(reading: Reading) -> list[dict[str, Any]]:
    """What the manifest of a run says of the files to read."""
    for file in reading.files:
        with file.opened() as path:
            reading.describe(file, path)
    inputs, reading.inputs = reading.inputs, []
    return inputs
