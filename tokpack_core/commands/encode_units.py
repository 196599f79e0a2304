"""An encode in units, which run anywhere: what a unit is, and where its result goes.

A unit is a run of whole small files, or a range of a large one (see `corpus.ranges`), of about UNIT_BYTES. A file that
has no ranges is in one unit, however large. Workers get paths, settings and ranges. Results stand in a folder beside
the output, which all workers must see:

    <number>/         token files of the unit, as `token_files` has them, and unit.json: counts and what reading found
    ranges.<number>   JSON: what the manifest says of the large file of that number, and its ranges
    run               names the run, so that a worker can tell this folder from another under the same path

Folders and files get their names when they are whole, and what has its name is not made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokpack_core.commands.document_encoder import EncodeOptions
from tokpack_core.config import ReadConfig
from tokpack_core.corpus.files import SourceFile
from tokpack_core.corpus.ranges import RowRange, has_ranges

UNIT_BYTES = 2**25
UNIT_FILES = 512
RESULT = "unit.json"
RUN = "run"


@dataclass(frozen=True)
class NamedTokenizer:
    """A tokenizer by its path, and what else says which one it is."""

    path: Path
    eod: str | None
    pretokenizer: str | None
    digest: str


@dataclass(frozen=True)
class UnitSettings:
    """What all units of a run have in common.

    `folder` is where their results go, `run` names the run; `durable`: what is done is to survive it.
    """

    tokenizer: NamedTokenizer
    options: EncodeOptions
    read: ReadConfig
    lang: str | None
    fields: tuple[str, ...]
    folder: Path
    run: str
    durable: bool


@dataclass(frozen=True)
class LargeFile:
    """A file to be cut into ranges of about `goal` bytes."""

    number: int
    file: SourceFile
    goal: int


@dataclass(frozen=True)
class EncodeUnit:
    """Whole files, or a range of one, whose entry of the manifest is known then."""

    number: int
    files: tuple[SourceFile, ...]
    part: RowRange | None = None
    entry: dict[str, Any] | None = None

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files) if self.part is None else self.part.bytes

    @property
    def shown(self) -> str:
        if self.part is not None:
            return f"{self.files[0].shown}, from row {self.part.first_row}"
        others = len(self.files) - 1
        return self.files[0].shown + (f" and {others} more" if others else "")


def large_files(files: Sequence[SourceFile], goal: int) -> list[LargeFile]:
    return [
        LargeFile(number, file, goal)
        for number, file in enumerate(files)
        if file.version is None and file.size > goal and has_ranges(file.path.name)
    ]


def make_units(
    files: Sequence[SourceFile], goal: int, ranges: dict[int, tuple[dict[str, Any], list[RowRange]]]
) -> list[EncodeUnit]:
    """All units in the order of the files; `ranges` has what `file_ranges` gives, by the number of the file."""
    units: list[EncodeUnit] = []
    small: list[SourceFile] = []

    def end_small() -> None:
        if small:
            units.append(EncodeUnit(len(units), tuple(small)))
            small.clear()

    for number, file in enumerate(files):
        entry, parts = ranges.get(number, (None, []))
        if parts:
            end_small()
            units += [EncodeUnit(len(units) + place, (file,), part, entry) for place, part in enumerate(parts)]
            continue
        if len(small) == UNIT_FILES or sum(one.size for one in small) + file.size > goal:
            end_small()
        small.append(file)
    end_small()
    return units
