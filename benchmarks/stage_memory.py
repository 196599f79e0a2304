"""Peak memory of each stage on a corpus and on a tenth of it: it must not grow with the corpus.

    python benchmarks/stage_memory.py FOLDER_OF_JSONL_ZST [--scratch FOLDER] [--family byte_bpe]

Each asset is built alone in a fresh process with one worker, upstream assets being there. `private` is the peak of
that process's own memory (RssAnon, sampled every 2 ms), `resident` the peak of its resident set, which has the pages of
mapped files too: the kernel takes those back when memory is short, and a block bounds them. Both runs train on the same
`sample_bytes`.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import zstandard

CONFIG = """\
corpora:
  core: {{paths: ["data/*.jsonl.zst"], id_field: id, lang: und}}
tokenizers:
  tok:
    family: {family}
    vocab_size: 16000
    train_on: {{core: 1.0}}
    sample_bytes: 8MB
    special_tokens: {{eod: "<|endoftext|>", pad: "<|pad|>"}}
    checks: {{max_rare_token_share: 1.0, min_vocabulary_utilization: 0.0}}
datasets:
  base:
    tokenizer: tok
    mixture: {{core: 1.0}}
    packing: {{strategy: best_fit, sequence_length: 4096}}
"""
BUILD_ONE = """\
import json, resource, sys, threading, time
from pathlib import Path
from tokpack_core.config.files import load_project
from tokpack_core.engine import LocalEngine
from tokpack_core.stages.asset import Workplace
from tokpack_core.stages.graph import plan_graph
from tokpack_core.store.store import open_store
folder, key = Path(sys.argv[1]), sys.argv[2]
project = load_project(folder / "configs")
work = Workplace(project, open_store(folder / "store", create=True), LocalEngine(1), lambda _: None)
plan = next(plan for plan in plan_graph(project) if plan.key == key)
peak = [0]
def private():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
def watch():
    while True:
        peak[0] = max(peak[0], private())
        time.sleep(0.002)
threading.Thread(target=watch, daemon=True).start()
plan.build(work)
print(json.dumps([max(peak[0], private()) / 1024, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
ASSETS = [
    "corpus/core",
    "normalized_corpus/core",
    "tokenizer_model/tok",
    "vocabulary_report/tok",
    "tokenized_shards/tok/core",
    "packed_sequences/base",
    "megatron_dataset/base",
]


def prepare(sources: list[Path], folder: Path, family: str, keep_one_in: int) -> int:
    """Writes a project whose corpus is every n-th line of the sources; returns the bytes of its lines."""
    (folder / "configs").mkdir(parents=True)
    (folder / "configs" / "a.yaml").write_text(CONFIG.format(family=family))
    (folder / "data").mkdir()
    size = 0
    for source in sources:
        target = folder / "data" / source.name
        with source.open("rb") as compressed, target.open("wb") as out:
            lines = io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(compressed))
            with zstandard.ZstdCompressor().stream_writer(out) as writer:
                for number, line in enumerate(lines):
                    if number % keep_one_in == 0:
                        size += len(line)
                        writer.write(line)
    return size


def measure(folder: Path) -> dict[str, tuple[float, float, float]]:
    """Peak private MB, peak resident MB and seconds by asset."""
    figures = {}
    for key in ASSETS:
        begin = time.monotonic()
        command = [sys.executable, "-c", BUILD_ONE, str(folder), key]
        result = subprocess.run(command, check=True, capture_output=True, text=True)
        figures[key] = (*json.loads(result.stdout.splitlines()[-1]), time.monotonic() - begin)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scratch", type=Path, default=None)
    parser.add_argument("--family", default="byte_bpe")
    arguments = parser.parse_args()
    sources = sorted(arguments.folder.glob("*.jsonl.zst"))
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        results = {}
        for name, keep_one_in in (("tenth", 10), ("whole", 1)):
            folder = Path(scratch) / name
            size = prepare(sources, folder, arguments.family, keep_one_in)
            print(f"{name}: {size / 1e6:.1f} MB of lines", flush=True)
            results[name] = measure(folder)
            subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
    print(f"{'':28} {'private MB':>24} {'resident MB':>24}")
    print(f"{'asset':28} {'tenth':>8} {'whole':>8} {'ratio':>6} {'tenth':>9} {'whole':>8} {'ratio':>6} {'whole s':>8}")
    for key in ASSETS:
        (private, resident, _), (all_private, all_resident, seconds) = results["tenth"][key], results["whole"][key]
        print(
            f"{key:28} {private:8.0f} {all_private:8.0f} {all_private / private:6.2f} "
            f"{resident:9.0f} {all_resident:8.0f} {all_resident / resident:6.2f} {seconds:8.1f}"
        )


if __name__ == "__main__":
    main()
