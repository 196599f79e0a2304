"""What is done to each document besides encoding it, and the encoder that does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tokpack_core.commands.opened_tokenizer import OpenedTokenizer
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

    def encode(self, batch: pa.RecordBatch) -> Encoded:
        """`batch`: the columns `text` and `lang`."""
        one: EncodeBy = encode_with_special_tokens if self._options.parse_special_tokens else encode_plain
        if self._languages is None:
            encoded = one(self._tokenizer, batch["text"])
        else:
            encoded = self._languages.encode(batch["text"], batch["lang"], one)
        if self._around is not None:
            encoded = surrounded(encoded, *self._around)
        if self.eod is not None:
            encoded = framed(encoded, encoded.lengths > 0, None, self.eod)
        return encoded
