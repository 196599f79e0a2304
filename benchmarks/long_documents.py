"""Peak memory of `tokpack encode` for one long document: 500 MB and four times its size are the bound.

    python benchmarks/long_documents.py TOKENIZER... --text FILE.jsonl [--megabytes 50]

Each tokenizer (a folder or file) encodes, in a process of its own with one worker, a document of one letter, of random
Chinese characters, of random letters and digits, and one of the texts of FILE put together. `private` is the peak of
that process's own memory (RssAnon, sampled every 4 ms), `resident` that of its resident set, which has the pages of
mapped libraries too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson

LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
FIRST_HANZI, HANZI = 0x4E00, 3000


def documents(text: Path, size: int) -> Iterator[tuple[str, str]]:
    random = np.random.default_rng(0)
    yield "one letter", "a" * size
    yield "Chinese", "".join(map(chr, random.integers(FIRST_HANZI, FIRST_HANZI + HANZI, size // 3).tolist()))
    yield (
        "letters and digits",
        np.frombuffer(LETTERS, np.uint8)[random.integers(0, len(LETTERS), size)].tobytes().decode(),
    )
    lines = [orjson.loads(line)["text"] for line in text.open("rb")]
    whole = "\n".join(lines)
    yield "text", (whole * (1 + size // max(len(whole.encode()), 1))).encode()[:size].decode(errors="ignore")


def own_memory(process: int) -> int:
    """KiB; 0 for a process that has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)


def peaks(tokenizer: str, file: Path, output: Path) -> tuple[float, float, float]:
    """Private and resident MB, and CPU-seconds."""
    command = ["tokpack", "encode", "--tokenizer", tokenizer, "--output", str(output), "--workers", "1", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    private = 0
    while True:
        private = max(private, own_memory(process.pid))
        finished, code, used = os.wait4(process.pid, os.WNOHANG)
        if finished:
            if code:
                raise SystemExit(f"{' '.join(command)} failed")
            return private / 1024, used.ru_maxrss / 1024, used.ru_utime + used.ru_stime
        time.sleep(0.004)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tokenizers", nargs="+")
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--megabytes", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for kind, text in documents(options.text, options.megabytes * 10**6):
            file = Path(scratch) / "document.jsonl"
            file.write_bytes(orjson.dumps({"text": text}) + b"\n")
            for number, tokenizer in enumerate(options.tokenizers):
                private, resident, cpu = peaks(tokenizer, file, Path(scratch) / f"{kind} {number}")
                print(f"{tokenizer:30} {kind:20} private {private:6.0f} resident {resident:6.0f} CPU {cpu:5.1f}")


if __name__ == "__main__":
    main()
