"""The engine for every `tokenizer.json`: Hugging Face tokenizers, set to treat all text as ordinary text.

On load, truncation, padding and BPE dropout inside the file are switched off, since they would change the ids of text,
and special tokens in text are read as text (`encode_special_tokens`). Added tokens that the file does not mark as
special belong to its vocabulary and match as they do in the reference.

Saved: `tokenizer.json` and `tokenizer_config.json`; the folder opens in `transformers.AutoTokenizer`. A byte-level BPE
that we trained has `merges.parquet` beside them: every merge in its order and how often its pair occurred.

Byte-level BPE is encoded by our own encoder once there is enough text to pay for it (see `byte_bpe_engine`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tokenizers import Tokenizer as Engine
from tokenizers import decoders, models

from tokpack_core.allocator import give_back_freed_memory
from tokpack_core.config import REGEX, UnicodeForm
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.added_tokens import SPECIAL, Search
from tokpack_core.tokenizers.agreement.encoder_choice import EncoderChoice
from tokpack_core.tokenizers.byte_bpe.engine import ExactBpe, FastEngine
from tokpack_core.tokenizers.byteification.token_bytes import ByteDecoder, unknown_id
from tokpack_core.tokenizers.encoded import Encoded, common_beginnings, concatenate, encode_apart, from_lists
from tokpack_core.tokenizers.encoding_errors import lists_or_error
from tokpack_core.tokenizers.huggingface import gpt2_files
from tokpack_core.tokenizers.huggingface.cut_places import cut_place
from tokpack_core.tokenizers.huggingface.listed_tokens import add_listed
from tokpack_core.tokenizers.huggingface.special_ids import may_have_role, special_id
from tokpack_core.tokenizers.huggingface.tokenizer_json import description_of, steps_before_model
from tokpack_core.tokenizers.huggingface.vocabulary import vocabulary_of
from tokpack_core.tokenizers.long_documents import PLACES, UNCHECKED, encode_bounded, require_memory
from tokpack_core.tokenizers.metadata import Metadata, write_metadata
from tokpack_core.tokenizers.text_batches import text_batches
from tokpack_core.tokenizers.unicode_forms import form_applied

FILE_NAME = "tokenizer.json"
FIRST = b'"prepend_scheme":"first"'
"""In a file: what a text begins with is not what follows a special token begins with."""
MERGES_FILE_NAME = "merges.parquet"
MERGES_SCHEMA = pa.schema([("left", pa.int32()), ("right", pa.int32()), ("token", pa.int32()), ("count", pa.int64())])
"""Ids of the two tokens, of what they merge into, and occurrences of the pair when it was merged."""


class HuggingFaceTokenizer:
    """A tokenizer.json as a Tokenizer (see protocol)."""

    def __init__(self, engine: Engine, metadata: Metadata, source: str, merges: pa.Table | None = None) -> None:
        """`source` names the tokenizer in errors. Special tokens that the vocabulary lacks are appended to it."""
        engine.encode_special_tokens = True
        self._source = source
        self._engine = engine
        self._matching: Engine | None = None
        self._merges = merges
        self._fast = FastEngine(engine)
        self._metadata = metadata
        self.family = metadata.family
        self.training: Mapping[str, Any] = metadata.training
        self.special_tokens = {
            role: special_id(engine, role, text, source) for role, text in metadata.special_tokens.items()
        }
        self.unicode: UnicodeForm = form_applied(engine.normalizer.normalize_str) if engine.normalizer else "none"
        self._byte_level = isinstance(engine.decoder, decoders.ByteLevel)
        prefix: str = getattr(engine.model, "continuing_subword_prefix", None) or ""
        self._vocabulary = vocabulary_of(engine, self._byte_level, prefix)
        give_back_freed_memory()
        self.vocab_size = int(self._vocabulary["id"][-1].as_py()) + 1
        self._byte_decoder = ByteDecoder(self._vocabulary, self.vocab_size) if self._byte_level else None

    def encode(self, texts: pa.Array) -> Encoded:
        return self._fast.encode(texts, self._encode_by_library)

    @property
    def encoder(self) -> EncoderChoice:
        return self._fast.choice.also(self._metadata.warnings)

    def exact_bpe(self, across_words: bool = False) -> ExactBpe | None:
        """The merges and regexes of a byte-level BPE that our own encoder follows exactly; None for all else.

        across_words: also of one with tokens across words, of which pretokens are pieces of text of any length.
        """
        return self._fast.exact(self._encode_by_library, across_words)

    def parts(self) -> tuple[dict[str, Any], Metadata, pa.Table | None]:
        """What the tokenizer is made of: its file's content, what that does not say, its trainer's merges."""
        return description_of(self._engine), self._metadata, self._merges

    def pretokenizer(self) -> dict[str, Any] | None:
        """As the file describes it."""
        own = self._engine.pre_tokenizer
        return None if own is None else json.loads(own.__getstate__())

    def with_merges(self, merges: pa.Table | None) -> HuggingFaceTokenizer:
        """The same tokenizer with a table of merges, of MERGES_SCHEMA."""
        return HuggingFaceTokenizer(self._engine, self._metadata, "the tokenizer", merges)

    def _encode_by_library(self, texts: pa.Array) -> Encoded:
        def encode_batch(batch: pa.Array) -> Encoded:
            return from_lists(lists_or_error(partial(ids_of, self._engine), batch.to_pylist()))

        return encode_bounded(encode_batch, texts, self._places)

    @cached_property
    def _places(self) -> str | re.Pattern[str] | None:
        """Where long texts may be cut, as `encode_bounded` takes it."""
        # A regex of one's own may join what the published ones part.
        own_regex = self._metadata.settings.get("pretokenizer", "").startswith(REGEX)
        if self.family in PLACES and not own_regex:
            return self.family
        return cut_place(self._engine, steps_before_model(self._engine))

    def encode_with_special_tokens(self, texts: pa.Array) -> Encoded:
        """As `encode`, but special tokens in text are matched as the library matches them."""
        added = [token for token in self._engine.get_added_tokens_decoder().values() if token.special]
        if self._engine.normalizer is not None and any(token.normalized for token in added):
            return self._match_special_tokens(texts)
        stems = common_beginnings(token.content for token in added)
        masks = [pc.match_substring(texts, stem).to_numpy(zero_copy_only=False) for stem in stems]
        return encode_apart(texts, masks, self._match_special_tokens, self.encode)

    def _match_special_tokens(self, texts: pa.Array) -> Encoded:
        if self._matching is None:
            self._matching = Engine.from_str(self._engine.to_str())
            self._matching.encode_special_tokens = False
        matching = self._matching

        def encode_batch(batch: pa.Array) -> Encoded:
            if self._special is not None and len(batch) == 1 and batch.nbytes > UNCHECKED:
                return self._special.around(batch, self.encode)
            require_memory(batch)
            return from_lists(lists_or_error(partial(ids_of, matching), batch.to_pylist()))

        return concatenate(map(encode_batch, text_batches(texts)))

    @cached_property
    def _special(self) -> Search | None:
        """What finds special tokens in long texts; None where the library must."""
        listed = self._engine.get_added_tokens_decoder()
        special = [token for token in listed.values() if token.special]
        if any(token.lstrip or token.rstrip or token.single_word or token.normalized for token in special):
            return None
        if FIRST in self._engine.__getstate__():
            return None
        as_they_are = {
            token.content.encode(): (key if token.special else SPECIAL)
            for key, token in listed.items()
            if not token.normalized
        }
        return Search(as_they_are)

    def added_around(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Ids that the file's post-processor puts before and after every text, such as BOS and EOS.

        Raises:
            InputError: what it puts there depends on the text.
        """
        around = {split_around(self._engine, text) for text in ("a", "Some text,\n 123", "\u4e2d\u6587")}
        if len(around) > 1 or None in around:
            raise InputError(
                f"{self._source}: its post-processor does more than put tokens around a text: leave out "
                "--add-special-tokens"
            )
        return around.pop() or ((), ())

    def decode(self, encoded: Encoded) -> pa.Array:
        if self._byte_decoder is not None:
            return self._byte_decoder.decode(encoded)
        if encoded.ids.size and (encoded.ids.min() < 0 or encoded.ids.max() >= self.vocab_size):
            raise unknown_id(encoded.ids, self.vocab_size)
        ids = [part.tolist() for part in split_documents(encoded)]
        return pa.array(self._engine.decode_batch(ids, skip_special_tokens=False), pa.string())

    def vocabulary(self) -> pa.Table:
        return self._vocabulary

    @property
    def byte_level(self) -> bool:
        """Whether its tokens are written in the byte-level alphabet."""
        return self._byte_level

    @property
    def metadata(self) -> Metadata:
        return self._metadata

    def as_json(self) -> str:
        """The tokenizer.json."""
        return self._engine.to_str()

    def save(self, folder: Path) -> None:
        (folder / FILE_NAME).write_text(self._engine.to_str(pretty=True) + "\n", encoding="utf-8")
        if self._merges is not None:
            pq.write_table(self._merges, folder / MERGES_FILE_NAME, compression="zstd")
        write_metadata(folder, self._metadata, self.special_tokens, tokenizer_class="PreTrainedTokenizerFast")


