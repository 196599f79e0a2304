"""`tokpack encode`: text files to Megatron indexed datasets, as Megatron's preprocess_data writes them.

One document is one sequence; a document without tokens is a repeated document index and no sequence. Text is encoded
as it stands, by the tokenizer's own normalizer if it has one. Nothing is put around documents unless told. Several
fields of a document go to several datasets, PREFIX_<field>_document, in step with each other.

Files are read one after the other, in this thread; batches of about 4 MiB are encoded in `workers` threads and written
in order, so the bytes depend on neither. The threads outlive files: an encoder that has seen text is faster. Encoders
release Python's lock while they work.

Documents of text and image blocks are another matter, see `encode_images`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tokpack_core.commands.encode_images import encode_images, vision_config
from tokpack_core.commands.finished_encode import finished_encode
from tokpack_core.commands.opened_tokenizer import OpenedTokenizer
from tokpack_core.commands.output import MANIFEST_ENDING, new_output
from tokpack_core.commands.progress import OnDone, progress
from tokpack_core.commands.reading import Reading, add
from tokpack_core.commands.run_manifest import write_manifest
from tokpack_core.commands.token_files import TokenFiles
from tokpack_core.config import ReadConfig
from tokpack_core.config.vision import VisionConfig
from tokpack_core.corpus.files import shown
from tokpack_core.corpus.problems import Problems
from tokpack_core.engine import map_in_threads
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import dtype_for
from tokpack_core.store.actions import json_digest
from tokpack_core.tokenizers.agreement.checked_encoding import encode_checked, itself
from tokpack_core.tokenizers.agreement.encoder_choice import encoder_choice
from tokpack_core.tokenizers.agreement.special_tokens_in_text import encode_with_special_tokens
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.framing import framed, surrounded
from tokpack_core.tokenizers.modular.sub_tokenizers import EncodeBy, SubTokenizers, encode_plain

__all__ = ["EncodeOptions", "encode", "vision_config"]

ENCODE_BYTES = 2**22
"""Text that is encoded at a time: an encoder's call costs as much as 30 kB of text."""
CHECKPOINT_BYTES = 2**26
"""Text between two checkpoints: a second or two of work."""


@dataclass(frozen=True)
class EncodeOptions:
    """What is done besides encoding.

    Attributes:
        append_eod: each document that has a token ends in EOD.
        json_keys: fields to encode; none: the one that `Reading` names, to PREFIX itself.
        add_special_tokens: the tokenizer's own post-processor puts its tokens around each document.
        parse_special_tokens: text that looks like a special token is one.
        by_language: each document has the ids of its language's sub-tokenizer, if the tokenizer has one.
        workers: threads that encode.
        resume: what is done is kept when the run is stopped, and a run that was stopped goes on.
    """

    append_eod: bool = False
    json_keys: tuple[str, ...] = ()
    add_special_tokens: bool = False
    parse_special_tokens: bool = False
    workers: int = 1
    resume: bool = False
    by_language: bool = False

    def require_plain(self) -> None:
        """Raises InputError for an option that documents with images do not have."""
        chosen = {
            "--json-keys": self.json_keys,
            "--add-special-tokens": self.add_special_tokens,
            "--parse-special-tokens": self.parse_special_tokens,
            "--resume": self.resume,
            "--by-language": self.by_language,
        }
        for name, value in chosen.items():
            if value:
                raise InputError(f"{name} is for documents of text: leave it out, or --vision")

    def parameters(self) -> dict[str, Any]:
        """What shapes the output."""
        names = ("add_special_tokens", "parse_special_tokens", "by_language")
        chosen = {name: getattr(self, name) for name in names}
        given = {name: True for name, on in chosen.items() if on}
        return {"append_eod": self.append_eod} | given | ({"json_keys": self.json_keys} if self.json_keys else {})


class Encoder:
    """Encodes texts and puts around them what the options ask for; usable in several threads."""

    def __init__(self, opened: OpenedTokenizer, options: EncodeOptions) -> None:
        """Raises InputError when the tokenizer has not what the options ask for."""
        self._tokenizer = opened.tokenizer
        self._options = options
        self.vocab_size = opened.tokenizer.vocab_size
        missing = "say which one it is with --eod, or leave out --append-eod"
        self.eod = opened.require_eod(missing) if options.append_eod else None
        self._around = opened.added_around() if options.add_special_tokens else None
        self._languages = SubTokenizers(opened.tokenizer) if options.by_language else None

    def encode(self, batch: pa.RecordBatch) -> Encoded:
        """`batch`: the columns `text` and `lang`."""
        one: EncodeBy = encode_with_special_tokens if self._options.parse_special_tokens else encode_plain
        if self._languages is None:
            encoded = one(self._tokenizer, batch["text"])
        else:
            encoded = self._languages.encode(batch["text"], batch["lang"], one)
        if self._around is not None:
            encoded = surrounded(encoded, *self._around)
        if self.eod is not None:
            encoded = framed(encoded, encoded.lengths > 0, None, self.eod)
        return encoded


