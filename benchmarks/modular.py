"""Modular tokenizers against a tokenizer of each language alone: tokens of held-out text, entries, CPU-seconds, memory.

Of each file of the folder, a language, every twentieth document is held out. Both families are trained on the rest of
all files, and each language by itself with `byte_bpe` and `sentencepiece_unigram` of the same size, or of what its text
gives. Shown are the tokens of the language's sub-tokenizer and of the whole vocabulary, over those of the tokenizer of
that language alone. Each training is a process of its own.

    python benchmarks/modular.py FOLDER_OF_JSONL_ZST [VOCABULARY] [MEGABYTES] [FAMILY]
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SINGLE = {"modular_bpe": "byte_bpe", "modular_unigram": "sentencepiece_unigram"}
HELD_OUT = 20
BATCH = 500


def texts_of(file: Path, megabytes: float, held_out: bool) -> Iterator[list[str]]:
    """Batches of the first documents, those held out or all others."""
    import orjson
    import zstandard

    size, batch = 0, []
    with zstandard.open(file, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            text = orjson.loads(line)["text"]
            size += len(text.encode())
            if (number % HELD_OUT == HELD_OUT - 1) == held_out:
                batch.append(text)
            if len(batch) == BATCH:
                yield batch
                batch = []
            if size > megabytes * 1e6:
                break
    yield batch


def train(family: str, files: list[Path], vocab_size: int, megabytes: float, folder: Path) -> dict[str, Any]:
    """Trains on files, saves, and says what it took."""
    import pyarrow as pa

    from tokpack_core.config import TrainConfig
    from tokpack_core.tokenizers import registry
    from tokpack_core.tokenizers.sentencepiece.training import VocabularyTooLarge

    special = {"eod": "<|endoftext|>"}
    config = TrainConfig.model_validate({"family": family, "vocab_size": vocab_size, "special_tokens": special})

    def labelled() -> Iterator[tuple[pa.Array, pa.Array]]:
        for file in files:
            for batch in texts_of(file, megabytes, held_out=False):
                yield pa.array(batch, pa.large_string()), pa.array([language_of(file)] * len(batch), pa.string())

    begin = time.process_time()
    if family in SINGLE:
        tokenizer = registry.train_modular(config, labelled(), "none")
    else:
        try:
            tokenizer = registry.train(config, (texts for texts, _ in labelled()), "none")
        except VocabularyTooLarge as error:
            smaller = config.model_copy(update={"vocab_size": error.possible})
            tokenizer = registry.train(smaller, (texts for texts, _ in labelled()), "none")
    seconds = time.process_time() - begin
    tokenizer.save(folder)
    megabyte = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"entries": tokenizer.vocab_size, "cpu_seconds": seconds, "peak_mb": megabyte}


def count(folder: Path, file: Path, megabytes: float, language: str | None) -> int:
    """Tokens of a file's held-out text, by a language's sub-tokenizer or the whole."""
    import pyarrow as pa

    from tokpack_core.tokenizers import registry
    from tokpack_core.tokenizers.modular.sub_tokenizers import sub_tokenizer

    tokenizer = registry.load(folder)
    if language is not None:
        tokenizer = sub_tokenizer(tokenizer, [language])
    texts = texts_of(file, megabytes, held_out=True)
    return sum(int(tokenizer.encode(pa.array(batch, pa.large_string())).ids.size) for batch in texts)


def language_of(file: Path) -> str:
    return file.name.split(".")[0]


def apart(*arguments: object) -> Any:
    """What `train` or `count` gives in a process of its own."""
    run = subprocess.run([sys.executable, __file__, "run", json.dumps(arguments, default=str)], stdout=subprocess.PIPE)
    run.check_returncode()
    return json.loads(run.stdout)


def called(name: str, *arguments: Any) -> Any:
    if name == "train":
        family, files, vocab_size, megabytes, folder = arguments
        return train(family, [Path(file) for file in files], vocab_size, megabytes, Path(folder))
    folder, file, megabytes, language = arguments
    return count(Path(folder), Path(file), megabytes, language)


def main(folder: Path, vocab_size: int, megabytes: float, families: list[str]) -> None:
    files = sorted(folder.glob("*.jsonl.zst"))
    for family in families:
        with TemporaryDirectory() as name:
            whole = Path(name, "whole")
            whole.mkdir()
            took = apart("train", family, files, vocab_size, megabytes, whole)
            print(f"{family}: " + ", ".join(f"{key} {value:,.0f}" for key, value in took.items()), flush=True)
            print(f"{'':8}{'entries':>9}{'alone':>11}{'of its own':>12}{'whole':>9}")
            seconds, entries = 0.0, 0
            for file in files:
                language = language_of(file)
                alone = Path(name, language)
                alone.mkdir()
                single = apart("train", SINGLE[family], [file], vocab_size, megabytes, alone)
                seconds += single["cpu_seconds"]
                entries += single["entries"]
                counts = [
                    apart("count", *arguments)
                    for arguments in (
                        (alone, file, megabytes, None),
                        (whole, file, megabytes, language),
                        (whole, file, megabytes, None),
                    )
                ]
                shares = [f"{100 * (tokens / counts[0] - 1):+.2f} %" for tokens in counts[1:]]
                print(f"{language:8}{single['entries']:9,}{counts[0]:11,}{shares[0]:>12}{shares[1]:>9}", flush=True)
            print(f"alone, all together: {entries:,} entries, {seconds:.1f} CPU-seconds\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        print(json.dumps(called(*json.loads(sys.argv[2]))))
    else:
        given = dict(enumerate(sys.argv[1:]))
        main(
            Path(given[0]),
            int(given.get(1, 16_000)),
            float(given.get(2, 1e9)),
            [given[3]] if 3 in given else list(SINGLE),
        )
