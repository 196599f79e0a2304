"""Documents of the files named on a command line, in the order given, each file proven to be the one hashed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.commands.progress import OnDone
from tokpack_core.commands.run_manifest import describe_file
from tokpack_core.config import NormalizeConfig, ReadConfig, UnicodeForm
from tokpack_core.corpus.content import has_content, text_blocks, with_text_blocks
from tokpack_core.corpus.documents import read_documents
from tokpack_core.corpus.field_names import no_language
from tokpack_core.corpus.files import SourceFile, find_files, named_if_gone, shown
from tokpack_core.corpus.problems import Problems
from tokpack_core.corpus.ranges import RowRange
from tokpack_core.corpus.small_normalization import SMALL, normalized_in_python
from tokpack_core.errors import InputError


@dataclass
class Reading:
    """What is read, and after reading, what was found.

    Attributes:
        lang: of documents that name none.
        inputs: path, size and sha256 of each file read so far.
        part: what is read of the only file, if not all of it.
        hash_last: files are hashed when they have been read, while others are still busy with what was read.
    """

    files: list[SourceFile]
    options: ReadConfig
    lang: str | None = None
    problems: Problems = field(default_factory=Problems)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    part: RowRange | None = None
    hash_last: bool = False
    languages_found: bool = False
    """Whether a document named one itself."""

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    def parameters(self) -> dict[str, Any]:
        usual, seldom = ReadConfig(), ("content_field", "max_document_bytes")
        as_usual = {name for name in seldom if getattr(self.options, name) == getattr(usual, name)}
        left_out = {"metadata_fields"} | as_usual
        return self.options.model_dump(mode="json", exclude=left_out) | {"lang": self.lang}

    def batches(self, on_done: OnDone) -> Iterator[pa.RecordBatch]:
        """Every document, once.

        Raises:
            InputError: a file cannot be read or changed meanwhile, or no file held a document.
        """
        finished = 0
        for file in self.files:
            yield from self.documents(file, self.options, self.problems, partial(add, on_done, finished))
            finished += file.size
        self.require_documents(self.problems)

    def documents(
        self, file: SourceFile, options: ReadConfig, problems: Problems, on_done: OnDone, sentences: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The documents of one file, which must not change meanwhile; `on_done` is told of bytes of this file.

        `sentences`: as `read_documents` has it.
        """
        text_bytes = 0
        with file.opened() as path:
            if not self.hash_last:
                self.describe(file, path)
            for batch in read_documents(path, file.shown, options, problems, sentences, self.part):
                if options.lang_field is not None and not self.languages_found:
                    self.languages_found = batch["lang"].null_count < len(batch)
                if self.lang is not None:
                    langs = pc.fill_null(batch["lang"], self.lang)
                    batch = batch.set_column(batch.schema.get_field_index("lang"), "lang", langs)
                yield batch
                text_bytes += batch["text"].nbytes
                # Within a file the text stands in for the place in the file, which no reader tells.
                on_done(min(text_bytes, file.size))
            self.describe(file, path)
            on_done(file.size)

    def as_json(self) -> dict[str, Any]:
        """What a manifest says of the documents, after all were read, with warnings if there are any."""
        named = self.options.lang_field
        if named is None or self.languages_found:
            return self.problems.to_json()
        return self.problems.to_json() | {"warnings": [no_language(named, self.files[0])]}

    def describe(self, file: SourceFile, path: Path) -> None:
        """Adds a file to `inputs`, once."""
        named = input_name(file)
        if not any(entry["path"] == named for entry in self.inputs[-1:]):
            with named_if_gone(path):
                self.inputs.append(describe_file(path) | {"path": named})

    def require_documents(self, problems: Problems) -> None:
        if problems.documents:
            return
        others = len(self.files) - 1
        where = self.files[0].shown + (f" and {others} more" if others else "")
        if problems.skipped:
            reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(problems.skipped.items()))
            raise InputError(f"{where}: every document was left out ({reasons}); mend them")
        raise InputError(f"{where}: there is no document; name a file that holds some")


def input_name(file: SourceFile) -> str:
    """What a manifest calls a file."""
    return shown(os.path.abspath(file.path)) if file.version is None else file.name


def add(on_done: OnDone, finished: int, now: int) -> None:
    on_done(finished + now)


def open_reading(paths: Sequence[str], options: ReadConfig, lang: str | None) -> Reading:
    """The files that paths, folders and globs name: in the order of the arguments, by name within one, each once.

    Raises:
        InputError: an argument names nothing that can be read.
    """
    found: dict[str, SourceFile] = {}
    for path in paths:
        for file in find_files([path], Path.cwd()):
            found.setdefault(file.name if file.version is not None else str(file.path.resolve()), file)
    return Reading(list(found.values()), options, lang)


def by_kernels(texts: pa.Array, form: UnicodeForm) -> pa.Array:
    # Loads kernels, which a little text can do without.
    from tokpack_core.corpus.normalization import normalize

    return normalize(texts, NormalizeConfig(unicode=form))[0]


def normalized(batches: Iterator[pa.RecordBatch], form: UnicodeForm) -> Iterator[pa.RecordBatch]:
    """The batches with their text as the graph normalizes it by default, in the given unicode form."""
    seen = 0
    for batch in batches:
        seen += batch["text"].nbytes
        texts = normalized_in_python(text_blocks(batch), form) if seen <= SMALL else None
        if texts is None:
            texts = by_kernels(text_blocks(batch), form)
        if has_content(batch):
            texts, content = with_text_blocks(batch["content"], texts)
            batch = batch.set_column(batch.schema.get_field_index("content"), "content", content)
        yield batch.set_column(batch.schema.get_field_index("text"), "text", texts)
