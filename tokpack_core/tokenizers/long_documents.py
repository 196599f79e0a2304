"""Documents longer than a batch, encoded in parts with the ids of the whole, so that memory stays bounded.

While they encode, Hugging Face tokenizers hold about 120 bytes and SentencePiece about 40 for each byte of a
document. A part may only end where no token can cross, which depends on the family:

- byte_bpe, word: between a line end that follows no white space and a letter. In each of the three published regexes a
  letter after a line end begins a pretoken, and the line end ends one, whatever follows it. A letter is no
  combining mark, so normalization does not cross either.
- wordpiece, character: between a line end and a letter. Neither merges across, nor does normalization.
- sentencepiece_bpe: between a character that is no white space and a space. In the models that we train, a space
  stands in a piece only at its start or among spaces. Merges are local, so the parts' ids are those of the whole.
- sentencepiece_unigram, modular_unigram: there, and between a line end or punctuation and a letter of Chinese or
  Japanese, since no piece is of two scripts; where sums of scores are exact (see `exact_scores`), for else starting
  anew can turn a near tie, and the text is not cut.

A document that has no such place in reach is encoded whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from tokpack_core.tokenizers.encoded import Encoded, concatenate
from tokpack_core.tokenizers.text_batches import BATCH_BYTES, text_batches

UNIGRAM = re.compile(r"(?<=\S)(?= )|(?<=[\n。，！？])(?=[ぁ-ゖァ-ヺ一-鿿])")
PLACES = {
    "byte_bpe": re.compile(r"(?<=\S\n)(?=[^\W\d_])"),
    "word": re.compile(r"(?<=\S\n)(?=[^\W\d_])"),
    "wordpiece": re.compile(r"(?<=\n)(?=[^\W\d_])"),
    "character": re.compile(r"(?<=\n)(?=[^\W\d_])"),
    "sentencepiece_bpe": re.compile(r"(?<=\S)(?= )"),
    "sentencepiece_unigram": UNIGRAM,
    "modular_unigram": UNIGRAM,
}


def encode_bounded(
    encode_batch: Callable[[pa.Array], Encoded], texts: pa.Array, family: str, limit: int = BATCH_BYTES
) -> Encoded:
    """Encode in batches of at most `limit` bytes; a longer document in parts, if its family has places to cut."""
    place = PLACES.get(family)

    def encode(batch: pa.Array) -> Encoded:
        if place is None or len(batch) > 1:
            return encode_batch(batch)
        parts = pa.array(list(cut_at(batch[0].as_py(), place, limit // 4)), pa.string())
        if len(parts) < 2:
            return encode_batch(batch)
        ids = concatenate(map(encode_batch, text_batches(parts, limit))).ids
        return Encoded(ids, np.array([0, ids.size], np.int64))

    return concatenate(map(encode, text_batches(texts, limit)))


def cut_at(text: str, place: re.Pattern[str], length: int) -> Iterator[str]:
    """Parts of the text that end at the first place after at least `length` characters, and one."""
    start = 0
    while start < len(text):
        found = place.search(text, start + max(length, 1))
        stop = found.start() if found else len(text)
        yield text[start:stop]
        start = stop
