"""`tokpack merge` of many short sequences beside megatron-core's IndexedDatasetBuilder.add_index: seconds and memory.

    python benchmarks/merging.py [SEQUENCES] [--scratch FOLDER]

Ten prefixes with SEQUENCES in all (10 million unless said), 8 tokens each. Both run in a process of their own; time is
that of the merge alone, without imports; `private` is the peak of the process's own memory, what it had before
included. Both results are compared byte by byte.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tokpack_core.megatron.indexed_dataset import write_index

PREFIXES = 10
TOKENS = 8
WATCH = """
import json, sys, threading, time
from pathlib import Path
def private():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024
peak = [0.0]
def watch():
    while True:
        peak[0] = max(peak[0], private())
        time.sleep(0.005)
threading.Thread(target=watch, daemon=True).start()
folder = Path(sys.argv[1])
names = [str(folder / f"shard_{i}") for i in range(int(sys.argv[2]))]
"""
OURS = """
from tokpack_core.commands.merge import merge_prefixes
began = time.monotonic(); cpu = time.process_time()
merge_prefixes(folder / "ours", [Path(name) for name in names], True)
"""
THEIRS = """
import numpy
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
began = time.monotonic(); cpu = time.process_time()
builder = IndexedDatasetBuilder(str(folder / "theirs.bin"), dtype=numpy.uint16)
for name in names:
    builder.add_index(name)
builder.finalize(str(folder / "theirs.idx"))
"""
REPORT = "print(json.dumps([time.monotonic() - began, time.process_time() - cpu, max(peak[0], private())]))"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequences", type=int, nargs="?", default=10_000_000)
    parser.add_argument("--scratch", type=Path, default=None)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        folder = Path(scratch)
        each = arguments.sequences // PREFIXES
        for number in range(PREFIXES):
            np.full(each * TOKENS, number, "<u2").tofile(folder / f"shard_{number}.bin")
            lengths = np.full(each, TOKENS, np.int64)
            write_index(folder / f"shard_{number}.idx", np.dtype("<u2"), lengths, np.arange(each + 1))
        for name, code in (("tokpack", OURS), ("megatron-core", THEIRS)):
            command = [sys.executable, "-c", WATCH + code + REPORT, scratch, str(PREFIXES)]
            result = subprocess.run(command, check=True, capture_output=True, text=True)
            seconds, cpu, private = json.loads(result.stdout.splitlines()[-1])
            print(f"{name:14} {seconds:7.2f} s {cpu:7.2f} CPU-s {private:8.0f} MB private", flush=True)
        same = all((folder / f"ours.{e}").read_bytes() == (folder / f"theirs.{e}").read_bytes() for e in ("bin", "idx"))
        print(f"same bytes: {'yes' if same else 'NO'}")


if __name__ == "__main__":
    main()
