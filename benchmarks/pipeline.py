"""Text to verified shards, beside the bare encoder and two other pipelines: MB of text a CPU-second, in one run.

    python benchmarks/pipeline.py FILE.jsonl.zst [--peer-mb 8] [--scratch FOLDER]

A tokenizer (byte-level BPE, GPT-2 regex, 32k, no normalizer) is trained on FILE first; all use the same tokenizer.json
and the token ids of all are compared. Each runs in a process of its own with one thread; CPU is that of the process
and its children after imports and after the tokenizer is loaded (with tokpack: its encoder chosen and proven, and a
little text done, which loads kernels), all of which is shown apart as `start`. The peers run on the first `--peer-mb`
of the text, tokpack and gigatoken on all of it.

    gigatoken       texts in memory to ids, cold: the bare encoder
    tokpack encode  jsonl.zst to .bin/.idx and a manifest with digests
    tokpack graph   jsonl.zst to normalized parquet parts (NFC, ids, splits), to published .bin/.idx + documents.parquet
    datatrove       jsonl.zst to its token files (JsonlReader, DocumentTokenizer)
    Megatron style  jsonl to .bin/.idx: preprocess_data's loop, Hugging Face tokenizers and megatron-core's builder

`private` is the peak of the process's own memory in MB (RssAnon). `wall` of two workers says something only where both
cores are free.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import zstandard

from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.tokenizers import registry

EOD = "<|endoftext|>"
VOCABULARY = 32_000
LONG_BYTES = 300_000_000
PRETOKEN_BYTES = 50_000_000
ALL = ("gigatoken", "tokpack encode", "tokpack encode, 2 workers", "tokpack graph", "tokpack graph, 2 workers")
PEERS = ("datatrove", "Megatron style")
COMMON = """
import hashlib, json, os, sys, threading, time
from pathlib import Path
text, tokenizer, out = map(Path, sys.argv[1:])
def private():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024
peak = [0.0]
def watch():
    while True:
        peak[0] = max(peak[0], private())
        time.sleep(0.005)
threading.Thread(target=watch, daemon=True).start()
def cpu():
    return sum(os.times()[:4])
def begin():
    global wall, start
    start, wall = cpu(), time.monotonic()
def report(digest, **more):
    facts = {"cpu": cpu() - start, "start": start, "wall": time.monotonic() - wall, "private": max(peak[0], private())}
    print(json.dumps(facts | {"digest": digest} | more))
"""
SCRIPTS = {
    "gigatoken": """
import gigatoken, numpy, orjson, zstandard
texts = [orjson.loads(line)["text"].encode() for line in zstandard.open(text, "rb").read().splitlines()]
description = json.loads((tokenizer / "tokenizer.json").read_bytes())
# It knows this regex only as the one that ByteLevel has built in; the end of each document is put in below.
split = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
description |= {"added_tokens": [], "pre_tokenizer": split}
engine = gigatoken.Tokenizer.from_json(json.dumps(description))
begin()
found = [engine.encode_batch(texts[i : i + 256], parallel=False) for i in range(0, len(texts), 256)]
spent = cpu() - start
eod = numpy.uint16(0).tobytes()
digest = hashlib.sha256()
for batch in found:
    ids, offsets = numpy.asarray(batch.layout.content.data).astype("<u2"), batch.layout.offsets.data
    for a, b in zip(offsets[:-1], offsets[1:]):
        digest.update(ids[a:b].tobytes() + (eod if b > a else b""))
report(digest.hexdigest(), cpu=spent)
""",
    "tokpack encode": """
from tokpack_core.commands.encode import EncodeOptions, encode
from tokpack_core.commands.opened_tokenizer import open_tokenizer
from tokpack_core.commands.reading import open_reading
from tokpack_core.config import ReadConfig
opened = open_tokenizer(tokenizer)
opened.tokenizer.exact_bpe()
options = EncodeOptions(append_eod=True, workers=WORKERS)
little = out / "little.jsonl"
little.write_text("".join(json.dumps({"text": "some words " * 500}) + "\\n" for _ in range(600)))
encode(opened, open_reading([str(little)], ReadConfig(), None), out / "little", options, True)
begin()
encode(opened, open_reading([str(text)], ReadConfig(), None), out / "x", options, True)
report(hashlib.file_digest((out / "x.bin").open("rb"), "sha256").hexdigest())
""",
    "tokpack graph": """
