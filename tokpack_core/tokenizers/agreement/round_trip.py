"""Does text survive encoding and decoding, and where does it not?

In the families of LOSSY it does not, by their nature: WordPiece drops white space, and what has no entry is unk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.config import Family
from tokpack_core.tokenizers.protocol import Tokenizer

LOSSY: tuple[Family, ...] = ("wordpiece", "character", "word")


EXAMPLES = 10
SHOWN_BYTES = 24


@dataclass
class RoundTrips:
    """Adds up documents that were encoded and decoded.

    examples: of the first documents that failed, `document` (its name), `byte` (of its UTF-8, from 0, where what comes
    back differs first), `text` and `became` (some characters from there).
    """

    documents: int = 0
    failures: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)

    def add(self, tokenizer: Tokenizer, texts: pa.Array, name: Callable[[int], str]) -> None:
        """`name`: what the document of a row is called."""
        restored = tokenizer.decode(tokenizer.encode(texts))
        failed = different_rows(texts, restored)
        self.documents += len(texts)
        self.failures += len(failed)
        for row in failed[: EXAMPLES - len(self.examples)]:
            self.examples.append({"document": name(row)} | difference(texts[row].as_py(), restored[row].as_py()))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def round_trip_failures(tokenizer: Tokenizer, texts: pa.Array) -> list[int]:
    """Indices of the (normalized) texts that differ after encoding and decoding."""
    return different_rows(texts, tokenizer.decode(tokenizer.encode(texts)))


def different_rows(texts: pa.Array, others: pa.Array) -> list[int]:
    same = pc.equal(texts.cast(pa.large_string()), others.cast(pa.large_string()))
    return [int(row) for row in (~same.to_numpy(zero_copy_only=False).astype(bool)).nonzero()[0]]


def difference(text: str, restored: str) -> dict[str, Any]:
    """Where two texts that are not equal differ first, and what stands there."""
    one, other = text.encode(), restored.encode()
    both = min(len(one), len(other))
    unequal = np.frombuffer(one, np.uint8, both) != np.frombuffer(other, np.uint8, both)
    byte = int(unequal.argmax()) if unequal.any() else both
    return {"byte": byte, "text": characters_from(one, byte), "became": characters_from(other, byte)}


def place_of(example: dict[str, Any]) -> str:
    """An element of `examples` in words."""
    return f"{example['document']} (byte {example['byte']}: {example['text']!r} becomes {example['became']!r})"


def characters_from(data: bytes, byte: int) -> str:
    """Some whole characters, from the one that holds the byte."""
    while 0 < byte < len(data) and data[byte] & 0xC0 == 0x80:
        byte -= 1
    return data[byte : byte + SHOWN_BYTES].decode(errors="ignore")
