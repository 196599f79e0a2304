"""Byte-level BPE encoding side by side, one thread each: MB of UTF-8 a CPU-second, by file and over all.

A 32k vocabulary is trained on the text first. "cold" is the first pass of an encoder that has seen nothing, "warm" the
second one over the same text. tokpack's ids are compared with Hugging Face's for the first part of each file.

    python benchmarks/bpe_encoding.py FOLDER_OF_JSONL_ZST [VOCABULARY]
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
import orjson
import pyarrow as pa
import tiktoken
import zstandard
from tokenizers import Tokenizer as Engine
from tokenizers import pre_tokenizers

from tokpack_core.bpe.encoder import ByteBpeEncoder
from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.byte_bpe.file_model import bpe_model
from tokpack_core.tokenizers.pretokenizers import PRETOKENIZERS, SPLITS

SLOW_PART = 1_500_000
"""Bytes of each file that the slow encoders get."""


def texts_of(file: Path) -> list[str]:
    with zstandard.open(file, "rb") as lines:
        return [orjson.loads(line)["text"] for line in lines.read().splitlines()]


def part(texts: list[str], size: int) -> list[str]:
    taken = np.cumsum([len(text.encode()) for text in texts]) <= size
    return texts[: max(int(taken.sum()), 1)]


def rate(texts: list[str], encode: Callable[[], object]) -> float:
    began = time.process_time()
    encode()
    return sum(len(text.encode()) for text in texts) / 1e6 / (time.process_time() - began)


def main() -> None:
    files = {file.name.split(".")[0]: texts_of(file) for file in sorted(Path(sys.argv[1]).glob("*.jsonl.zst"))}
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 32_000
    config = TrainConfig(family="byte_bpe", vocab_size=size, pretokenizer="gpt2", special_tokens=SpecialTokens())
    trained = registry.train(config, (pa.array(texts) for texts in files.values()), "none")
    with tempfile.TemporaryDirectory() as folder:
        trained.save(Path(folder))
        path = Path(folder) / "tokenizer.json"
        model = bpe_model(orjson.loads(path.read_bytes())["model"])
        library = Engine.from_file(str(path))
        # gigatoken knows this regex only as the one that ByteLevel has built in.
        library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        library.save(str(path))
        import gigatoken

        def giga() -> gigatoken.Tokenizer:
            return gigatoken.Tokenizer(str(path))

        giga()
        vocabulary = trained.vocabulary()
        ranks = dict(zip(vocabulary["token"].to_pylist(), vocabulary["id"].to_pylist(), strict=True))
        tik = tiktoken.Encoding("peer", pat_str=PRETOKENIZERS["gpt2"], mergeable_ranks=ranks, special_tokens={})
        ByteBpeEncoder(model, SPLITS["gpt2"]).encode(pa.array(["compiled now"]))
        columns = ("tokpack cold", "warm", "gigatoken cold", "warm", "tiktoken", "huggingface")
        print(f"{'text':<6}{'MB':>7}" + "".join(f"{column:>16}" for column in columns) + "   same ids")
        rows = []
        files["all"] = [text for texts in files.values() for text in texts]
        for name, texts in files.items():
            ours, theirs = ByteBpeEncoder(model, SPLITS["gpt2"]), giga()
            array = pa.array(texts)
            contents = [text.encode() for text in texts]
            few = part(texts, SLOW_PART)
            rates = [
                rate(texts, lambda ours=ours, array=array: ours.encode(array)),
                rate(texts, lambda ours=ours, array=array: ours.encode(array)),
                rate(texts, lambda theirs=theirs, contents=contents: theirs.encode_batch(contents, parallel=False)),
                rate(texts, lambda theirs=theirs, contents=contents: theirs.encode_batch(contents, parallel=False)),
                rate(few, lambda few=few: [tik.encode_ordinary(text) for text in few]),
                rate(few, lambda few=few: library.encode_batch_fast(few, add_special_tokens=False)),
            ]
            expected = [encoding.ids for encoding in library.encode_batch_fast(few, add_special_tokens=False)]
            same = ours.encode(pa.array(few)).ids.tolist() == [token for ids in expected for token in ids]
            megabytes = sum(map(len, contents)) / 1e6
            print(
                f"{name:<6}{megabytes:>7.1f}" + "".join(f"{r:>16.1f}" for r in rates) + f"   {'yes' if same else 'NO'}"
            )
            rows.append(rates)
        medians = [statistics.median(column) for column in zip(*rows, strict=True)]
        print(f"{'median':<13}" + "".join(f"{r:>16.1f}" for r in medians))


if __name__ == "__main__":
    main()
