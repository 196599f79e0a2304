"""SentencePiece BPE and Unigram (Kudo and Richardson 2018), trained so that no text is lost and code keeps its form.

What the library would do with training text, and what is done about it here:
- It skips sentences longer than `max_sentence_length`: documents are cut into sentences of at most 2048 characters,
  before a space where possible (no piece crosses from another character into a space, so such a cut changes
  nothing), else after a line end, else anywhere.
- It skips a sentence that holds U+2585, takes U+2581 for a space, and strips line ends at the end of a sentence. No
  piece may hold NUL: the two characters become NUL in the training text, and NUL follows a final line end. Nothing is
  dropped; these characters, NUL and the library's own mark (U+001F, in releases before 0.2.1 the tab) are encoded as
  bytes.
- It splits ASCII and full-width digits (`split_digits`). NUL around every other decimal digit splits those of all
  scripts.
- A special token's look-alike in training text is a boundary of pieces as well (the library does this itself).
- Paths of input files would stand in the model: text comes from an iterator, and the path of the rule table is
  removed.

Pieces have at most 16 characters (the library's default). Threads are a constant, because they shape Unigram's
sums; Unigram also depends on the order of documents (its seed pieces come from a suffix array), BPE does not.

Ids: special tokens first, in the order eod, pad, bos, unk (SentencePiece must have unk: `<unk>` if none is
configured), then 256 byte pieces, then pieces by score. The vocabulary has exactly the size asked for, or training
is refused with the size that is possible.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import sentencepiece

from tokpack_core.config import TrainConfig, UnicodeForm
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.sentencepiece_model import SentencePieceTokenizer
from tokpack_core.tokenizers.sentencepiece_proto import without_rule_path
from tokpack_core.tokenizers.text_batches import text_batches
from tokpack_core.tokenizers.unicode_rules import nfc_rules_tsv

THREADS = 16
SENTENCE_CHARACTERS = 2048
"""NFKC makes 18 characters of one at most, and the BPE trainer holds places in a word in 16 bits: 2048 · 18 < 2¹⁶."""
SENTENCE_BYTES = 3 * (4 * SENTENCE_CHARACTERS + 1)
"""The library's limit: every character may be a digit with a boundary on each side."""
BOUNDARY = "\0"
RESERVED = "\u2581\u2585\0"
RESERVED_TO_BOUNDARY = str.maketrans(dict.fromkeys(RESERVED, BOUNDARY))
OTHER_DIGIT = re.compile(r"(?![0-9\uff10-\uff19])\d")
DEFAULT_UNK = "<unk>"
SMALLEST_COVERAGE = 0.98

TOO_LARGE = re.compile(r"set it to a value <= (\d+)")
TOO_SMALL = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


class Sentences:
    """The sample as sentences that the library neither skips nor alters, counted on the way."""

    def __init__(self, texts: Iterator[pa.Array]) -> None:
        self._texts = texts
        self.error: BaseException | None = None
        self.documents = self.bytes = self.bytes_taken = self.sentences = self.reserved_characters = 0

    def __iter__(self) -> Iterator[str]:
        """The library ignores an exception in its iterator and would train on what came before it: it is kept."""
        try:
            for array in self._texts:
                for batch in text_batches(array):
                    yield from self._of_batch(batch.to_pylist())
        except Exception as error:
            self.error = error

    def _of_batch(self, texts: list[str]) -> Iterator[str]:
        for text in texts:
            self.documents += 1
            self.bytes += len(text.encode())
            for sentence in cut(text):
                self.sentences += 1
                self.reserved_characters += sum(map(sentence.count, RESERVED))
                prepared = trainable(sentence)
                if len(prepared.encode()) <= SENTENCE_BYTES and RESERVED[1] not in prepared:
                    self.bytes_taken += len(sentence.encode())
                yield prepared


def cut(text: str) -> Iterator[str]:
    """Consecutive parts of at most SENTENCE_CHARACTERS characters, whose concatenation is the text."""
    start = 0
    while len(text) - start > SENTENCE_CHARACTERS:
        stop = cut_position(text, start, start + SENTENCE_CHARACTERS)
        yield text[start:stop]
        start = stop
    if start < len(text):
        yield text[start:]


def cut_position(text: str, start: int, limit: int) -> int:
    space = text.rfind(" ", start + 1, limit + 1)
    if space > start:
        before_run = start + len(text[start:space].rstrip(" "))
        if before_run > start:
            return before_run
    line_end = text.rfind("\n", start, limit - 1)
    return line_end + 1 if line_end >= start else limit


