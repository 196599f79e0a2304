"""Texts of documents read again from their source files, by the recorded reading and normalization.

A source file counts when it has the sha256 that the action behind the normalized part names; where it lies does not
matter. An object behind a URL is fetched once and stays until another one is. Documents come in the order of their
file, so files are read forward, and shards that share a file go on where the one before stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import ValidationError

from tokpack_core.config import CorpusConfig, ReadConfig
from tokpack_core.corpus.content import CONTENT
from tokpack_core.corpus.documents import read_documents
from tokpack_core.corpus.files import Identity, identity, require_unchanged, source_path
from tokpack_core.corpus.problems import Problems
from tokpack_core.corpus.remote import fetched, is_url
from tokpack_core.errors import InputError
from tokpack_core.stages import normalize as normalize_stage
from tokpack_core.store.actions import Action
from tokpack_core.store.files import sha256_of
from tokpack_core.store.lineage import LineageGraph

Int64 = npt.NDArray[np.int64]
DRAWN = pa.schema({"place": pa.int64(), "id": pa.string(), "text": pa.string()})
DRAWN_CONTENT = DRAWN.append(pa.field("content", CONTENT))
"""Where documents hold images."""
CHANGED = "changed since it was read"
GONE = "no longer there"


@dataclass
class Cursor:
    """How far a source file was read."""

    path: Path
    name: str
    config: CorpusConfig
    before: Identity
    batches: Iterator[pa.RecordBatch]
    last: pa.RecordBatch | None = None


@dataclass
class SourceTexts:
    """Source files found again below some folders, or fetched from where their URLs say; to be closed.

    Attributes:
        folders: where relative names may start.
        refused: names of files that cannot be read as they were, and why.
    """

    graph: LineageGraph
    folders: list[Path]
    refused: dict[str, str] = field(default_factory=dict)
    _found: dict[tuple[str, str], Path | None] = field(default_factory=dict)
    _cursor: Cursor | None = None
    _copy: ExitStack = field(default_factory=ExitStack)
    _fetched: tuple[str, str] | None = None
    """The object whose copy is held."""

    def close(self) -> None:
        """Removes what was fetched last."""
        self._cursor = None
        self._copy.close()
        if self._fetched is not None:
            del self._found[self._fetched]
            self._fetched = None

    def read(self, part_sha256: str, documents: pa.Table, schema: pa.Schema) -> pa.Table:
        """Place (row number in `documents`), id and text, normalized, of the documents whose source is there.

        Args:
            part_sha256: the normalized part that they are in.
            documents: source and row, in the order of the part.
            schema: what is given of each document, DRAWN or DRAWN_CONTENT.

        Raises:
            InputError: a source file changes while it is read.
        """
        action = self._normalization(part_sha256)
        config = recorded_config(action) if action else None
        sources = documents["source"].to_pylist()
        rows = documents["row"].to_numpy()
        found: list[pa.RecordBatch] = []
        first = 0
        for name, group in groupby(sources):
            count = len(list(group))
            path = self._find(name, action) if action and config else None
            if path is not None and config is not None:
                found += self._read_rows(path, name, config, rows[first : first + count], first, schema)
            elif action is None or config is None:
                self.refused.setdefault(name, "how it was read is not recorded, or by another version of tokpack")
            first += count
        return pa.Table.from_batches(found, schema=schema)

    def _normalization(self, part_sha256: str) -> Action | None:
        """The action that made a normalized part."""
        for ref in self.graph.files.get(part_sha256, []):
            if ref.stage == normalize_stage.UNIT_STAGE:
                return self.graph.action(ref)
        return None

    def _find(self, name: str, action: Action) -> Path | None:
        sha256 = action.inputs["files"].get(name, "")
        if (name, sha256) not in self._found:
            path = self._fetch(name, sha256) if is_url(name) else self._find_local(name, sha256)
            self._found[name, sha256] = path
        return self._found[name, sha256]

    def _find_local(self, name: str, sha256: str) -> Path | None:
        candidates = list(dict.fromkeys(source_path(name, folder) for folder in self.folders))
        there = [path for path in candidates if path.is_file()]
        found = next((path for path in there if sha256_of(path) == sha256), None)
        if found is None:
            self.refused[name] = CHANGED if there else GONE
        return found

    def _fetch(self, url: str, sha256: str) -> Path | None:
        """A copy of the object that stays until the next one is fetched."""
        self.close()
        try:
            path = self._copy.enter_context(fetched(url))
        except InputError as error:
            gone = isinstance(error.__cause__, FileNotFoundError)
            self.refused[url] = GONE if gone else str(error).removeprefix(f"{url}: ")
            return None
        if sha256_of(path) != sha256:
            self.refused[url] = CHANGED
            return None
        self._fetched = (url, sha256)
        return path

    def _read_rows(
        self, path: Path, name: str, config: CorpusConfig, rows: Int64, first: int, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """The documents of ascending `rows` of a file; the first has the place `first`."""
        cursor = self._at(path, name, config, int(rows[0]))
        while True:
            batch = cursor.last if cursor.last is not None else next(cursor.batches, None)
            cursor.last = batch
            if batch is None:
                break
            there = batch["row"].to_numpy()
            chosen = np.isin(there, rows)
            if chosen.any():
                drawn = batch.filter(pa.array(chosen))
                normalized, _ = normalize_stage.normalized_batch(drawn, name, config)
                places = pa.array(first + np.searchsorted(rows, there[chosen]))
                yield pa.record_batch([places, *(normalized[column] for column in schema.names[1:])], schema=schema)
            if there[-1] >= rows[-1]:
                break
            cursor.last = None
        require_unchanged(path, cursor.before)

    def _at(self, path: Path, name: str, config: CorpusConfig, row: int) -> Cursor:
        """The file opened where it was left, or from its start if that is past `row`."""
        cursor = self._cursor
        same = cursor is not None and (cursor.name, cursor.config) == (name, config)
        if cursor is None or not same or cursor.last is None or cursor.last["row"][0].as_py() > row:
            options = ReadConfig(**config.model_dump(include=set(ReadConfig.model_fields)))
            before = identity(path)
            cursor = Cursor(path, name, config, before, read_documents(path, name, options, Problems()))
            self._cursor = cursor
        return cursor


def recorded_config(action: Action) -> CorpusConfig | None:
    """Reading and normalization as an action names them; None if this version of tokpack does them otherwise."""
    if action.code_version != normalize_stage.VERSION:
        return None
    try:
        return CorpusConfig(paths=("recorded",), **action.parameters)
    except (ValidationError, TypeError):
        return None
