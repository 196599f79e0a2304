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

- a tokenizer.json of another's making: where its steps say so (see `huggingface.cut_places`).

A document that has no such place in reach is encoded whole, by an encoder of our own if there is one (`LongTexts` of
SentencePiece), or by the library if there is memory for it; else that is an error, which says how to leave it out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.available_memory import available_bytes
from tokpack_core.corpus.text_buffers import text_array, text_buffers
from tokpack_core.tokenizers.encoded import Encoded, concatenate
from tokpack_core.tokenizers.encoding_errors import SHOWN, EncodingError
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
LONG = 1 << 20
"""Bytes of a text from which on an encoder of our own is worth loading for the sake of memory."""
UNCHECKED = 1 << 22
"""Bytes of a text that a library is given without asking for memory."""
TIMES = 70
"""Bytes of memory that a library takes for each byte of a text that it does not split."""
BEHIND = 8
"""Bytes before a place that its expression may look at: two characters."""
SEARCHED = 1 << 10
MOST_SEARCHED = 1 << 20
"""Bytes of text that are made a string to find a place in, the first time and later."""
CONTINUES, CONTINUATION = 0xC0, 0x80


def encode_bounded(
    encode_batch: Callable[[pa.Array], Encoded],
    texts: pa.Array,
    places: str | re.Pattern[str] | None,
    limit: int = BATCH_BYTES,
    encode_long: Callable[[pa.Array], Encoded] | None = None,
) -> Encoded:
    """Encode in batches of at most `limit` bytes; a longer document in parts, if its family has places to cut.

    places: a family, or an expression for places to cut at. `encode_long` takes what is left of LONG bytes and more,
    one text at a time.

    Raises EncodingError for a document that `encode_batch` would have to take whole, and that memory is too short for.
    """
    place = PLACES.get(places) if isinstance(places, str) else places

    def encode_any(batch: pa.Array) -> Encoded:
        alone = encode_long is not None and len(batch) == 1 and batch.nbytes > LONG
        if encode_long and alone:
            return encode_long(batch)
        require_memory(batch)
        return encode_batch(batch)

    def encode(batch: pa.Array) -> Encoded:
        if place is None or len(batch) > 1:
            return encode_any(batch)
        parts, _ = in_parts(batch, place, limit // 2)
        if len(parts) < 2:
            return encode_any(batch)
        ids = concatenate(map(encode_any, text_batches(parts, limit))).ids
        return Encoded(ids, np.array([0, ids.size], np.int64))

    return concatenate(map(encode, text_batches(texts, limit)))


def require_memory(batch: pa.Array) -> None:
    """Raises EncodingError if a library would take more memory for a long text than there is."""
    data, _ = text_buffers(batch)
    size = data.size
    available = available_bytes() if len(batch) == 1 and size > UNCHECKED else None
    if available is not None and size * TIMES > available:
        raise EncodingError(
            f"its {size / 1e6:.0f} MB cannot be cut where its tokenizer would not notice, and whole they take about "
            f"{size * TIMES / 1e9:.1f} GB of memory, of which {available / 1e9:.1f} GB are free: split the text, or "
            f"set `max_document_bytes` (--max-document-bytes) to {max(available // TIMES, 1)} and `on_error: skip` "
            "(--on-error skip) to leave out and count what is longer",
            data[: 4 * SHOWN].tobytes().decode(errors="ignore")[:SHOWN],
        )


def in_parts(texts: pa.Array, place: re.Pattern[str], length: int) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Documents cut at the first place after at least `length` bytes of a part (and one character), without a copy.

    Returns the parts and [documents + 1] how many of them stand before each document. A document of no more than
    `length` bytes is one part.
    """
    data, offsets = text_buffers(texts)
    cuts: list[int] = []
    for document in np.flatnonzero(np.diff(offsets) > length).tolist():
        at, stop = int(offsets[document]), int(offsets[document + 1])
        while stop - at > length and (at := place_after(data, at, stop, place, length)) < stop:
            cuts.append(at)
    return parts_at(texts, cuts)


def parts_at(texts: pa.Array, cuts: list[int]) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The same, cut at bytes of all texts together, which ascend and lie within documents."""
    data, offsets = text_buffers(texts)
    if not cuts:
        return texts, np.arange(offsets.size)
    edges = np.arange(offsets.size) + np.searchsorted(cuts, offsets)
    return text_array(data, np.sort(np.concatenate([offsets, cuts])), pa.large_string()), edges


def place_after(data: npt.NDArray[np.uint8], begin: int, stop: int, place: re.Pattern[str], length: int) -> int:
    """The first place that is at least `length` bytes and a character behind `begin`, or the end of the text."""
    at = character_end(data, begin + max(length, 1), stop)
    reach = SEARCHED
    while at < stop:
        low = character_end(data, max(begin, at - BEHIND), stop)
        text = data[low : character_end(data, at + reach, stop)].tobytes().decode()
        passed = len(data[low:at].tobytes().decode())
        found = place.search(text, passed)
        if found:
            return at + len(text[passed : found.start()].encode())
        at = character_end(data, at + reach, stop)
        reach = min(2 * reach, MOST_SEARCHED)
    return stop


def character_end(data: npt.NDArray[np.uint8], at: int, stop: int) -> int:
    """The first byte from `at` on that begins a character, or `stop`."""
    while at < stop and data[at] & CONTINUES == CONTINUATION:
        at += 1
    return min(at, stop)
