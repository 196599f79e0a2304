"""Byte-level BPE on all of a corpus: our ids and those of Hugging Face tokenizers, one by one; and time on long runs.

A vocabulary is trained on the text for each pretokenizer, saved, and opened by both. Prints documents, tokens and
differences, MB a CPU-second, and the CPU time of 1 MB of one character over that of 0.5 MB, which is 2 in linear time.
Exits with 1 if an id differs.

    python benchmarks/bpe_exactness.py FOLDER_OF_JSONL_ZST [VOCABULARY] [PRETOKENIZER...]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

os.environ["RAYON_NUM_THREADS"] = "1"

import orjson
import pyarrow as pa
import zstandard
from tokenizers import Tokenizer as Engine

from tokpack_core.bpe.encoder import ByteBpeEncoder
from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts
from tokpack_core.tokenizers.byte_bpe.file_model import bpe_model
from tokpack_core.tokenizers.pretokenizers import splits_of

BATCH = 2_000_000
"""Characters."""
HALF_RUN = 500_000
EOD = "<|endoftext|>"


def batches(folder: Path) -> Iterator[list[str]]:
    for file in sorted(folder.glob("*.jsonl.zst")):
        batch: list[str] = []
        characters = 0
        with zstandard.open(file, "rb") as lines:
            for line in lines.read().splitlines():
                batch.append(orjson.loads(line)["text"])
                characters += len(batch[-1])
                if characters > BATCH:
                    yield batch
                    batch, characters = [], 0
        if batch:
            yield batch


def every_code_point() -> list[str]:
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    return ["".join(characters[start : start + 9000]) for start in range(0, len(characters), 9000)]


def compare(folder: Path, size: int, pretokenizer: str) -> bool:
    config = TrainConfig(
        family="byte_bpe", vocab_size=size, pretokenizer=pretokenizer, special_tokens=SpecialTokens(eod=EOD)
    )
    trained = registry.train(config, (pa.array(batch) for batch in batches(folder)), "none")
    with tempfile.TemporaryDirectory() as saved:
        trained.save(Path(saved))
        path = Path(saved) / "tokenizer.json"
        library = Engine.from_file(str(path))
        library.encode_special_tokens = True
        ours = ByteBpeEncoder(bpe_model(orjson.loads(path.read_bytes())["model"]), splits_of(pretokenizer))
    documents = tokens = different = size_in_bytes = 0
    our_time = their_time = 0.0
    for batch in [hard_texts([EOD]), every_code_point(), *batches(folder)]:
        began = time.process_time()
        found = ours.encode(pa.array(batch, pa.string()))
        our_time += time.process_time() - began
        began = time.process_time()
        expected = [encoding.ids for encoding in library.encode_batch_fast(batch, add_special_tokens=False)]
        their_time += time.process_time() - began
        for number, ids in enumerate(expected):
            different += found.ids[found.offsets[number] : found.offsets[number + 1]].tolist() != ids
        documents += len(batch)
        tokens += found.ids.size
        size_in_bytes += sum(len(text.encode()) for text in batch)
    megabytes = size_in_bytes / 1e6
    print(
        f"{pretokenizer:<14}{documents:>8} documents {tokens:>10} tokens  {different} differ  "
        f"{megabytes / our_time:.1f} and {megabytes / their_time:.1f} MB a CPU-second",
        flush=True,
    )
    for unit in ("a", " ", "\n", "1", "你", "'"):
        times = []
        for length in (HALF_RUN, 2 * HALF_RUN):
            text = pa.array([unit * length])
            began = time.process_time()
            ours.encode(text)
            times.append(time.process_time() - began)
        print(f"  {unit!r:<6} 1 MB: {times[1]:.3f} CPU-s, {times[1] / times[0]:.1f} times as long as half", flush=True)
    return different == 0


def main() -> None:
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 32_000
    names = sys.argv[3:] or ["gpt2", "cl100k", "o200k", "qwen2", "llama3", "deepseek_v3"]
    if not all([compare(Path(sys.argv[1]), size, name) for name in names]):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
