"""Published tokenizers as tokpack encodes with them: engine, MB of UTF-8 a CPU-second, and the library's; same ids.

    python benchmarks/published_tokenizers.py FOLDER_OF_JSONL_ZST TOKENIZER...

TOKENIZER is a folder with a tokenizer.json. Ids are compared with Hugging Face tokenizers on a part of the text and on
strings that are hard for either; the first pass, in which the engine is loaded and compared, is not timed.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import orjson
import pyarrow as pa
import zstandard
from tokenizers import Tokenizer as Engine

from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.encoder_choice import encoder_choice
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts, random_texts
from tokpack_core.tokenizers.encoded import from_lists, same_ids

TEXT, FOR_LIBRARY = 12_000_000, 2_000_000


def sample(folder: Path) -> list[str]:
    """Documents of all files, shuffled, of about TEXT bytes."""
    texts = [
        orjson.loads(line)["text"]
        for file in sorted(folder.glob("*.jsonl.zst"))
        for line in zstandard.open(file, "rb").read().splitlines()
    ]
    random.Random(0).shuffle(texts)
    return first(texts, TEXT)


def first(texts: list[str], size: int) -> list[str]:
    taken = []
    for text in texts:
        if size <= 0:
            break
        taken.append(text)
        size -= len(text.encode())
    return taken


def rate(texts: list[str], encode: Callable[[], object]) -> float:
    began = time.process_time()
    encode()
    return sum(len(text.encode()) for text in texts) / 1e6 / (time.process_time() - began)


def main() -> None:
    texts = sample(Path(sys.argv[1]))
    some = first(texts, FOR_LIBRARY)
    print(f"{'':24}{'engine':>12}{'tokpack':>9}{'library':>9}{'ratio':>7}   same ids")
    for folder in map(Path, sys.argv[2:]):
        tokenizer = registry.load(folder)
        tokenizer.encode(pa.array(some))
        ours = rate(texts, lambda tokenizer=tokenizer: tokenizer.encode(pa.array(texts)))
        library = Engine.from_file(str(folder / "tokenizer.json"))
        library.encode_special_tokens = True
        library.no_truncation()
        library.no_padding()

        def encode(batch: list[str], library: Engine = library) -> list[list[int]]:
            return [encoding.ids for encoding in library.encode_batch_fast(batch, add_special_tokens=False)]

        theirs = rate(some, lambda encode=encode: encode(some))
        compared = [*some, *hard_texts([]), *random_texts()]
        same = same_ids(tokenizer.encode(pa.array(compared)), from_lists(encode(compared)))
        engine = encoder_choice(tokenizer).engine
        print(f"{folder.name:24}{engine:>12}{ours:9.1f}{theirs:9.1f}{ours / theirs:7.1f}   {'yes' if same else 'NO'}")


if __name__ == "__main__":
    main()
