"""Faster encoders in the place of Hugging Face's, for files that they understand and give the same ids for.

A tokenizer.json qualifies if its model is BPE over bytes without extras, its pretokenizer is ByteLevel behind steps
whose regexes have an automaton (see `pretokenizer_steps`), and its normalizer is none, NFC or NFKC. Before it is
used, its ids are compared with the library's on strings that are hard for either part; one difference, and the library
stays. Texts that hold an added token that is not special, which text matches, are encoded around it (see
`added_tokens`), or by the library. Texts that our normalizer changes are given to the library's, whose version of
Unicode is older. What is normalized by the newer version is left alone by the older one: to it, new marks are
characters that nothing combines with.

Where gigatoken loads the tokenizer and gives the ids of our encoder, it takes its place (see `gigatoken_engine`).

Loading and checking cost about half a second, so this waits until there is some text to encode.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
from tokenizers import Tokenizer as Engine
from tokenizers import models

from tokpack_core.allocator import give_back_freed_memory
from tokpack_core.bpe.collection_pause import without_collection
from tokpack_core.bpe.regex_syntax import Unsupported
from tokpack_core.tokenizers.added_tokens import AddedTokens, added_tokens
from tokpack_core.tokenizers.agreement.encoder_choice import EncoderChoice
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts, random_texts
from tokpack_core.tokenizers.byte_bpe.file_model import bpe_model, go_across_words, plain_byte_bpe, spelled_tokens
from tokpack_core.tokenizers.byte_bpe.pretokenizer_steps import pretokenizer_steps
from tokpack_core.tokenizers.encoded import Encode, Encoded, encode_apart, same_ids
from tokpack_core.tokenizers.encoding_errors import EncodingError
from tokpack_core.tokenizers.huggingface.tokenizer_json import description_and_model
from tokpack_core.tokenizers.library_texts import ForLibrary, Prepare, form_and_texts, normalized_by, unchanged

if TYPE_CHECKING:
    from tokpack_core.bpe.encoder import BpeModel, ByteBpeEncoder
    from tokpack_core.bpe.superword_encoder import SuperwordEncoder
    from tokpack_core.tokenizers.byte_bpe.gigatoken_engine import GigatokenEncoder

WORTH_LOADING = 2**19
"""Bytes of text that the library encodes before, in about as long as loading and checking take."""


@dataclass(frozen=True)
class ExactBpe:
    """Our encoder, which gave the library's ids on all hard texts, and the model and regexes that it is made from."""

    model: BpeModel
    splits: tuple[str, ...]
    encoder: ByteBpeEncoder
    by_library: Encode
    for_library: ForLibrary
    """Which texts the library must encode; None for none of them."""
    prepared: Prepare
    """Texts as the library's normalizer leaves them."""
    faster: GigatokenEncoder | None = None
    """What gave the ids of `encoder` on all texts that they were compared on, and takes its place."""
    warnings: tuple[str, ...] = ()
    """What was tried and gave other ids."""
    staged: SuperwordEncoder | None = None
    """The way to the same ids where tokens go across words; pretokens are then whole sentences."""
    added: AddedTokens | None = None
    """What encodes texts with added tokens, where the library need not."""
    split_otherwise: ForLibrary | None = None
    """Which of these the library must encode all the same."""

    @property
    def choice(self) -> EncoderChoice:
        return EncoderChoice("tokpack" if self.faster is None else "gigatoken", self.warnings)

    def encode(self, texts: pa.Array) -> Encoded:
        library = self.for_library(texts)
        encoder = self.faster or self.staged or self.encoder

        def encode(some: pa.Array) -> Encoded:
            return encoder.encode(self.prepared(some))

        def with_added(some: pa.Array) -> Encoded:
            if self.added is None:
                return self.by_library(some)
            otherwise = self.split_otherwise(some) if self.split_otherwise else None
            around = partial(self.added.encode, plain=encoder.encode)
            return encode_apart(some, [] if otherwise is None else [otherwise], self.by_library, around)

        return encode_apart(texts, [] if library is None else [library], with_added, encode)


