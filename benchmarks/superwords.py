"""SuperBPE and BoundlessBPE against our own byte-level BPE in the same run: training, encoding, tokens by language.

Every twentieth document is held out of training and gives the tokens by language. Each training runs in a process of
its own on one file of documents; CPU-seconds and peak memory include the interpreter. Larger sizes than the corpus has
are made of copies in which every tenth word is another one of the corpus, so that runs of words are new ones.

    python benchmarks/superwords.py tokens FOLDER_OF_JSONL_ZST [VOCABULARY]
    python benchmarks/superwords.py sizes FOLDER_OF_JSONL_ZST [VOCABULARY] [MEGABYTES...]
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

BATCH = 2**22
HELD_OUT = 20
LANGUAGES = ("vi", "en", "code", "zh", "ja", "ru", "tr", "th")


def kinds(size: int) -> dict[str, dict[str, object]]:
    late = size * 9 // 10
    return {
        "byte_bpe": {"family": "byte_bpe"},
        "boundless_bpe": {"family": "boundless_bpe"},
        "boundless_bpe, script_aware": {"family": "boundless_bpe", "script_aware": True},
        "superbpe, auto": {"family": "superbpe"},
        f"superbpe, t = {late}": {"family": "superbpe", "transition_size": late},
        f"superbpe, words, t = {late}": {"family": "superbpe", "joins": "words", "transition_size": late},
    }


def documents(folder: Path, language: str) -> list[str]:
    import orjson
    import zstandard

    with zstandard.open(folder / f"{language}.jsonl.zst", "rb") as lines:
        return [orjson.loads(line)["text"] for line in lines.read().splitlines()]


def write_training_text(folder: Path, path: Path, size: int | None = None) -> int:
    """Documents as JSON lines, held-out ones left out, copies with other words until there are `size` bytes."""
    languages = sorted(file.name.removesuffix(".jsonl.zst") for file in folder.glob("*.jsonl.zst"))
    chosen = random.Random(0)
    written, copy = 0, 0
    words: list[str] = []
    with path.open("w", encoding="utf-8") as out:
        while True:
            for language in languages:
                for number, text in enumerate(documents(folder, language)):
                    if number % HELD_OUT == 0:
                        continue
                    parts = text.split(" ")
                    if copy:
                        for place in range(chosen.randrange(10), len(parts), 10):
                            parts[place] = chosen.choice(words)
                    elif len(words) < 10**6:
                        words += parts
                    out.write(json.dumps(" ".join(parts), ensure_ascii=False) + "\n")
                    written += len(" ".join(parts).encode())
                    if size is not None and written >= size:
                        return written
            copy += 1
            if size is None:
                return written


def batches(path: Path) -> Iterator[object]:
    import pyarrow as pa

    texts: list[str] = []
    held = 0
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            texts.append(json.loads(line))
            held += len(line)
            if held > BATCH:
                yield pa.array(texts, pa.large_string())
                texts, held = [], 0
    yield pa.array(texts, pa.large_string())


def train(options: dict[str, object], size: int, path: Path, output: Path) -> None:
    from tokpack_core.config import TrainConfig
    from tokpack_core.tokenizers import registry

    config = TrainConfig.model_validate({"vocab_size": size} | options)
    tokenizer = registry.train(config, batches(path), "none")  # type: ignore[arg-type]
    output.mkdir(exist_ok=True)
    tokenizer.save(output)


def measured(options: dict[str, object], size: int, path: Path, output: Path) -> tuple[float, float]:
    """CPU-seconds and peak MB of a training in a process of its own."""
    arguments = [sys.executable, __file__, "--one", json.dumps(options), str(size), str(path), str(output)]
    process = subprocess.Popen(arguments)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def reading_seconds(path: Path) -> float:
    began = time.process_time()
    for _ in batches(path):
        pass
    return time.process_time() - began


def encoded_tokens(folder: Path, output: Path) -> tuple[dict[str, int], float]:
    """Tokens of the held-out documents by language, and MB a CPU-second on all of them, the second time."""
    import pyarrow as pa

    from tokpack_core.tokenizers import registry

    tokenizer = registry.load(output)
    texts = {language: pa.array(documents(folder, language)[::HELD_OUT], pa.large_string()) for language in LANGUAGES}
    everything = pa.concat_arrays([*texts.values()] * 2)
    tokenizer.encode(everything)
    began = time.process_time()
    tokenizer.encode(everything)
    speed = everything.nbytes / 1e6 / (time.process_time() - began)
    return {language: tokenizer.encode(held).ids.size for language, held in texts.items()}, speed


def by_language(folder: Path, size: int) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "text"
        megabytes = write_training_text(folder, path) / 1e6
        reading = reading_seconds(path)
        print(f"{megabytes:.1f} MB of training text, vocabulary {size}, reading takes {reading:.1f} CPU-s of each")
        print(f"{'':<30}{'CPU-s':>7}{'peak MB':>9}{'t':>8}{'MB/CPU-s':>10}" + "".join(f"{n:>8}" for n in LANGUAGES))
        base: dict[str, int] = {}
        for number, (name, options) in enumerate(kinds(size).items()):
            output = Path(temporary) / str(number)
            measured(options, size, path, output) if not number else None
            cpu, memory = measured(options, size, path, output)
            training = json.loads((output / "tokenizer_config.json").read_text())["tokpack"]["training"]
            tokens, speed = encoded_tokens(folder, output)
            base = base or tokens
            changes = "".join(f"{100 * (tokens[n] / base[n] - 1):>7.1f}%" for n in LANGUAGES)
            print(
                f"{name:<30}{cpu:>7.1f}{memory:>9.0f}{training.get('transition_size', size):>8}{speed:>10.1f}{changes}"
            )


def by_size(folder: Path, size: int, megabytes: list[int]) -> None:
    for amount in megabytes:
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "text"
            write_training_text(folder, path, amount * 10**6)
            reading = reading_seconds(path)
            found = {
                name: measured(kinds(size)[name], size, path, Path(temporary) / name)
                for name in ("byte_bpe", "boundless_bpe")
            }
            figures = ", ".join(
                f"{name} {cpu - reading:.1f} CPU-s {memory:.0f} MB" for name, (cpu, memory) in found.items()
            )
            print(f"{amount} MB: {figures} (without reading, {reading:.1f} CPU-s)")


def main() -> None:
    if sys.argv[1] == "--one":
        train(json.loads(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), Path(sys.argv[5]))
        return
    folder, size = Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 32_000
    if sys.argv[1] == "tokens":
        by_language(folder, size)
    else:
        by_size(folder, size, [int(amount) for amount in sys.argv[4:]] or [100, 300, 1000])


if __name__ == "__main__":
    main()