@dataclass(frozen=True)
class Part:
    """One field of one file, as a checkpoint names it.

    Attributes:
        documents: how many of them were done when this run began.
        inputs: how many files were begun, this one included.
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
        for batch in self.reading.documents(self.reading.files[file], options, self.problems[number], on_done):
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
            if counts.tokens == 0:
                of = f" of {name!r}" if len(self.fields) > 1 else ""
                raise InputError(f"{first}: every document{of} is empty, there is no token to write")


def gathered(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """The same documents in batches of at most `limit` bytes of text; a larger batch is passed on as it is."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if waiting and sum(map(weight, waiting)) + weight(batch) > limit:
            yield joined(waiting)
        waiting.append(batch)
        del batch
    if waiting:
        yield joined(waiting)


def joined(waiting: list[pa.RecordBatch]) -> pa.RecordBatch:
    """All batches of the list in one. The list is emptied, so that a long document is not held longer than it takes."""
    taken, waiting[:] = waiting.copy(), []
    return taken[0] if len(taken) == 1 else pa.Table.from_batches(taken).combine_chunks().to_batches()[0]


def encode_batch(encoder: Encoder, reading: Reading, item: Item) -> tuple[Part, int, Encoded]:
    """Where they are from, bytes of text, and the documents."""
    part, batch = item

    def name(number: int) -> str:
        return f"{reading.files[part.file].shown}, row {batch['row'][number].as_py()}: this document"

    return part, weight(batch), encode_checked(encoder.encode, batch, itself, encoder.vocab_size, name)


def weight_of(item: Item) -> int:
    return weight(item[1])


def weight(batch: pa.RecordBatch) -> int:
    return int(batch["text"].nbytes)


def encode(
    opened: OpenedTokenizer,
    reading: Reading,
    output: Path,
    options: EncodeOptions,
    quiet: bool,
    vision: VisionConfig | None = None,
) -> dict[str, Any]:
    """Writes OUTPUT.bin, .idx and .manifest.json, or OUTPUT_<key>_document.bin and .idx for each of `json_keys`.

    Returns the manifest.

    Raises:
        InputError: text or tokenizer cannot be used, there is no token at all, or an output exists.
    """
    if (vision is None) != (reading.options.content_field is None):
        raise InputError(
            "documents with images need both: --content-field names their blocks, and --vision says how many tokens an "
            "image becomes"
        )
    if options.json_keys and reading.options.text_field != ReadConfig().text_field:
        raise InputError("--json-keys names the fields to encode: leave out --text-field")
    if vision is not None:
        options.require_plain()
        return encode_images(opened, reading, output, options.append_eod, quiet, vision)
    fields = options.json_keys or (reading.options.text_field,)
    stems = [f"_{name}_document" for name in options.json_keys] or [""]
    endings = [*(f"{stem}{ending}" for stem in stems for ending in (".bin", ".idx")), MANIFEST_ENDING]
    encoder = Encoder(opened, options)
    vocab_size = encoder.vocab_size
    dtype = dtype_for(vocab_size)
    parameters = options.parameters() | reading.parameters()
    if options.resume and (manifest := finished_encode(output, opened, reading, parameters)):
        return manifest
    with new_output(output, endings, options.resume) as draft:
        prefixes = [draft.with_name(f"{draft.name}{stem}") for stem in stems]
        files = TokenFiles(prefixes, dtype, job_digest(opened, reading, parameters))
        run = Run(reading, fields, files, options)
        try:
            with progress("encoding", reading.bytes * len(fields), "B", quiet) as on_done:
                run.encode(encoder, on_done)
            run.check()
            files.finish()
        finally:
            files.close()
        by_field = [
            {"documents": counts.documents, "empty_documents": counts.empty_documents, "tokens": counts.tokens}
            | {"reading": problems.to_json()}
            for counts, problems in zip(files.state.counts, run.problems, strict=True)
        ]
        warnings = list(encoder_choice(opened.tokenizer).warnings)
        shared = {"dtype": dtype.name, "vocab_size": vocab_size, "eod": encoder.eod}
        shared |= {"encoder_warnings": warnings} if warnings else {}
        counts = shared | ({"fields": dict(zip(fields, by_field, strict=True))} if options.json_keys else by_field[0])
        return write_manifest(draft, "encode", parameters, reading.inputs, counts, opened.as_json())


def job_digest(opened: OpenedTokenizer, reading: Reading, parameters: dict[str, Any]) -> str:
    """Names everything that shapes the output; files by what a stat tells of them."""
    files = [[shown(os.path.abspath(file.path)), file.fingerprint] for file in reading.files]
    return json_digest([opened.digest, opened.eod, parameters, reading.options.max_document_bytes, files])
