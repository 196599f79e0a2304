"""Runs the real `tokpack` program on a small real project."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TOKPACK = Path(sys.executable).with_name("tokpack")
EOD = "<|endoftext|>"


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def tokpack(folder: Path, *arguments: str | Path, store: Path | None = None, may_fail: bool = False) -> Outcome:
    """One run in `folder`; a failure that is not expected shows what the program said."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TOKPACK")}
    environment |= {"TOKPACK_STORE": str(store)} if store else {}
    run = subprocess.run(
        [TOKPACK, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert may_fail or run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    return Outcome(run.returncode, run.stdout, run.stderr)


def refused(folder: Path, *arguments: str | Path, store: Path | None = None) -> str:
    """The one sentence with which a run fails."""
    outcome = tokpack(folder, *arguments, store=store, may_fail=True)
    assert outcome.code == 1
    lines = outcome.err.splitlines()
    assert len(lines) == 1, outcome.err
    assert lines[0].startswith("error: ")
    return lines[0].removeprefix("error: ")


@dataclass(frozen=True)
class RawIndex:
    """A .bin/.idx read from the published layout alone."""

    dtype: np.dtype
    sequences: list[list[int]]
    document_indices: list[int]


def read_raw(prefix: Path) -> RawIndex:
    idx = prefix.with_name(f"{prefix.name}.idx").read_bytes()
    assert idx[:9] == b"MMIDIDX\x00\x00"
    version, code, sequences, boundaries = struct.unpack_from("<QBQQ", idx, 9)
    assert version == 1
    dtypes: dict[int, np.dtype] = {4: np.dtype("<i4"), 8: np.dtype("<u2")}
    dtype = dtypes[code]
    lengths = np.frombuffer(idx, "<i4", sequences, 34)
    pointers = np.frombuffer(idx, "<i8", sequences, 34 + 4 * sequences)
    documents = np.frombuffer(idx, "<i8", boundaries, 34 + 12 * sequences)
    assert len(idx) == 34 + 12 * sequences + 8 * boundaries
    tokens = prefix.with_name(f"{prefix.name}.bin").read_bytes()
    found = [
        np.frombuffer(tokens, dtype, int(length), int(pointer)).tolist()
        for length, pointer in zip(lengths, pointers, strict=True)
    ]
    return RawIndex(dtype, found, documents.tolist())
