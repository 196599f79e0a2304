"""Byte-level BPE (Sennrich et al. 2016; Radford et al. 2019), trained by Hugging Face tokenizers.

Text is normalized, split by a published regex, written as bytes, and the most frequent neighbouring pair is merged
until the vocabulary is full. Ties: the higher count, then the smaller pair of ids (`tie_break: hugging_face`), so
the merges depend neither on the order of documents nor on the number of threads.

Ids: special tokens first, in the order eod, pad, bos, unk (those that are configured), so that they do not move
with the vocabulary size; then the 256 bytes; then the merges in order. A corpus that has fewer pairs of
`min_frequency` than asked for gives a smaller tokenizer, and its `vocab_size` says so.

Documents are fed whole, so that merges may hold line ends. The library counts pairs in 32 bits: more text than that
can count is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import regex
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Engine
from tokenizers.trainers import BpeTrainer

from tokpack_core.config import TrainConfig, UnicodeForm
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.huggingface import HuggingFaceTokenizer
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.pretokenizers import PRETOKENIZERS
from tokpack_core.tokenizers.text_batches import text_batches
from tokpack_core.tokenizers.token_bytes import byte_level_bytes

LARGEST_SAMPLE = 2**31 - 1


class TrainingText:
    """Hands the sample to the library in batches and counts it on the way."""

    def __init__(self, texts: Iterator[pa.Array]) -> None:
        self._texts = texts
        self.documents = 0
        self.bytes = 0

    def batches(self) -> Iterator[list[str]]:
        for array in self._texts:
            for batch in text_batches(array):
                texts = batch.to_pylist()
                self.documents += len(texts)
                self.bytes += sum(len(text.encode()) for text in texts)
                if self.bytes > LARGEST_SAMPLE:
                    raise InputError(
                        f"the training sample exceeds {LARGEST_SAMPLE} bytes, beyond which the trainer's 32-bit counts "
                        "can overflow: lower `sample_bytes`"
                    )
                yield texts


def train_byte_bpe(config: TrainConfig, texts: Iterator[pa.Array], unicode: UnicodeForm) -> HuggingFaceTokenizer:
    """Train on an iterator of string arrays, which is read once.

    Raises InputError for an empty corpus, a vocabulary too small for the 256 bytes and the special tokens, and a
    special token that ordinary text could become.
    """
    special_tokens = config.special_tokens.by_role()
    smallest = 256 + len(special_tokens)
    if config.vocab_size is None or config.vocab_size < smallest:
        raise InputError(
            f"`vocab_size` {config.vocab_size} is too small: 256 bytes and {len(special_tokens)} special tokens "
            f"need {smallest}"
        )
    pattern = PRETOKENIZERS[config.pretokenizer]
    for role, text in special_tokens.items():
        refuse_learnable(role, text, pattern)
    engine = untrained(pattern, unicode)
    trainer = BpeTrainer(
        vocab_size=config.vocab_size,
        min_frequency=config.min_frequency,
        special_tokens=[AddedToken(text, special=True, normalized=False) for text in special_tokens.values()],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    sample = TrainingText(texts)
    engine.train_from_iterator(sample.batches(), trainer)
    if sample.bytes == 0:
        raise InputError("the training sample holds no text: check `train_on` and the train split of its corpora")
    settings = {
        "vocab_size": config.vocab_size,
        "pretokenizer": config.pretokenizer,
        "min_frequency": config.min_frequency,
        "tie_break": "hugging_face",
    }
    training = {"documents": sample.documents, "bytes": sample.bytes, "bytes_dropped": 0}
    return HuggingFaceTokenizer(
        engine, Metadata("byte_bpe", unicode, special_tokens, settings, training), "the trained tokenizer"
    )


def untrained(pattern: str, unicode: UnicodeForm) -> Engine:
    engine = Engine(models.BPE())
    if unicode != "none":
        engine.normalizer = normalizers.NFC() if unicode == "nfc" else normalizers.NFKC()
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    engine.decoder = decoders.ByteLevel()
    return engine


def refuse_learnable(role: str, text: str, pattern: str) -> None:
    """A special token that is one pretoken could be merged from text, and text would then give its id."""
    content = byte_level_bytes(text)
    if content is not None and regex.fullmatch(pattern, content.decode("utf-8", "replace")):
        raise InputError(
            f"special token {text!r} ({role}) could be learned as an ordinary word: "
            'choose a string that the pretokenizer splits, such as "<|endoftext|>"'
        )