def trainable(sentence: str) -> str:
    sentence = OTHER_DIGIT.sub(rf"{BOUNDARY}\g<0>{BOUNDARY}", sentence.translate(RESERVED_TO_BOUNDARY))
    return sentence + BOUNDARY if sentence.endswith(("\n", "\r")) else sentence


def train_sentencepiece(config: TrainConfig, texts: Iterator[pa.Array], unicode: UnicodeForm) -> SentencePieceTokenizer:
    """Train on an iterator of string arrays, which is read once; the library holds the sample in memory.

    Raises InputError for an empty corpus, a vocabulary larger or smaller than the corpus allows (with the limit), and a
    `character_coverage` that the library does not take.
    """
    if config.character_coverage < SMALLEST_COVERAGE:
        raise InputError(
            f"`character_coverage` {config.character_coverage} is too small for SentencePiece: "
            f"raise it to {SMALLEST_COVERAGE} or more"
        )
    special_tokens = config.special_tokens.by_role()
    special_tokens.setdefault("unk", DEFAULT_UNK)
    if len(set(special_tokens.values())) < len(special_tokens):
        raise InputError(f"{DEFAULT_UNK!r} is SentencePiece's own unk: use another string or name it as `unk`")
    sentences = Sentences(texts)
    with tempfile.TemporaryDirectory() as folder:
        model = run_trainer(config, iter(sentences), special_tokens, normalization(unicode, Path(folder)), sentences)
    settings = {
        "vocab_size": config.vocab_size,
        "character_coverage": config.character_coverage,
        "tie_break": "sentencepiece",
    }
    training = {
        "documents": sentences.documents,
        "bytes": sentences.bytes,
        "bytes_dropped": sentences.bytes - sentences.bytes_taken,
        "sentences": sentences.sentences,
        "reserved_characters": sentences.reserved_characters,
    }
    metadata = Metadata(config.family, unicode, special_tokens, settings, training)
    return SentencePieceTokenizer(without_rule_path(model), metadata, "the trained tokenizer")


def normalization(unicode: UnicodeForm, folder: Path) -> dict[str, Any]:
    if unicode != "nfc":
        return {"normalization_rule_name": "identity" if unicode == "none" else "nfkc"}
    path = folder / "nfc.tsv"
    path.write_text(nfc_rules_tsv(), encoding="ascii")
    return {"normalization_rule_tsv": str(path)}


def run_trainer(
    config: TrainConfig,
    iterator: Iterator[str],
    special_tokens: dict[str, str],
    normalizer: dict[str, Any],
    sentences: Sentences,
) -> bytes:
    writer = io.BytesIO()
    failure = None
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iterator,
            model_writer=writer,
            model_type=config.family.removeprefix("sentencepiece_"),
            vocab_size=config.vocab_size,
            character_coverage=config.character_coverage,
            num_threads=THREADS,
            max_sentence_length=SENTENCE_BYTES,
            byte_fallback=True,
            split_digits=True,
            allow_whitespace_only_pieces=True,
            remove_extra_whitespaces=False,
            add_dummy_prefix=False,
            minloglevel=2,
            **normalizer,
            **control_symbols(special_tokens),
        )
    except (RuntimeError, OSError) as error:
        failure = str(error)
    if sentences.error is not None:
        raise sentences.error
    if sentences.bytes == 0:
        raise InputError("the training sample holds no text: check `train_on` and the train split of its corpora")
    if failure is not None:
        raise refusal(config.vocab_size, failure)
    return writer.getvalue()


def control_symbols(special_tokens: dict[str, str]) -> dict[str, Any]:
    """The roles as SentencePiece's own control symbols, which text never matches; eod is its eos."""
    names = {"eod": "eos", "pad": "pad", "bos": "bos", "unk": "unk"}
    ids = {role: place for place, role in enumerate(role for role in special_tokens if role in names)}
    settings: dict[str, Any] = {f"{name}_id": ids.get(role, -1) for role, name in names.items()}
    settings |= {f"{names[role]}_piece": special_tokens[role] for role in ids}
    others = [text for role, text in special_tokens.items() if role not in names]
    return settings | ({"control_symbols": others} if others else {})


def refusal(vocab_size: int | None, message: str) -> InputError:
    if found := TOO_LARGE.search(message):
        return InputError(
            f"`vocab_size` {vocab_size} is more than the training sample can give: lower it to {found[1]} or add text"
        )
    if found := TOO_SMALL.search(message):
        return InputError(
            f"`vocab_size` {vocab_size} is less than the characters of the training sample need: "
            f"raise it to {found[1]} or more, or lower `character_coverage`"
        )
    return InputError(f"SentencePiece refused the training: {message}")
