"""Byte-level BPE training side by side: CPU-seconds, wall seconds and peak memory of one process each, GPT-2's regex.

Every trainer runs in a process of its own, on one file that holds all documents between `<|endoftext|>`, and writes its
merges; "same" says whether they are those of Hugging Face tokenizers. Medians over the repetitions; Hugging Face and
sentencepiece, which take minutes, run once. Peers that are not installed are left out.

    python benchmarks/bpe_training.py FOLDER_OF_JSONL_ZST [VOCABULARY] [REPETITIONS] [NAME...]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

SEPARATOR = "<|endoftext|>"
BLOCK = 2**21
ONCE = ("huggingface", "sentencepiece")
PEERS = {
    "tokpack, 1 worker": None,
    "tokpack, 2 workers": None,
    "gigabpe, 1 thread": "gigabpe",
    "gigabpe, 2 threads": "gigabpe",
    "gigatoken": "gigatoken",
    "rustbpe": "rustbpe",
    "huggingface": "tokenizers",
    "sentencepiece": "sentencepiece",
}
Merges = list[tuple[bytes, bytes]]


def write_text(folder: Path, path: Path) -> None:
    """All documents of the folder in one file."""
    import orjson
    import zstandard

    with path.open("wb") as out:
        for file in sorted(folder.glob("*.jsonl.zst")):
            with zstandard.open(file, "rb") as lines:
                for line in lines.read().splitlines():
                    out.write(orjson.loads(line)["text"].encode() + SEPARATOR.encode())


def documents(path: Path) -> Iterator[list[bytes]]:
    rest = b""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            *whole, rest = (rest + block).split(SEPARATOR.encode())
            yield whole
    yield [rest]


def as_array(texts: list[bytes]) -> pa.Array:
    """Without `pa.array`, which imports pandas."""
    import numpy as np
    import pyarrow as pa

    from tokpack_core.corpus.text_buffers import text_array

    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return text_array(np.frombuffer(b"".join(texts), np.uint8), offsets, pa.binary())


def train_tokpack(path: Path, size: int, workers: int) -> Merges:
    from tokpack_core.bpe.merge_settings import MergeSettings
    from tokpack_core.bpe.training import train_merges
    from tokpack_core.tokenizers.pretokenizers import SPLITS

    arrays = map(as_array, documents(path))
    merges, _ = train_merges(arrays, SPLITS["gpt2"], MergeSettings(size), workers)
    pairs = zip(merges.left.tolist(), merges.right.tolist(), strict=True)
    return [(merges.tokens[left], merges.tokens[right]) for left, right in pairs]


def train_huggingface(path: Path, size: int) -> Merges:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=1, initial_alphabet=alphabet, show_progress=False)
    engine.train_from_iterator(([text.decode() for text in texts] for texts in documents(path)), trainer)
    return from_names(json.loads(engine.to_str())["model"]["merges"])


def from_names(pairs: list[list[str]]) -> Merges:
    from tokpack_core.tokenizers.byteification.token_bytes import byte_level_bytes

    return [(byte_level_bytes(left) or b"", byte_level_bytes(right) or b"") for left, right in pairs]


def train_sentencepiece(path: Path, size: int) -> Merges:
    import sentencepiece

    lines = (line.decode() for texts in documents(path) for text in texts for line in text.splitlines() if line)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines,
        model_prefix=str(path.with_name("sp")),
        vocab_size=size,
        model_type="bpe",
        byte_fallback=True,
        character_coverage=0.9995,
        num_threads=2,
        max_sentence_length=10**9,
        minloglevel=2,
    )
    return []


def train(name: str, path: Path, size: int) -> Merges:
    """`size`: bytes and merges."""
    if name.startswith("tokpack"):
        return train_tokpack(path, size, int(name.split()[1]))
    if name.startswith("gigabpe"):
        import gigabpe

        _, pairs = gigabpe.train_bpe(
            [str(path)], size + 1, special_tokens=[SEPARATOR], pretokenizer="bytelevel", threads=int(name.split()[1])
        )
        return from_names(pairs)
    if name == "gigatoken":
        import gigatoken

        trained = gigatoken.train_bpe(path.read_bytes(), size + 1, [SEPARATOR], separator=SEPARATOR.encode())
        return [(bytes(left), bytes(right)) for left, right in trained[1]]
    if name == "rustbpe":
        import rustbpe

        from tokpack_core.tokenizers.pretokenizers import PRETOKENIZERS

        trainer = rustbpe.Tokenizer()
        texts = (text.decode() for block in documents(path) for text in block)
        trainer.train_from_iterator(texts, size, pattern=PRETOKENIZERS["gpt2"])
        return [(bytes(token), b"") for token, _ in trainer.get_mergeable_ranks()[256:]]
    return train_huggingface(path, size) if name == "huggingface" else train_sentencepiece(path, size)


def measured(arguments: list[str]) -> tuple[float, float, float]:
    """CPU-seconds, wall seconds and peak MB of a process."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], env=os.environ | {"RAYON_NUM_THREADS": "2"})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - began, usage.ru_maxrss / 1024


def agreement(merges: Merges, reference: Merges) -> str:
    """How many merges are the reference's, from the first on; of rustbpe only the tokens are known."""
    tokens = [left + right for left, right in merges]
    wanted = [left + right for left, right in reference[: len(merges)]]
    same = next((k for k, (one, other) in enumerate(zip(tokens, wanted, strict=False)) if one != other), len(wanted))
    return "yes" if same == len(reference) else f"first {same}"


def main() -> None:
    if sys.argv[1] == "--one":
        _, _, name, path, size, out = sys.argv
        merges = train(name, Path(path), int(size))
        Path(out).write_text(json.dumps([[left.hex(), right.hex()] for left, right in merges]))
        return
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 32_000
    repetitions = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    names = sys.argv[4:] or [name for name, module in PEERS.items() if module is None or find_spec(module)]
    found: dict[str, Merges] = {}
    figures: dict[str, list[tuple[float, float, float]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "text.txt"
        write_text(Path(sys.argv[1]), path)
        print(f"{path.stat().st_size / 1e6:.1f} MB, vocabulary {size}")
        small = Path(temporary) / "warm_up.txt"
        small.write_bytes(path.read_bytes()[: 3 * 10**6].decode("utf-8", "ignore").encode())
        measured([__file__, "--one", "tokpack, 1 worker", str(small), str(size), f"{temporary}/out"])
        for repetition in range(repetitions):
            for name in names:
                if repetition and name in ONCE:
                    continue
                figures[name].append(measured([__file__, "--one", name, str(path), str(size), f"{temporary}/out"]))
                pairs = json.loads(Path(f"{temporary}/out").read_text())
                found[name] = [(bytes.fromhex(left), bytes.fromhex(right)) for left, right in pairs]
    print(f"{'trainer':<22}{'CPU-s':>9}{'wall s':>9}{'peak MB':>9}  same merges")
    for name in names:
        cpu, wall, memory = (statistics.median(column) for column in zip(*figures[name], strict=True))
        same = agreement(found[name], found["huggingface"]) if "huggingface" in found and found[name] else "-"
        print(f"{name:<22}{cpu:>9.1f}{wall:>9.1f}{memory:>9.0f}  {same}")


if __name__ == "__main__":
    main()
