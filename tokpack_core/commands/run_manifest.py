"""PREFIX.manifest.json: what a stand-alone command read, was told, and wrote.

    command, tokpack      name and version of the program
    parameters            as given
    inputs                [{path, size, sha256}], absolute paths
    tokenizer             {path, digest, files, family, vocab_size, special_tokens, unicode}, or null
    outputs               [{path, size, sha256, same_as}], paths relative to the manifest's folder
    counts

A tokenizer's digest is that of an object with the same files, so it is also the name of its object in a store. The
manifest holds no time: the same command on the same files writes the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.commands.output import MANIFEST_ENDING
from tokpack_core.errors import InputError
from tokpack_core.store.files import sha256_of
from tokpack_core.store.objects import NONE_HASHED, list_files

SUFFIXES = ("", ".bin", ".idx", "_docs", "_docs.bin", "_docs.idx", "_plan.parquet")


@dataclass(frozen=True)
class RunManifest:
    """A manifest and where it stands."""

    path: Path
    content: dict[str, Any]

    @property
    def output(self) -> Path:
        """The prefix or folder that it is about."""
        return self.path.with_name(self.path.name.removesuffix(MANIFEST_ENDING))

    def output_file(self, path: Path) -> dict[str, Any] | None:
        """The entry of an output file."""
        name = os.path.relpath(path, self.path.parent)
        return next((entry for entry in self.content["outputs"] if entry["path"] == name), None)

    def names(self, path: Path) -> bool:
        """Whether `path` is its output, a file or another prefix of it, or the manifest itself."""
        if path in (self.path, self.output):
            return True
        return any(self.output_file(path.with_name(f"{path.name}{ending}")) for ending in ("", ".bin"))


def describe_file(path: Path) -> dict[str, Any]:
    return {"path": os.path.abspath(path), "size": path.stat().st_size, "sha256": sha256_of(path)}


def write_manifest(
    draft: Path,
    command: str,
    parameters: dict[str, Any],
    inputs: list[dict[str, Any]],
    counts: dict[str, Any],
    tokenizer: dict[str, Any] | None = None,
    hashed: Mapping[str, str] = NONE_HASHED,
) -> dict[str, Any]:
    """Writes DRAFT.manifest.json about all that stands in the draft folder, and returns its content.

    `hashed`: sha256 of files that were hashed as they were written, by path in that folder.
    """
    outputs = [
        {"path": file.path, "size": file.size, "sha256": file.sha256, "same_as": file.same_as}
        for file in list_files(draft.parent, hashed)
    ]
    content = {
        "command": command,
        "tokpack": version("tokpack"),
        "parameters": parameters,
        "inputs": inputs,
        "tokenizer": tokenizer,
        "outputs": outputs,
        "counts": counts,
    }
    text = orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    draft.with_name(f"{draft.name}{MANIFEST_ENDING}").write_bytes(text + b"\n")
    return content


def read_run_manifest(path: Path) -> RunManifest:
    """Raises InputError when the file is no manifest of a command."""
    try:
        content = orjson.loads(path.read_bytes())
        if not {"command", "inputs", "outputs", "counts", "parameters", "tokenizer"} <= content.keys():
            raise ValueError
    except (ValueError, AttributeError):
        raise InputError(f"{path} was altered and is no manifest of tokpack: restore it or run the command") from None
    return RunManifest(path, content)


def manifest_of(path: Path) -> RunManifest | None:
    """The manifest beside a prefix, a folder, one of their files, or the manifest itself."""
    path = Path(os.path.abspath(path))
    for candidate in candidates(path):
        if candidate.is_file() and (manifest := read_run_manifest(candidate)).names(path):
            return manifest
    return None


def candidates(path: Path) -> Iterator[Path]:
    if path.name.endswith(MANIFEST_ENDING):
        yield path
    for suffix in SUFFIXES:
        stem = path.name.removesuffix(suffix)
        if stem and path.name.endswith(suffix):
            yield path.with_name(f"{stem}{MANIFEST_ENDING}")
        if stem.endswith("_document") and path.name.endswith(suffix):
            yield from before_the_key(path.with_name(stem.removesuffix("_document")))
    if path.parent.name:
        yield path.parent.with_name(f"{path.parent.name}{MANIFEST_ENDING}")


def before_the_key(path: Path) -> Iterator[Path]:
    """Manifests that PREFIX_<key>_document may belong to: a key may hold underscores itself."""
    stem, underscore, _ = path.name.rpartition("_")
    while underscore:
        if stem:
            yield path.with_name(f"{stem}{MANIFEST_ENDING}")
        stem, underscore, _ = stem.rpartition("_")
