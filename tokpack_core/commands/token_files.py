"""The output of an encode under way: token files that grow, and a checkpoint from which a stopped run goes on.

In the draft folder stand `<name>.bin` for each key that is encoded and, in `unfinished/`:

    <number>.lengths      i32[sequences], tokens of each sequence of the key of that number
    <number>.documents    i32[documents], sequences of each document
    inputs.jsonl          what the manifest says of each file that was hashed
    checkpoint.json       how far all of it is known to be on disk

Whatever a killed run wrote behind its last checkpoint is cut off when it is resumed. `finish` makes each `.idx` out of
them.
"""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson

from tokpack_core.commands.document_encoder import Sequences
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import IndexWriter, bin_path, idx_path, read_chunks
from tokpack_core.megatron.merge import COPIED
from tokpack_core.megatron.token_writer import TokenWriter
from tokpack_core.store.files import fsync_path

COUNT = np.dtype("<i4")
NO_COPY = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
"""What `copy_file_range` says where files cannot be copied so."""


@dataclass
class Counts:
    documents: int = 0
    empty_documents: int = 0
    sequences: int = 0
    tokens: int = 0
    documents_by_whole: int = 0
    """Those whose language has no sub-tokenizer, where each is to be encoded by its own."""

    def add(self, other: Counts) -> None:
        self.documents += other.documents
        self.empty_documents += other.empty_documents
        self.sequences += other.sequences
        self.tokens += other.tokens
        self.documents_by_whole += other.documents_by_whole


@dataclass
class Checkpoint:
    """How far an encode has come.

    Attributes:
        job: digest of everything that shapes the output.
        file, key, documents: where to go on: documents of this key of this file are done.
        inputs: the files that were hashed; they stand in a file of their own, so that a checkpoint costs as much behind
            many files as behind one.
        input_bytes: of that file.
        reading: by key, what reading had found when this file was begun.
        counts: by key.
        units: how many are done of an encode that is done in units, in the place of `file`, `key` and `documents`.
        encoder_warnings: of those units.
    """

    job: str
    file: int = 0
    key: int = 0
    documents: int = 0
    inputs: list[dict[str, Any]] = field(default_factory=list)
    input_bytes: int = 0
    reading: list[dict[str, Any]] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)
    units: int = 0
    encoder_warnings: list[str] = field(default_factory=list)