def load_huggingface(path: Path, metadata: Metadata, published: Mapping[str, str] | None) -> HuggingFaceTokenizer:
    """Open a tokenizer.json of any model type, or GPT-2's vocab.json and merges.txt.

    `published`: role → string as the file's publisher names them; those but the EOD that ordinary text gives are left
    out. What is listed beside a published file is added (see `listed_tokens`); None for a folder that we saved.
    Raises InputError if the library cannot read the file.
    """
    try:
        of_gpt2 = gpt2_files.is_vocabulary(path)
        engine = gpt2_files.read_gpt2_files(path) if of_gpt2 else Engine.from_buffer(path.read_bytes())
        give_back_freed_memory()
        engine.no_truncation()
        engine.no_padding()
        if isinstance(engine.model, models.BPE):
            engine.model.dropout = None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except InputError:
        raise
    except Exception as error:  # the library raises plain Exception for a file that it cannot parse
        if is_tekken(path):
            raise InputError(f"{path} is a tekken.json: give the tokenizer.json that is published with it") from None
        raise InputError(f"{path} is not a tokenizer.json that Hugging Face tokenizers reads: {error}") from None
    if not engine.get_vocab_size():
        raise InputError(f"{path} has an empty vocabulary: give the tokenizer.json of a trained tokenizer")
    engine.encode_special_tokens = True
    if published is not None:
        metadata = replace(metadata, warnings=add_listed(engine, path.parent))
    named = {"eod": gpt2_files.EOD} if of_gpt2 else {}
    named |= dict(published or {})
    roles = {role: text for role, text in named.items() if may_have_role(engine, role, text, str(path))}
    roles |= dict(metadata.special_tokens)
    merges_file = path.with_name(MERGES_FILE_NAME)
    merges = read_merges(merges_file) if merges_file.is_file() else None
    return HuggingFaceTokenizer(engine, replace(metadata, special_tokens=roles), str(path), merges)


