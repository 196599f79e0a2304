"""What a worker does for an encode in units (see `encode_units`): finds the ranges of a large file, encodes a unit.

It may be on another machine, so it proves first that it sees the files that the calling machine does.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import orjson

from tokpack_core.commands.document_encoder import EncodeOptions, Encoder
from tokpack_core.commands.encode_run import Run
from tokpack_core.commands.encode_units import RESULT, RUN, EncodeUnit, LargeFile, NamedTokenizer, UnitSettings
from tokpack_core.commands.opened_tokenizer import OpenedTokenizer, open_tokenizer
from tokpack_core.commands.output import writing_errors
from tokpack_core.commands.reading import Reading, input_name
from tokpack_core.commands.token_files import TokenFiles, numbered_prefixes
from tokpack_core.corpus.compression import BLOCK_BYTES
from tokpack_core.corpus.files import SourceFile, file_type, identity, shown
from tokpack_core.corpus.ranges import LineRanges, RowRange, row_group_ranges
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import dtype_for
from tokpack_core.store.files import fsync_path, sha256_of
from tokpack_core.tokenizers.agreement.encoder_choice import encoder_choice

SHARE_IT = "every node must see tokenizer, files and output under the same path: put them in a folder that is shared"


def file_ranges(settings: UnitSettings, large: LargeFile) -> tuple[dict[str, Any], list[RowRange]]:
    """In a worker: a file's entry of the manifest and its ranges. Lines are counted in the pass that hashes.

    Raises:
        InputError: this machine cannot read the file, or does not see the folder of results.
    """
    path = large.file.path
    with named_errors(settings, [large.file]):
        kept = settings.folder / f"ranges.{large.number}"
        if not kept.exists():
            with large.file.opened():
                if (file_type(path.name) or ("", None))[0] == "parquet":
                    sha256, ranges = sha256_of(path), row_group_ranges(path, large.goal)
                else:
                    sha256, ranges = line_ranges(path, large.goal)
            entry = {"path": input_name(large.file), "size": large.file.size, "sha256": sha256}
            draft = kept.with_name(f"{kept.name}.{uuid.uuid4().hex}")
            draft.write_bytes(orjson.dumps([entry, [asdict(one) for one in ranges]]))
            fsync_path(draft)
            os.replace(draft, kept)
        entry, ranges = orjson.loads(kept.read_bytes())
        return entry, [RowRange(**one) for one in ranges]


def line_ranges(path: Path, goal: int) -> tuple[str, list[RowRange]]:
    digest = hashlib.sha256()
    lines = LineRanges(goal)
    with path.open("rb", buffering=0) as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
            lines.add(block)
    return digest.hexdigest(), lines.finish()


def encode_unit(settings: UnitSettings, unit: EncodeUnit) -> dict[str, Any]:
    """In a worker: makes the unit's folder, unless it is there, and returns its unit.json.

    Raises:
        InputError: a document cannot be encoded, or this machine does not see what the calling one does.
    """
    with named_errors(settings, unit.files):
        final = settings.folder / str(unit.number)
        if not final.exists():
            draft = settings.folder / f"{unit.number}.{uuid.uuid4().hex}"
            draft.mkdir()
            try:
                write_unit(settings, unit, draft)
                if settings.durable:
                    fsync_all(draft)
                publish(draft, final)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        result: dict[str, Any] = orjson.loads((final / RESULT).read_bytes())
        return result


def write_unit(settings: UnitSettings, unit: EncodeUnit, folder: Path) -> None:
    opened, encoder = encoder_of(settings.tokenizer, settings.options)
    inputs = [] if unit.entry is None else [unit.entry]
    reading = Reading(list(unit.files), settings.read, settings.lang, inputs=inputs, part=unit.part)
    prefixes = numbered_prefixes(folder, len(settings.fields))
    files = TokenFiles(prefixes, dtype_for(encoder.vocab_size), settings.run, hashed=False)
    run = Run(reading, settings.fields, files, settings.options)
    try:
        run.encode(encoder, lambda done: None)
    finally:
        files.close()
    result = {
        "counts": [asdict(counts) for counts in files.state.counts],
        "reading": [problems.to_json() for problems in run.problems],
        "inputs": reading.inputs,
        "encoder_warnings": encoder_choice(opened.tokenizer).warnings,
    }
    (folder / RESULT).write_bytes(orjson.dumps(result))


@lru_cache(maxsize=1)
def encoder_of(named: NamedTokenizer, options: EncodeOptions) -> tuple[OpenedTokenizer, Encoder]:
    """The newest one is kept: choosing and proving its encoder costs a process more than a unit of text."""
    opened = open_tokenizer(named.path, named.eod, pretokenizer=named.pretokenizer)
    if opened.digest != named.digest:
        raise InputError(f"{named.path}: the machine {socket.gethostname()} has another tokenizer there; {SHARE_IT}")
    return opened, Encoder(opened, options)


def fsync_all(draft: Path) -> None:
    for folder, _, files in os.walk(draft):
        for name in files:
            fsync_path(Path(folder, name))
        fsync_path(Path(folder))


def publish(draft: Path, final: Path) -> None:
    """Gives a whole folder its name; one that has it already, of a worker taken for lost, stays."""
    try:
        os.rename(draft, final)
    except OSError:
        if not (final / RESULT).exists():
            raise


@contextmanager
def named_errors(settings: UnitSettings, files: Sequence[SourceFile]) -> Iterator[None]:
    """Checks that this machine sees what the calling one does, and makes one sentence of what goes wrong with files.

    Raises:
        InputError: it does not, or instead of an OSError.
    """
    require_seen(settings.folder, (settings.folder / RUN).read_text, settings.run)
    require_seen(settings.tokenizer.path, settings.tokenizer.path.exists, True)
    for file in files:
        if file.version is None:
            require_seen(file.path, partial(identity, file.path), (file.size, file.mtime_ns, file.inode))
    with writing_errors(settings.folder):
        try:
            yield
        except OSError as error:
            if not isinstance(error.filename, str):
                raise
            named = shown(error.filename)
            raise InputError(f"{named}: cannot be used ({error.strerror}); check its rights and run again") from error


def require_seen(path: Path, look: Callable[[], object], expected: object) -> None:
    """Raises InputError unless the path is here what it is where the run was started."""
    try:
        found = look()
    except OSError:
        found = None
    if found != expected:
        raise InputError(
            f"{shown(str(path))}: the machine {socket.gethostname()} does not see it as the calling one does, or it "
            f"changed since the run began; {SHARE_IT}"
        )
