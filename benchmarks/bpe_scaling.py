"""Byte-level BPE training as the text grows: CPU-seconds and peak memory of one process for each size, GPT-2's regex.

The text is the corpus again and again; in every second document of a repetition the ASCII letters are permuted, by
another permutation each time, so that different pretokens keep coming. It is made while it is read, and its making is
measured apart and taken off the CPU time. With a limit, tables of counts above it go to disk; the merges are the same.

    python benchmarks/bpe_scaling.py FOLDER_OF_JSONL_ZST [LIMIT_MB] [GIGABYTES...]
"""

from __future__ import annotations

import hashlib
import json
import random
import resource
import string
import subprocess
import sys
import time
from collections.abc import Iterator
from io import BufferedReader
from itertools import count
from pathlib import Path

VOCABULARY = 32_000
BATCH = 2_000_000
LETTERS = string.ascii_letters.encode()


def texts(folder: Path, size: int) -> Iterator[list[bytes]]:
    """Batches of documents, `size` bytes in all."""
    import orjson
    import zstandard

    batch: list[bytes] = []
    held = 0
    for repetition in count():
        permuted = list(LETTERS)
        random.Random(repetition).shuffle(permuted)
        table = bytes.maketrans(LETTERS, bytes(permuted))
        for file in sorted(folder.glob("*.jsonl.zst")):
            with BufferedReader(zstandard.open(file, "rb")) as lines:  # type: ignore[arg-type]
                for number, line in enumerate(lines):
                    text = orjson.loads(line)["text"].encode()
                    batch.append(text.translate(table) if repetition and number % 2 else text)
                    held += len(text)
                    if held >= min(BATCH, size):
                        yield batch
                        size -= held
                        batch, held = [], 0
                        if size <= 0:
                            return


def measure(folder: Path, size: int, limit: int) -> None:
    import pyarrow as pa
    from bpe_training import as_array

    from tokpack_core.bpe import pretoken_counting
    from tokpack_core.bpe.merge_settings import MergeSettings
    from tokpack_core.bpe.training import train_merges
    from tokpack_core.tokenizers.pretokenizers import SPLITS

    pretoken_counting.MOST_BYTES = limit
    making = 0.0
    different = 0
    counted = pretoken_counting.count_parts

    def noted(*arguments: object) -> object:
        nonlocal different
        parts, unmatched = counted(*arguments)  # type: ignore[arg-type]
        different = sum(part.counts.size for part in parts)
        return parts, unmatched

    pretoken_counting.count_parts = noted  # type: ignore[assignment]

    def arrays() -> Iterator[pa.Array]:
        nonlocal making
        made = texts(folder, size)
        while True:
            began = time.thread_time()
            batch = next(made, None)
            making += time.thread_time() - began
            if batch is None:
                return
            yield as_array(batch)

    merges, seen = train_merges(arrays(), SPLITS["gpt2"], MergeSettings(VOCABULARY), workers=2)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "bytes": seen.bytes,
                "different": different,
                "cpu": usage.ru_utime + usage.ru_stime - making,
                "peak": usage.ru_maxrss / 1024,
                "merges": hashlib.sha256(b"\0".join(merges.tokens)).hexdigest()[:12],
            }
        )
    )


def main() -> None:
    if sys.argv[1] == "--one":
        measure(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
        return
    limit = float(sys.argv[2]) if len(sys.argv) > 2 else 2048
    sizes = [float(size) for size in sys.argv[3:]] or [0.1, 0.3, 1.0, 3.0]
    print(f"{'GB':>6}{'pretokens':>12}{'CPU-s':>9}{'CPU-s a GB':>12}{'peak MB':>9}  merges")
    for size in sizes:
        arguments = ["--one", sys.argv[1], str(int(size * 1e9)), str(int(limit * 2**20))]
        printed = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
        found = json.loads(printed.stdout)
        gigabytes = found["bytes"] / 1e9
        print(
            f"{gigabytes:>6.2f}{found['different']:>12,}{found['cpu']:>9.1f}{found['cpu'] / gigabytes:>12.1f}"
            f"{found['peak']:>9.0f}  {found['merges']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
