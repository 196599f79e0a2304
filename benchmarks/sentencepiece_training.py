"""SentencePiece training side by side: CPU-seconds, peak memory, and bytes per token of held-out text.

`tokpack` is our training on counted words; `plain` is the library's own, on documents cut into lines, with settings of
the same meaning. Each runs in a process of its own on the first `MEGABYTES` of each file of the folder, and encodes the
tenth that follows. The two do not give the same pieces: the gap in bytes per token is part of what is shown.

    python benchmarks/sentencepiece_training.py FOLDER_OF_JSONL_ZST [MEGABYTES] [VOCABULARY]
"""

from __future__ import annotations

import io
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

LONGEST_LINE = 100_000
FAMILIES = ("sentencepiece_bpe", "sentencepiece_unigram")
Encode = Callable[[list[str]], int]


def split_texts(folder: Path, megabytes: float) -> tuple[list[str], list[str]]:
    """Training text and held-out text."""
    import orjson
    import zstandard

    training: list[str] = []
    held_out: list[str] = []
    for file in sorted(folder.glob("*.jsonl.zst")):
        size = 0.0
        with zstandard.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                text = orjson.loads(line)["text"]
                (training if size < megabytes * 1e6 else held_out).append(text)
                size += len(text.encode())
                if size > megabytes * 1.1e6:
                    break
    return training, held_out


def train_tokpack(family: str, texts: list[str], size: int) -> Encode:
    import pyarrow as pa

    from tokpack_core.config import TrainConfig
    from tokpack_core.tokenizers import registry

    arrays = (pa.array(texts[start : start + 500], pa.large_string()) for start in range(0, len(texts), 500))
    config = TrainConfig.model_validate({"family": family, "vocab_size": size})
    tokenizer = registry.train(config, arrays, "none")
    return lambda held_out: int(tokenizer.encode(pa.array(held_out, pa.large_string())).ids.size)


def train_plain(family: str, texts: list[str], size: int) -> Encode:
    import sentencepiece

    writer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(
            text[start : start + LONGEST_LINE] for text in texts for start in range(0, len(text), LONGEST_LINE)
        ),
        model_writer=writer,
        model_type=family.removeprefix("sentencepiece_"),
        vocab_size=size,
        byte_fallback=True,
        split_digits=True,
        allow_whitespace_only_pieces=True,
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
        normalization_rule_name="identity",
        max_sentence_length=4 * LONGEST_LINE,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=writer.getvalue())
    return lambda held_out: sum(map(len, processor.encode(held_out)))


def measure(trainer: str, family: str, folder: Path, megabytes: float, size: int) -> None:
    training, held_out = split_texts(folder, megabytes)
    start = time.process_time()
    encode = (train_tokpack if trainer == "tokpack" else train_plain)(family, training, size)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    held_bytes = sum(len(text.encode()) for text in held_out)
    print(json.dumps({"cpu": seconds, "peak": peak, "bytes_per_token": held_bytes / encode(held_out)}))


def main(folder: Path, megabytes: float = 1.0, size: int = 32_000) -> None:
    for family in FAMILIES:
        found = {}
        for trainer in ("tokpack", "plain"):
            command = [sys.executable, __file__, "--one", trainer, family, str(folder), str(megabytes), str(size)]
            found[trainer] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            row = found[trainer]
            figures = f"{row['cpu']:.1f} CPU-s, {row['peak']:.0f} MB, {row['bytes_per_token']:.4f} bytes per token"
            print(f"{family} {trainer}: {figures}")
        ratio = found["plain"]["cpu"] / found["tokpack"]["cpu"]
        gap = found["tokpack"]["bytes_per_token"] / found["plain"]["bytes_per_token"] - 1
        print(f"{family}: {ratio:.1f} times less CPU, bytes per token {gap:+.2%}")


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        measure(sys.argv[2], sys.argv[3], Path(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]))
    else:
        main(Path(sys.argv[1]), *(kind(value) for kind, value in zip((float, int), sys.argv[2:], strict=False)))
