"""An encode under way: text is read ahead across files, encoded in threads, and written with checkpoints in order.

Batches of about 4 MiB are encoded in `workers` threads and written in order, so the bytes depend on neither. The
threads outlive files: an encoder that has seen text is faster. Encoders release Python's lock while they work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from tokpack_core.commands.document_encoder import EncodeOptions, Encoder, Sequences, by_document
from tokpack_core.commands.progress import OnDone
from tokpack_core.commands.reading import Reading, add
from tokpack_core.commands.token_files import TokenFiles
from tokpack_core.config import ReadConfig
from tokpack_core.corpus.problems import Problems
from tokpack_core.corpus.sentences import as_sentences, has_sentences
from tokpack_core.errors import InputError
from tokpack_core.threads import map_in_threads
from tokpack_core.tokenizers.agreement.checked_encoding import encode_checked

ENCODE_BYTES = 2**22
"""Text that is encoded at a time: an encoder's call costs as much as 30 kB of text."""
CHECKPOINT_BYTES = 2**26
"""Text between two checkpoints: a second or two of work."""


@dataclass(frozen=True)
class Part:
    """One field of one file, as a checkpoint names it.

    Attributes:
        documents: how many of them were done when this run began.
        inputs: how many files had been hashed.
        reading: by key, what reading had found before.
    """

    file: int
    key: int
    documents: int
    inputs: int
    reading: list[dict[str, Any]]


Item = tuple[Part, pa.RecordBatch]


@dataclass
class Run:
    """An encode under way. Reading is ahead of encoding, across files; what a checkpoint tells is what was written."""

    reading: Reading
    fields: tuple[str, ...]
    files: TokenFiles
    options: EncodeOptions
    problems: list[Problems] = field(default_factory=list)

    def encode(self, encoder: Encoder, on_done: OnDone) -> None:
        state = self.files.state
        self.reading.inputs = state.inputs
        self.reading.hash_last = True
        self.problems = [Problems.from_json(counts) for counts in state.reading] or [Problems() for _ in self.fields]
        unsaved = 0
        under_way: Part | None = None
        encode_one = partial(encode_batch, encoder, self.reading)
        for part, size, encoded in map_in_threads(encode_one, self.items(on_done), weight_of, self.options.workers):
            if part is not under_way:
                under_way = part
                state.file, state.key, state.documents = part.file, part.key, part.documents
                state.reading = part.reading
            self.files.append(part.key, encoded)
            state.documents += encoded.documents
            unsaved += size
            if self.options.resume and unsaved >= CHECKPOINT_BYTES:
                state.inputs = self.reading.inputs[: part.inputs]
                self.files.save()
                unsaved = 0

    def items(self, on_done: OnDone) -> Iterator[Item]:
        """What is encoded at a time, from where the checkpoint says."""
        first, first_key, done = self.files.state.file, self.files.state.key, self.files.state.documents
        finished = sum(file.size for file in self.reading.files[:first]) * len(self.fields)
        for file in range(first, len(self.reading.files)):
            for key in range(first_key, len(self.fields)):
                before = [problems.to_json() for problems in self.problems]
                part: Part | None = None
                told = partial(add, on_done, finished)
                for batch in gathered(self.batches(file, key, done, told), ENCODE_BYTES):
                    part = part or Part(file, key, done, len(self.reading.inputs), before)
                    yield part, batch
                    del batch
                finished += self.reading.files[file].size
                done = 0
            first_key = 0

    def batches(self, file: int, number: int, done: int, on_done: OnDone) -> Iterator[pa.RecordBatch]:
        """The documents of one field of one file but the first `done`."""
        options = self.field_options(number)
        for batch in self.reading.documents(self.reading.files[file], options, self.problems[number], on_done, True):
            passed = min(done, len(batch))
            done -= passed
            if passed < len(batch):
                yield batch.slice(passed)

    def field_options(self, number: int) -> ReadConfig:
        return self.reading.options.model_copy(update={"text_field": self.fields[number]})

    def check(self) -> None:
        """Raises InputError when there is nothing to write, or the fields are out of step."""
        first = self.reading.files[0].shown
        for name, problems, counts in zip(self.fields, self.problems, self.files.state.counts, strict=True):
            self.reading.require_documents(problems)
            if counts.documents != self.files.state.counts[0].documents:
                raise InputError(
                    f"{first}: {counts.documents} documents have {name!r} and {self.files.state.counts[0].documents} "
                    f"have {self.fields[0]!r}, so they would be out of step; mend them, or encode one key at a time"
                )
            if counts.documents_by_whole == counts.documents:
                raise InputError(
                    f"{first}: no document has a language of the tokenizer, and --by-language gives each the ids of "
                    "its own: name the field that holds it with --lang-field, or its language with --lang"
                )
            if counts.tokens == 0:
                of = f" of {name!r}" if len(self.fields) > 1 else ""
                raise InputError(f"{first}: every document{of} is empty, there is no token to write")


def gathered(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """The same documents in batches of at most `limit` bytes of text; a larger batch is passed on as it is.

    The first are smaller, so that no thread waits long for them.
    """
    waiting: list[pa.RecordBatch] = []
    most = limit // 4
    for batch in batches:
        if waiting and sum(map(weight, waiting)) + weight(batch) > most:
            yield joined(waiting)
            most = min(2 * most, limit)
        waiting.append(batch)
        del batch
    if waiting:
        yield joined(waiting)


def joined(waiting: list[pa.RecordBatch]) -> pa.RecordBatch:
    """All batches of the list in one. The list is emptied, so that a long document is not held longer than it takes."""
    taken, waiting[:] = waiting.copy(), []
    if len(taken) == 1:
        return taken[0]
    if any(has_sentences(batch["text"]) for batch in taken):
        place = taken[0].schema.get_field_index("text")
        taken = [batch.set_column(place, "text", as_sentences(batch["text"])) for batch in taken]
    return pa.Table.from_batches(taken).combine_chunks().to_batches()[0]


def encode_batch(encoder: Encoder, reading: Reading, item: Item) -> tuple[Part, int, Sequences]:
    """Where they are from, bytes of text, and the documents."""
    part, batch = item

    def name(number: int) -> str:
        return f"{reading.files[part.file].shown}, row {batch['row'][number].as_py()}: this document"

    return part, weight(batch), encode_checked(encoder.encode, batch, by_document, encoder.vocab_size, name)


def weight_of(item: Item) -> int:
    return weight(item[1])


def weight(batch: pa.RecordBatch) -> int:
    return int(batch["text"].nbytes)