def is_tekken(path: Path) -> bool:
    """Whether it is Mistral's own format: ranks in base64 and a `config` that holds the regex."""
    try:
        content = json.loads(path.read_bytes())
        return "token_bytes" in content["vocab"][0] and "pattern" in content["config"]
    except (ValueError, KeyError, TypeError, IndexError):
        return False


def ids_of(engine: Engine, texts: list[str]) -> list[list[int]]:
    return [encoding.ids for encoding in engine.encode_batch_fast(texts, add_special_tokens=False)]


def read_merges(path: Path) -> pa.Table:
    with pq.ParquetFile(path) as file:
        return file.read().cast(MERGES_SCHEMA)


def split_around(engine: Engine, text: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """What the post-processor adds before and after the ids of a text, if that is also all that an empty one has."""
    plain = engine.encode(text, add_special_tokens=False).ids
    whole, nothing = engine.encode(text).ids, engine.encode("").ids
    for start in range(len(whole) - len(plain) + 1):
        before, after = whole[:start], whole[start + len(plain) :]
        if whole[start : start + len(plain)] == plain and before + after == nothing:
            return tuple(before), tuple(after)
    return None


def split_documents(encoded: Encoded) -> list[Any]:
    return [encoded.ids[start:stop] for start, stop in pairwise(encoded.offsets)]