class FastEngine:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._encode: Encode | None = None
        self._exact: ExactBpe | None = None
        self._tried = False
        self._seen = 0
        self._loading = threading.Lock()
        self.choice = EncoderChoice("tokenizers")

    @property
    def in_use(self) -> bool:
        return self._encode is not None

    def exact(self, by_library: Encode, across_words: bool = False) -> ExactBpe | None:
        """Our encoder of a byte-level BPE, loaded and checked now if it was not yet; None where it does not serve.

        It serves pretokens that come back, which those of a model with tokens across words do not: that is for who
        asks for it.
        """
        self._load(by_library)
        return None if self._exact is None or (self._exact.staged and not across_words) else self._exact

    def encode(self, texts: pa.Array, by_library: Encode) -> Encoded:
        """Ids by our encoder or, as long as it is not worth while or not equal, by the library."""
        if not self._tried:
            self._seen += texts.nbytes
            if self._seen > WORTH_LOADING:
                self._load(by_library)
        return by_library(texts) if self._encode is None else self._encode(texts)

    def _load(self, by_library: Encode) -> None:
        with self._loading:
            if not self._tried:
                with without_collection():
                    self._choose(by_library)
                give_back_freed_memory()
                self._tried = True

    def _choose(self, by_library: Encode) -> None:
        model = self._engine.model
        if isinstance(model, models.BPE) and model.byte_fallback:
            from tokpack_core.tokenizers.sentencepiece.stock_file_engine import StockFileEngine

            found = StockFileEngine(self._engine, by_library)
            self._encode, self.choice = found.encode, found.choose()
        elif isinstance(model, models.BPE):
            self._exact = equal_encoder(self._engine, by_library)
            if self._exact:
                self._encode, self.choice = self._exact.encode, self._exact.choice
        elif isinstance(model, models.WordPiece):
            from tokpack_core.tokenizers.wordpiece.engine import equal_wordpiece_encoder

            added = self._engine.get_added_tokens_decoder().values()
            texts = hard_texts([token.content for token in added])
            self._use(equal_wordpiece_encoder(self._engine, by_library, texts))
        elif isinstance(model, models.WordLevel):
            from tokpack_core.tokenizers.word_level_engine import equal_word_level_encoder

            self._use(equal_word_level_encoder(self._engine, by_library))
        elif isinstance(model, models.Unigram):
            from tokpack_core.tokenizers.minimum_cost.engine import equal_minimum_cost_encoder

            self._use(equal_minimum_cost_encoder(self._engine, by_library))

    def _use(self, encode: Encode | None) -> None:
        if encode is not None:
            self._encode, self.choice = encode, EncoderChoice("tokpack")


def equal_encoder(engine: Engine, by_library: Encode) -> ExactBpe | None:
    """An encoder that gives the library's ids on all hard texts, or None."""
    description, model = description_and_model(engine)
    steps = pretokenizer_steps(description["pre_tokenizer"])
    found = None if steps is None else form_and_texts(engine, description, steps.for_library)
    if steps is None or found is None:
        return None
    form, for_library = found
    prepared = normalized_by(engine, form)
    try:
        exact = encoder_of(orjson.loads(model), steps.patterns, by_library, for_library, prepared)
    except Unsupported:
        return None
    del model  # the largest part of a file, of which the encoder has what it needs
    listed = description["added_tokens"]
    normalize = engine.normalizer.normalize_str if engine.normalizer else None
    with_added = replace(exact, added=added_tokens(listed, normalize, prepared), split_otherwise=steps.for_library)
    contents_of_added = [token["content"] for token in listed]
    return if_equal(with_added, contents_of_added) or if_equal(exact, contents_of_added)


def encoder_of(
    model: dict[str, Any], splits: tuple[str, ...], by_library: Encode, for_library: ForLibrary, prepared: Prepare
) -> ExactBpe:
    """The encoder of a tokenizer.json's model, not compared with anything yet. Raises Unsupported for another model."""
    if not plain_byte_bpe(model):
        raise Unsupported("a model with more than merges of bytes")
    # These load kernels, which small texts have no use for.
    from tokpack_core.bpe.encoder import ByteBpeEncoder

    merges = bpe_model(model)
    encoder = ByteBpeEncoder(merges, splits)
    staged = None
    if go_across_words(model["vocab"]):
        from tokpack_core.bpe.superword_stages import staged_encoder

        staged = staged_encoder(merges, splits, {number: token for token, number in spelled_tokens(model["vocab"])})
    return ExactBpe(merges, splits, encoder, by_library, for_library, prepared, staged=staged)


def exact_rank_encoder(ranks: dict[bytes, int], splits: tuple[str, ...], by_library: Encode) -> ExactBpe | None:
    """The same for a rank file, whose merges are any two tokens that spell a third."""
    from tokpack_core.bpe.encoder import ByteBpeEncoder, from_ranks

    model = from_ranks(ranks)
    try:
        encoder = ByteBpeEncoder(model, splits)
    except Unsupported:
        return None
    return if_equal(ExactBpe(model, splits, encoder, by_library, lambda _: None, unchanged), [])


def if_equal(exact: ExactBpe, added: list[str]) -> ExactBpe | None:
    texts = pa.array(hard_texts(added), pa.string())
    try:
        same = same_ids(exact.encode(texts), exact.by_library(texts))
    except EncodingError:  # the library goes on where it can, and says where it cannot
        return None
    return with_faster(exact, texts) if same else None


def with_faster(exact: ExactBpe, texts: pa.Array) -> ExactBpe:
    """With gigatoken in the place of our encoder, if it can load the tokenizer and gives the same ids."""
    if exact.staged:
        return exact
    from tokpack_core.tokenizers.byte_bpe.gigatoken_engine import OTHER_IDS, GigatokenEncoder

    try:
        faster = GigatokenEncoder(exact.model, exact.splits, exact.encoder.encode)
    except Unsupported:
        return exact
    for compared in (texts, pa.array(random_texts(), pa.string())):
        if not same_ids(faster.encode(compared), exact.encoder.encode(compared)):
            return replace(exact, warnings=(OTHER_IDS,))
    return replace(exact, faster=faster)