class TokenFiles:
    """The token files of an encode, one a key."""

    def __init__(self, prefixes: list[Path], dtype: np.dtype, job: str, hashed: bool = True) -> None:
        """Goes on from the checkpoint that the folder of `prefixes` holds, else begins anew.

        `hashed`: token files are hashed as they are written; then nothing may be joined to them.

        Raises:
            InputError: what was begun there was another job.
        """
        self._dtype = dtype
        self._prefixes = prefixes
        self.scratch = scratch_of(prefixes[0].parent)
        self.state = self._resumed(job) or self._begun_anew(job)
        self.scratch.mkdir(exist_ok=True)
        self._files = ExitStack()
        self._tokens = [
            self._open(bin_path(prefix), counts.tokens * dtype.itemsize)
            for prefix, counts in zip(prefixes, self.state.counts, strict=True)
        ]
        self._writers = [TokenWriter(file, dtype, hashed) for file in self._tokens]
        self._lengths = [
            self._open(self.scratch / f"{number}.lengths", counts.sequences * COUNT.itemsize)
            for number, counts in enumerate(self.state.counts)
        ]
        self._documents = [
            self._open(self.scratch / f"{number}.documents", counts.documents * COUNT.itemsize)
            for number, counts in enumerate(self.state.counts)
        ]
        inputs = self.scratch / "inputs.jsonl"
        self._inputs = self._open(inputs, self.state.input_bytes)
        self.state.inputs = [orjson.loads(line) for line in inputs.read_bytes().splitlines()]
        self._known_inputs = len(self.state.inputs)

    def append(self, number: int, found: Sequences) -> None:
        """Adds documents, whose ids the dtype can hold, to the files of a key."""
        counts, encoded = self.state.counts[number], found.encoded
        sizes = np.diff(found.edges)
        self._writers[number].write(encoded.ids)
        self._lengths[number].write(encoded.lengths.astype(COUNT).data)
        self._documents[number].write(sizes.astype(COUNT).data)
        counts.documents += found.documents
        counts.empty_documents += int((sizes == 0).sum())
        counts.sequences += encoded.documents
        counts.tokens += encoded.ids.size
        counts.documents_by_whole += found.by_whole

    def join(self, folder: Path, counts: list[Counts]) -> None:
        """Adds all that the files of another encode of the same keys hold, which stand in `folder` and are closed."""
        for number, (prefix, more) in enumerate(zip(numbered_prefixes(folder, len(counts)), counts, strict=True)):
            append_file(bin_path(prefix), self._tokens[number])
            append_file(scratch_of(folder) / f"{number}.lengths", self._lengths[number])
            append_file(scratch_of(folder) / f"{number}.documents", self._documents[number])
            self.state.counts[number].add(more)

    def save(self) -> None:
        """Makes what was appended, and the place that `state` names, survive whatever happens to this run."""
        for entry in self.state.inputs[self._known_inputs :]:
            self._inputs.write(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))
        self._known_inputs = len(self.state.inputs)
        self.state.input_bytes = self._inputs.tell()
        for file in (*self._tokens, *self._lengths, *self._documents, self._inputs):
            file.flush()
            os.fsync(file.fileno())
        draft = self.scratch / "checkpoint.draft"
        draft.write_bytes(orjson.dumps(asdict(replace(self.state, inputs=[]))))
        fsync_path(draft)
        os.replace(draft, self.scratch / "checkpoint.json")
        fsync_path(self.scratch)

    def finish(self) -> None:
        """Writes the indexes and removes what only a run under way needs."""
        for number, prefix in enumerate(self._prefixes):
            counts, lengths, documents = self.state.counts[number], self._lengths[number], self._documents[number]
            lengths.flush()
            documents.flush()
            with IndexWriter(idx_path(prefix), self._dtype) as index:
                for chunk in read_chunks(lengths, 0, counts.sequences * COUNT.itemsize, COUNT.str):
                    index.add_sequences(chunk)
                for chunk in read_chunks(documents, 0, counts.documents * COUNT.itemsize, COUNT.str):
                    index.add_documents(chunk)
        self.close()
        shutil.rmtree(self.scratch)

    def hashed(self) -> dict[str, str]:
        """sha256 of the token files by name."""
        named = zip(self._prefixes, self._writers, strict=True)
        return {bin_path(prefix).name: writer.sha256 for prefix, writer in named}

    def close(self) -> None:
        self._files.close()

    def _resumed(self, job: str) -> Checkpoint | None:
        try:
            content = orjson.loads((self.scratch / "checkpoint.json").read_bytes())
        except FileNotFoundError:
            return None
        if content["job"] != job or "input_bytes" not in content:
            raise InputError(
                f"{self.scratch.parent}: the run that was stopped here had other files, options, engine or tokenizer; "
                "give it the same, or remove this folder to begin anew"
            )
        return Checkpoint(**content | {"counts": [Counts(**counts) for counts in content["counts"]]})

    def _begun_anew(self, job: str) -> Checkpoint:
        """Clears the folder of what a run left that has no checkpoint."""
        for path in self.scratch.parent.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return Checkpoint(job, counts=[Counts() for _ in self._prefixes])

    def _open(self, path: Path, size: int) -> Any:
        """The file, cut to `size` bytes; what was behind was not known to be whole."""
        path.touch()
        file = self._files.enter_context(path.open("r+b"))
        if path.stat().st_size < size:
            raise InputError(f"{path} was cut to less than its checkpoint says; remove {self.scratch.parent}")
        file.truncate(size)
        file.seek(size)
        return file


def scratch_of(folder: Path) -> Path:
    """Where lengths, documents and checkpoint are, of token files in a folder."""
    return folder / "unfinished"


def numbered_prefixes(folder: Path, keys: int) -> list[Path]:
    """Prefixes of token files that are to be joined to others."""
    return [folder / str(number) for number in range(keys)]


def append_file(path: Path, to: BinaryIO) -> None:
    """Adds a file's content, which the kernel copies, or the file server without the network, where they can."""
    to.flush()
    with path.open("rb") as file:
        try:
            while os.copy_file_range(file.fileno(), to.fileno(), 2**30):
                pass
        except OSError as error:
            if error.errno not in NO_COPY:
                raise
        to.seek(0, os.SEEK_END)
        shutil.copyfileobj(file, to, COPIED)
