"""What is done to each document besides encoding it, and the encoder that does it.

As in Megatron's preprocess_data (`Encoder.encode`), a document is a string or a list of them. Each string is encoded by
itself to one sequence, those without tokens are left out, and EOD ends the last one of a document that has any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.commands.opened_tokenizer import OpenedTokenizer
from tokpack_core.corpus.sentences import sentences_of
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.agreement.special_tokens_in_text import encode_with_special_tokens
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.framing import framed, surrounded
from tokpack_core.tokenizers.modular.sub_tokenizers import EncodeBy, SubTokenizers, encode_plain


@dataclass(frozen=True)
class EncodeOptions:
    """What is done besides encoding.

    Attributes:
        append_eod: each document that has a token ends in EOD.
        json_keys: fields to encode; none: the one that `Reading` names, to PREFIX itself.
        add_special_tokens: the tokenizer's own post-processor puts its tokens around each document.
        parse_special_tokens: text that looks like a special token is one.
        by_language: each document has the ids of its language's sub-tokenizer, if the tokenizer has one.
        workers: threads that encode.
        resume: what is done is kept when the run is stopped, and a run that was stopped goes on.
    """

    append_eod: bool = False
    json_keys: tuple[str, ...] = ()
    add_special_tokens: bool = False
    parse_special_tokens: bool = False
    workers: int = 1
    resume: bool = False
    by_language: bool = False

    def require_plain(self) -> None:
        """Raises InputError for an option that documents with images do not have."""
        chosen = {
            "--json-keys": self.json_keys,
            "--add-special-tokens": self.add_special_tokens,
            "--parse-special-tokens": self.parse_special_tokens,
            "--resume": self.resume,
            "--by-language": self.by_language,
        }
        for name, value in chosen.items():
            if value:
                raise InputError(f"{name} is for documents of text: leave it out, or --vision")

    def parameters(self) -> dict[str, Any]:
        """What shapes the output."""
        names = ("add_special_tokens", "parse_special_tokens", "by_language")
        chosen = {name: getattr(self, name) for name in names}
        given = {name: True for name, on in chosen.items() if on}
        return {"append_eod": self.append_eod} | given | ({"json_keys": self.json_keys} if self.json_keys else {})


@dataclass(frozen=True)
class Sequences:
    """Documents of sequences."""

    encoded: Encoded
    """The sequences one after the other; none is empty."""
    edges: npt.NDArray[np.int64]
    """[documents + 1]: how many sequences stand before each document"""
    by_whole: int = 0
    """Documents whose language has no sub-tokenizer, where each is to be encoded by its own."""

    @property
    def documents(self) -> int:
        return self.edges.size - 1


def by_document(found: Sequences) -> Encoded:
    """The same ids, told apart by document."""
    return Encoded(found.encoded.ids, found.encoded.offsets[found.edges])


class Encoder:
    """Encodes texts and puts around them what the options ask for; usable in several threads."""

    def __init__(self, opened: OpenedTokenizer, options: EncodeOptions) -> None:
        """Raises InputError when the tokenizer has not what the options ask for."""
        self._tokenizer = opened.tokenizer
        self._options = options
        self.vocab_size = opened.tokenizer.vocab_size
        missing = "say which one it is with --eod, or leave out --append-eod"
        self.eod = opened.require_eod(missing) if options.append_eod else None
        self._around = opened.added_around() if options.add_special_tokens else None
        self._languages = SubTokenizers(opened.tokenizer) if options.by_language else None

    def encode(self, batch: pa.RecordBatch) -> Sequences:
        """`batch`: the columns `text` (strings, or lists of strings) and `lang`."""
        texts, edges = sentences_of(batch["text"])
        by_whole = 0
        one: EncodeBy = encode_with_special_tokens if self._options.parse_special_tokens else encode_plain
        if self._languages is None:
            encoded = one(self._tokenizer, texts)
        else:
            by_whole = len(batch) - self._languages.having_one(batch["lang"])
            languages = batch["lang"].take(pa.array(np.repeat(np.arange(len(batch)), np.diff(edges))))
            encoded = self._languages.encode(texts, languages, one)
        if self._around is not None:
            encoded = surrounded(encoded, *self._around)
        filled = encoded.lengths > 0
        encoded = Encoded(encoded.ids, encoded.offsets[np.concatenate([[True], filled])])
        edges = np.concatenate([[0], np.cumsum(filled)])[edges]
        if self.eod is not None:
            last = np.zeros(encoded.documents, np.bool_)
            last[edges[1:][np.diff(edges) > 0] - 1] = True
            encoded = framed(encoded, last, None, self.eod)
        return Sequences(encoded, edges, by_whole)
