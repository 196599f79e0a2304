"""Documents of the files named on a command line, in the order given, each file proven to be the one hashed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.commands.progress import OnDone
from tokpack_core.commands.run_manifest import describe_file
from tokpack_core.config import NormalizeConfig, ReadConfig, UnicodeForm
from tokpack_core.corpus.content import has_content, text_blocks, with_text_blocks
from tokpack_core.corpus.documents import read_documents
from tokpack_core.corpus.files import SourceFile, find_files
from tokpack_core.corpus.normalization import normalize
from tokpack_core.corpus.problems import Problems
from tokpack_core.errors import InputError


@dataclass
class Reading:
    """What is read, and after reading, what was found.

    Attributes:
        lang: of documents that name none.
        inputs: path, size and sha256 of each file read so far.
    """

    files: list[SourceFile]
    options: ReadConfig
    lang: str | None = None
    problems: Problems = field(default_factory=Problems)
    inputs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    def parameters(self) -> dict[str, Any]:
        left_out = {"metadata_fields", "max_document_bytes"} | (
            {"content_field"} if not self.options.content_field else set()
        )
        return self.options.model_dump(mode="json", exclude=left_out) | {"lang": self.lang}

    def batches(self, on_done: OnDone) -> Iterator[pa.RecordBatch]:
        """Every document, once.

        Raises:
            InputError: a file cannot be read or changed meanwhile, or no file held a document.
        """
        finished = 0
        for file in self.files:
            text_bytes = 0
            for batch in self._read(file):
                if self.lang is not None:
                    langs = pc.fill_null(batch["lang"], self.lang)
                    batch = batch.set_column(batch.schema.get_field_index("lang"), "lang", langs)
                yield batch
                text_bytes += batch["text"].nbytes
                # Within a file the text stands in for the place in the file, which no reader tells.
                on_done(finished + min(text_bytes, file.size))
            finished += file.size
            on_done(finished)
        if not self.problems.documents:
            raise InputError(f"{self.files[0].path}: there is no document in the {len(self.files)} files named")

    def _read(self, file: SourceFile) -> Iterator[pa.RecordBatch]:
        self.inputs.append(describe_file(file.path))
        yield from read_documents(file.path, str(file.path), self.options, self.problems)
        after = file.path.stat()
        if (after.st_size, after.st_mtime_ns, after.st_ino) != (file.size, file.mtime_ns, file.inode):
            raise InputError(f"{file.path}: the file changed while it was read; run again when it is complete")


def open_reading(paths: Sequence[str], options: ReadConfig, lang: str | None) -> Reading:
    """The files that paths, folders and globs name: in the order of the arguments, by name within one, each once.

    Raises:
        InputError: an argument names nothing that can be read.
    """
    found: dict[str, SourceFile] = {}
    for path in paths:
        for file in find_files([path], Path.cwd()):
            found.setdefault(str(file.path.resolve()), file)
    return Reading(list(found.values()), options, lang)


def normalized(batches: Iterator[pa.RecordBatch], form: UnicodeForm) -> Iterator[pa.RecordBatch]:
    """The batches with their text as the graph normalizes it by default, in the given unicode form."""
    config = NormalizeConfig(unicode=form)
    for batch in batches:
        texts, _ = normalize(text_blocks(batch), config)
        if has_content(batch):
            texts, content = with_text_blocks(batch["content"], texts)
            batch = batch.set_column(batch.schema.get_field_index("content"), "content", content)
        yield batch.set_column(batch.schema.get_field_index("text"), "text", texts)