from tokpack_core.config.files import load_project
from tokpack_core.engine import LocalEngine
from tokpack_core.stages.asset import Workplace
from tokpack_core.stages.graph import plan_graph
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.stages.shards import read_shards
from tokpack_core.store.store import open_store
def plans_of(folder, source):
    (folder / "configs").mkdir(parents=True)
    (folder / "configs" / "a.yaml").write_text(CONFIG.format(text=source, tokenizer=tokenizer))
    project = load_project(folder / "configs")
    work = Workplace(project, open_store(folder / "store", create=True), LocalEngine(WORKERS), lambda _: None)
    return work, {plan.key: plan for plan in plan_graph(project)}
little = out / "little.jsonl"
little.write_text("".join(json.dumps({"id": str(i), "text": f"cafe\\u0301 {i}"}) + "\\n" for i in range(300)))
work, plans = plans_of(out / "first", little)
for plan in list(plans.values())[:5]:
    plan.build(work)
tokenizer_stage.load(tokenizer_stage.current_tokenizer(work, "tok")[1]).exact_bpe()
work, plans = plans_of(out / "second", text)
spent = {}
for key, plan in list(plans.items())[:5]:
    begin()
    plan.build(work)
    spent[key.split("/")[0]] = cpu() - start, time.monotonic() - wall
digest = hashlib.sha256()
for shard in read_shards(work, "tok", "core"):
    digest.update((shard.folder / "part.bin").read_bytes())
spent = {key: spent[key] for key in ("corpus", "normalized_corpus", "tokenized_shards")}
stages, walls = ({key: times[i] for key, times in spent.items()} for i in (0, 1))
report(digest.hexdigest(), cpu=sum(stages.values()), wall=sum(walls.values()), stages=stages, walls=walls)
""",
    "datatrove": """
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizer
steps = [
    JsonlReader(str(text.parent), glob_pattern=text.name, compression="zstd", doc_progress=False),
    DocumentTokenizer(str(out), tokenizer_name_or_path=str(tokenizer / "tokenizer.json"), eos_token="<|endoftext|>",
                      shuffle_documents=False, max_tokens_per_file=10**12),
]
executor = LocalPipelineExecutor(steps, tasks=1, workers=1, logging_dir=str(out / "logs"))
begin()
executor.run()
report(hashlib.file_digest(next(out.glob("*.ds")).open("rb"), "sha256").hexdigest())
""",
    "Megatron style": """
import io, zstandard, numpy
from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder
from transformers import PreTrainedTokenizerFast
hf = PreTrainedTokenizerFast(tokenizer_file=str(tokenizer / "tokenizer.json"), eos_token="<|endoftext|>")
begin()
builder = IndexedDatasetBuilder(str(out / "x.bin"), dtype=DType.optimal_dtype(len(hf)))
for line in io.TextIOWrapper(zstandard.open(text, "rb"), "utf-8"):
    ids = hf(json.loads(line)["text"], add_special_tokens=False).input_ids
    if ids:
        ids.append(hf.eos_token_id)
    builder.add_document(ids, [len(ids)] if ids else [])
builder.finalize(str(out / "x.idx"))
report(hashlib.file_digest((out / "x.bin").open("rb"), "sha256").hexdigest())
""",
}
CONFIG = """\
corpora:
  core: {{paths: ["{text}"], id_field: id, normalize: {{byte_order_marks: keep}}}}
tokenizers:
  tok:
    family: pretrained
    path: {tokenizer}
    train_on: {{core: 1.0}}
    sample_bytes: 4MB
    checks: {{max_rare_token_share: 1.0, min_vocabulary_utilization: 0.0}}
datasets:
  base: {{tokenizer: tok, mixture: {{core: 1.0}}, packing: {{sequence_length: 4096}}}}
