"""How fast one process joins what a cluster encoded, beside megatron-core's add_index, as preprocess_data joins.

    python benchmarks/joining_units.py [MEGABYTES] [--scratch FOLDER]

MEGABYTES of tokens (400 unless said) in units of 16 MB, documents of 1,000 tokens: what 32 MiB of text become. Time is
that of the joining and of the index, without imports; both results are compared byte by byte. CPU time is what bounds
a cluster: text that is read by all of its nodes passes through the one that joins.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tokpack_core.commands.document_encoder import Sequences
from tokpack_core.commands.token_files import TokenFiles, numbered_prefixes
from tokpack_core.tokenizers.encoded import Encoded

DTYPE = np.dtype("<u2")
UNIT_TOKENS = 8 * 10**6
DOCUMENT = 1_000
BYTES_A_TOKEN = 4.2
"""Of text, in a vocabulary of 32,000."""
OURS = """
import json, sys, time
from pathlib import Path
import numpy
from tokpack_core.commands.token_files import Counts, TokenFiles
folder, units = Path(sys.argv[1]), int(sys.argv[2])
(folder / "draft").mkdir()
each = json.loads((folder / "counts.json").read_bytes())
began = time.monotonic(); cpu = time.process_time()
files = TokenFiles([folder / "draft" / "ours"], numpy.dtype("<u2"), "benchmark")
for number in range(units):
    files.join(folder / f"unit_{number}", [Counts(**each)])
files.finish()
"""
THEIRS = """
import sys, time, json
import numpy
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
folder, units = sys.argv[1], int(sys.argv[2])
began = time.monotonic(); cpu = time.process_time()
builder = IndexedDatasetBuilder(f"{folder}/theirs.bin", dtype=numpy.uint16)
for number in range(units):
    builder.add_index(f"{folder}/prefix_{number}")
builder.finalize(f"{folder}/theirs.idx")
"""
REPORT = "print(json.dumps([time.monotonic() - began, time.process_time() - cpu]))"


def write_unit(folder: Path, number: int) -> dict[str, int]:
    """A unit as its worker leaves it, and as a prefix; returns its counts."""
    offsets = np.arange(0, UNIT_TOKENS + 1, DOCUMENT)
    encoded = Encoded(np.full(UNIT_TOKENS, number, np.int32), offsets)
    for name in (f"unit_{number}", f"made_{number}"):
        (folder / name).mkdir()
        files = TokenFiles(numbered_prefixes(folder / name, 1), DTYPE, "benchmark")
        files.append(0, Sequences(encoded, np.arange(offsets.size)))
        counts = vars(files.state.counts[0])
        files.close() if name.startswith("unit") else files.finish()
    for ending in ("bin", "idx"):
        (folder / f"made_{number}" / f"0.{ending}").rename(folder / f"prefix_{number}.{ending}")
    return dict(counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("megabytes", type=int, nargs="?", default=400)
    parser.add_argument("--scratch", type=Path, default=None)
    arguments = parser.parse_args()
    units = max(1, arguments.megabytes * 10**6 // (UNIT_TOKENS * DTYPE.itemsize))
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        folder = Path(scratch)
        counts = [write_unit(folder, number) for number in range(units)]
        (folder / "counts.json").write_text(json.dumps(counts[0]))
        for name, code in (("tokpack", OURS), ("megatron-core", THEIRS)):
            command = [sys.executable, "-c", code + REPORT, scratch, str(units)]
            result = subprocess.run(command, check=True, capture_output=True, text=True)
            seconds, cpu = json.loads(result.stdout.splitlines()[-1])
            text = units * UNIT_TOKENS * BYTES_A_TOKEN / cpu / 1e9
            print(f"{name:14} {seconds:7.2f} s {cpu:7.2f} CPU-s, {text:5.1f} GB of text a CPU-second", flush=True)
        ours, theirs = folder / "draft" / "ours", folder / "theirs"
        same = all(Path(f"{ours}.{e}").read_bytes() == Path(f"{theirs}.{e}").read_bytes() for e in ("bin", "idx"))
        print(f"same bytes: {'yes' if same else 'NO'}")


if __name__ == "__main__":
    main()
