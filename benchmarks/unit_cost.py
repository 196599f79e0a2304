"""What a unit of work costs apart from its work: built and published, and found again; and the memory of its list.

    python benchmarks/unit_cost.py [UNITS] [--scratch FOLDER]

Units write one file of ten bytes. With them come the lease, the object with its manifest, fsync and the action.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

from tokpack_core.engine import LocalEngine
from tokpack_core.stages.unit import Unit, run_units
from tokpack_core.store.actions import Action
from tokpack_core.store.store import open_store


def write_number(number: int, folder: Path) -> dict[str, Any]:
    (folder / "number.txt").write_text(f"{number:10}")
    return {"number": number}


def make_units(count: int) -> list[Unit]:
    inputs = [{"tokenizer": "tokenizer_model/" + "0" * 64, "part": f"{number:064}"} for number in range(count)]
    return [
        Unit(Action("number", 1, {"bos": False}, one, {"pyarrow": "20"}), partial(write_number, number), 0)
        for number, one in enumerate(inputs)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", type=int, nargs="?", default=2000)
    parser.add_argument("--scratch", type=Path, default=None)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        store = open_store(Path(scratch) / "store", create=True)
        tracemalloc.start()
        units = make_units(arguments.units)
        memory = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        for what in ("built", "found"):
            wall, cpu = time.monotonic(), time.process_time()
            run_units(store, LocalEngine(1), units, lambda _: None)
            wall, cpu = time.monotonic() - wall, time.process_time() - cpu
            print(f"{what}: {wall / len(units) * 1e3:.2f} ms and {cpu / len(units) * 1e3:.2f} CPU-ms a unit")
        print(f"memory of the list: {memory / len(units):.0f} bytes a unit")
        files = sum(1 for path in store.root.rglob("*") if path.is_file())
        print(f"files: {files / len(units):.1f} a unit of one file")
        subprocess.run(["chmod", "-R", "u+w", scratch], check=True)


if __name__ == "__main__":
    main()
