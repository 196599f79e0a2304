"""An encode whose units run on an engine, such as a Ray cluster; this process joins their results in order.

The bytes are those of an encode in this process: units are joined in the order of the input, whichever was done first,
and a unit that ran twice, because its worker was taken for lost, has one result. What has been joined is removed, so
the units take room for what is ahead only. A resumed run goes on behind the last unit that it joined, and finds units
done that were ahead of it.
"""

from __future__ import annotations

import shutil
import time
import uuid
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tokpack_core.commands.encode_in_worker import encode_unit, file_ranges
from tokpack_core.commands.encode_run import Run
from tokpack_core.commands.encode_units import (
    RUN,
    UNIT_BYTES,
    EncodeUnit,
    NamedTokenizer,
    UnitSettings,
    large_files,
    make_units,
)
from tokpack_core.commands.opened_tokenizer import OpenedTokenizer
from tokpack_core.commands.progress import progress
from tokpack_core.commands.token_files import Counts
from tokpack_core.corpus.problems import Problems
from tokpack_core.engine import Engine
from tokpack_core.errors import LostUnitError

CHECKPOINT_SECONDS = 2.0
"""Between two checkpoints: one waits for the disk, and a cluster may do a hundred units in that time."""


def encode_on_engine(run: Run, opened: OpenedTokenizer, engine: Engine, quiet: bool) -> None:
    """Encodes all of the run's files into its token files.

    Raises:
        InputError: a document cannot be encoded, or a machine does not see the files.
        TokpackError: workers were lost.
    """
    settings = begin(run, opened)
    units = plan(run, settings, engine, quiet)
    state = run.files.state
    run.reading.inputs = state.inputs
    run.problems = [Problems.from_json(found) for found in state.reading] or [Problems() for _ in run.fields]
    done = sum(unit.bytes for unit in units[: state.units])
    joined: list[Path] = []
    saved = time.monotonic()
    with progress("encoding", sum(unit.bytes for unit in units), "B", quiet) as on_done:
        on_done(done)
        try:
            for result in engine.map(partial(encode_unit, settings), units[state.units :]):
                done += units[state.units].bytes
                joined.append(settings.folder / str(state.units))
                join(run, joined[-1], result)
                on_done(done)
                if not settings.durable or time.monotonic() - saved >= CHECKPOINT_SECONDS:
                    forget(run, joined, settings.durable)
                    saved = time.monotonic()
        except LostUnitError as error:
            raise LostUnitError(f"{units[state.units].shown}: {error}") from error


def begin(run: Run, opened: OpenedTokenizer) -> UnitSettings:
    """Makes the folder of results, or takes away what killed workers left in it."""
    folder = run.files.scratch / "units"
    folder.mkdir(exist_ok=True)
    for left in folder.glob("*.*"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
    name = uuid.uuid4().hex
    (folder / RUN).write_text(name)
    if run.options.resume:
        run.files.save()  # what is done before the first unit is joined is kept, too
    tokenizer = NamedTokenizer(opened.path.absolute(), opened.eod, opened.pretokenizer, opened.digest)
    options = replace(run.options, workers=1, resume=False)
    reading = run.reading
    durable = run.options.resume
    return UnitSettings(tokenizer, options, reading.options, reading.lang, run.fields, folder, name, durable)


def plan(run: Run, settings: UnitSettings, engine: Engine, quiet: bool) -> list[EncodeUnit]:
    """All units. Large files are hashed first, each by one worker."""
    files = run.reading.files
    large = large_files(files, UNIT_BYTES)
    if not large:
        return make_units(files, UNIT_BYTES, {})
    found = {}
    done = 0
    with progress("hashing large files", sum(one.file.size for one in large), "B", quiet) as on_done:
        for one, ranges in zip(large, engine.map(partial(file_ranges, settings), large), strict=True):
            found[one.number] = ranges
            done += one.file.size
            on_done(done)
    return make_units(files, UNIT_BYTES, found)


def join(run: Run, folder: Path, result: dict[str, Any]) -> None:
    """Adds the result of the next unit to the run."""
    state = run.files.state
    run.files.join(folder, [Counts(**counts) for counts in result["counts"]])
    for problems, found in zip(run.problems, result["reading"], strict=True):
        problems.merge(Problems.from_json(found))
    known = state.inputs[-1:]
    state.inputs += [entry for entry in result["inputs"] if entry not in known]
    state.encoder_warnings += [said for said in result["encoder_warnings"] if said not in state.encoder_warnings]
    state.reading = [problems.to_json() for problems in run.problems]
    state.units += 1


def forget(run: Run, joined: list[Path], durable: bool) -> None:
    """Removes what was joined, once a checkpoint stands behind it if there are any."""
    if durable:
        run.files.save()
    for folder in joined:
        shutil.rmtree(folder, ignore_errors=True)
    joined.clear()
