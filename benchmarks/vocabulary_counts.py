"""Counting the tokens of text: MB a CPU-second through pretokens, by encoding, and of the encoder alone.

    python benchmarks/vocabulary_counts.py TOKENIZER FILE...

TOKENIZER: a folder with one, a tokenizer.json, x.model or x.tiktoken; FILE: what `tokpack report` takes. A byte-level
BPE is counted both ways, and the counts must be equal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from tokpack_core.commands.reading import normalized, open_reading
from tokpack_core.config import ReadConfig
from tokpack_core.tokenizers.registry import load
from tokpack_core.vocabulary.counting import EncodingCounter, TextCounter, text_counter


def main() -> None:
    tokenizer = load(Path(sys.argv[1]))
    reading = open_reading(sys.argv[2:], ReadConfig(lang_field="lang"), None)
    batches = list(normalized(reading.batches(lambda _: None), tokenizer.unicode))
    size = sum(batch["text"].nbytes for batch in batches) / 1e6
    warm(tokenizer.encode, batches[0]["text"])
    warm_up = text_counter(tokenizer)
    warm_up.add(batches[0]["text"].slice(0, 100), batches[0]["lang"].slice(0, 100))
    warm_up.total()

    def count(counter: TextCounter) -> TextCounter:
        for batch in batches:
            counter.add(batch["text"], batch["lang"])
        counter.total()
        return counter

    def encode() -> None:
        for batch in batches:
            tokenizer.encode(batch["text"])

    encoder = seconds(encode)
    fast, by_encoding = text_counter(tokenizer), EncodingCounter(tokenizer)
    counting, encoding = seconds(lambda: count(fast)), seconds(lambda: count(by_encoding))
    assert fast.total().by_language.equals(by_encoding.total().by_language)
    print(f"{size:,.0f} MB, {tokenizer.family}, {type(fast).__name__}")
    for name, taken in (("encoder alone", encoder), ("counting", counting), ("counting by encoding", encoding)):
        print(f"{name:22} {size / taken:8.1f} MB/CPU-s   {encoder / taken:5.2f} of the encoder")


def warm(encode: Callable[[pa.Array], object], texts: pa.Array) -> None:
    """Our encoder is loaded after the first MiB."""
    for _ in range(3):
        encode(texts)


def seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


if __name__ == "__main__":
    main()