"""


def run(name: str, text: Path, tokenizer: Path, scratch: Path) -> dict[str, Any]:
    workers = 2 if name.endswith("2 workers") else 1
    code = COMMON + f"WORKERS = {workers}\nCONFIG = {CONFIG!r}\n" + SCRIPTS[name.split(",")[0]]
    threads = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(dir=scratch) as out:
        command = [sys.executable, "-c", code, str(text), str(tokenizer), out]
        result = subprocess.run(command, capture_output=True, text=True, env=os.environ | threads, check=False)
        subprocess.run(["chmod", "-R", "u+w", out], check=True)
    if result.returncode:
        sys.exit(f"{name}: {result.stderr[-2000:]}")
    return dict(json.loads(result.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--peer-mb", type=float, default=8)
    parser.add_argument("--scratch", type=Path, default=None)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        scratch = Path(folder)
        with zstandard.open(arguments.file, "rb") as stream:
            rows = [orjson.loads(line) for line in stream.read().splitlines()]
        # In NFC, so that normalizing changes nothing and the tokens of all can be compared.
        texts = [unicodedata.normalize("NFC", row["text"]) for row in rows]
        texts = [text for text in texts if EOD not in text]  # what it is differs between the peers
        lines = [orjson.dumps({"id": str(number), "text": text}) for number, text in enumerate(texts)]
        sizes = [len(text.encode()) for text in texts]
        tokenizer = train(texts, scratch / "tokenizer")
        part = range(0, len(lines), max(round(sum(sizes) / arguments.peer_mb / 1e6), 1))
        whole_file, peer_file = scratch / "whole.jsonl.zst", scratch / "part.jsonl.zst"
        whole_file.write_bytes(zstandard.compress(b"".join(line + b"\n" for line in lines)))
        peer_file.write_bytes(zstandard.compress(b"".join(lines[i] + b"\n" for i in part)))
        del rows, lines, texts
        rates = {}
        digests: dict[str, set[str]] = {"all": set(), "part": set()}
        print(f"{'':28}{'MB':>8}{'CPU s':>9}{'MB/CPU s':>10}{'start':>8}{'wall s':>8}{'private':>9}")
        jobs = [*((name, whole_file, sum(sizes), "all") for name in ALL)]
        jobs += [(name, peer_file, sum(sizes[i] for i in part), "part") for name in (*PEERS, "tokpack encode")]
        for name, file, size, whole in jobs:
            found = run(name, file, tokenizer, scratch)
            rate = size / 1e6 / found["cpu"]
            rates[name, whole] = rate
            digests[whole].add(found["digest"])
            same = "" if len(digests[whole]) == 1 else "  other tokens"
            print(
                f"{name:28}{size / 1e6:8.1f}{found['cpu']:9.2f}{rate:10.1f}{found['start']:8.1f}"
                f"{found['wall']:8.1f}{found['private']:9.0f}{same}",
                flush=True,
            )
            for stage, seconds in found.get("stages", {}).items():
                wall = found["walls"][stage]
                print(f"  {stage:26}{size / 1e6:8.1f}{seconds:9.2f}{size / 1e6 / seconds:10.1f}{'':8}{wall:8.1f}")
        print(f"same tokens: {'yes' if all(len(found) == 1 for found in digests.values()) else 'NO'}")
        encode, graph, bare = (rates[name, "all"] for name in ("tokpack encode", "tokpack graph", "gigatoken"))
        print(f"tokpack encode / gigatoken {encode / bare:.0%}, tokpack graph / gigatoken {graph / bare:.0%}")
        for peer in PEERS:
            print(
                f"tokpack encode / {peer} {encode / rates[peer, 'part']:.1f}, graph {graph / rates[peer, 'part']:.1f}"
            )
        long_documents(tokenizer, scratch)


def train(texts: list[str], folder: Path) -> Path:
    config = TrainConfig(
        family="byte_bpe", vocab_size=VOCABULARY, pretokenizer="gpt2", special_tokens=SpecialTokens(eod=EOD)
    )
    folder.mkdir()
    registry.train(config, (pa.array(texts[i : i + 500]) for i in range(0, len(texts), 500)), "none").save(folder)
    return folder


def long_documents(tokenizer: Path, scratch: Path) -> None:
    """A document of 300 MB on one line, and what is a single pretoken, of 50 MB and of 300."""
    line = "The quick brown fox, 123 times; jumps over \u4e2d\u6587 and the lazy dog.\\n".encode()
    letters = np.random.default_rng(1).integers(97, 123, LONG_BYTES, dtype=np.uint8).tobytes()
    documents = {
        "lines": line * (LONG_BYTES // len(line) + 1),
        "zeros": b"0" * PRETOKEN_BYTES,
        "random letters": letters[:PRETOKEN_BYTES],
        "more of them": letters,
    }
    for name, text in documents.items():
        file = scratch / "long.jsonl.zst"
        with file.open("wb") as out, zstandard.ZstdCompressor().stream_writer(out) as writer:
            writer.write(b'{"text": "' + text + b'"}\n')
        found = run("tokpack encode", file, tokenizer, scratch)
        size = len(text) - text.count(b"\\n")
        private, cpu = found["private"], found["cpu"]
        print(f"one document of {size / 1e6:.0f} MB, {name}: {private:.0f} MB private, {cpu:.1f} CPU s", flush=True)


if __name__ == "__main__":
    main()
