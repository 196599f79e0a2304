"""Builds a small project in a process of its own: python -m tests.builder FOLDER WORKERS [ASSET...]."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.small_project import SmallProject
from tokpack_core.errors import TokpackError


def main(folder: Path, workers: int, assets: list[str]) -> int:
    try:
        SmallProject(folder).build(*assets, workers=workers)
    except TokpackError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
