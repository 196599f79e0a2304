"""What a user writes of a corpus: where its documents are, how they are read, normalized and split."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field, model_validator

from tokpack_core.config.values import Bytes, Model, OnError, Owners, Seed, SourcePath, UnicodeForm

Split = Literal["train", "valid", "test"]


SPLITS: tuple[Split, ...] = ("train", "valid", "test")


class NormalizeConfig(Model):
    """What is done to every document, in this order. Everything but the unicode form is off unless told."""

    byte_order_marks: Literal["strip", "keep"] = "strip"
    """U+FEFF at the start of a document; one inside the text is always kept."""
    line_ends: Literal["keep", "lf"] = "keep"
    """`lf` turns CRLF and lone CR into LF."""
    control_characters: Literal["keep", "remove"] = "keep"
    """`remove` drops C0 and C1 controls and DEL, except tab, LF and CR."""
    trailing_whitespace: Literal["keep", "remove"] = "keep"
    """`remove` drops spaces and tabs before a line end and at the end of the document."""
    unicode: UnicodeForm = "nfc"
    """nfkc is lossy: full-width forms, ligatures and superscripts become plain ones."""


class SplitShares(Model):
    train: float = Field(default=1.0, ge=0)
    """What tokenizers and models are trained on."""
    valid: float = Field(default=0.0, ge=0)
    """For validation during training."""
    test: float = Field(default=0.0, ge=0)
    """Held out: what tokenizers are judged on."""

    @model_validator(mode="after")
    def shares_sum_to_one(self) -> SplitShares:
        if not math.isclose(self.train + self.valid + self.test, 1.0, abs_tol=1e-9):
            raise ValueError(f"the shares must sum to 1, not to {self.train + self.valid + self.test:g}")
        return self


class ReadConfig(Model):
    """How documents stand in files."""

    text_field: str = "text"
    """Column or key of the text."""
    content_field: str | None = None
    """JSON lines: key of a list of text and image blocks, which then stands in the place of the text."""
    id_field: str | None = None
    """Column or key of the id; without it the id is a hash of the normalized text."""
    lang_field: str | None = None
    """Column or key of the language."""
    metadata_fields: tuple[str, ...] = ()
    """Columns or keys kept as JSON beside each document."""
    txt_document: Literal["file", "line"] = "file"
    """What one document is in a `.txt` file."""
    on_error: OnError = "error"
    """What happens to a document that cannot be read; `replace` mends undecodable bytes only and is `error` else."""
    max_document_bytes: Bytes = 2**30
    """A longer document is a fault."""


class CorpusConfig(ReadConfig):
    paths: tuple[SourcePath, ...] = Field(min_length=1)
    """Files, folders and globs; relative ones start at the folder that contains the configuration folder."""
    lang: str | None = None
    """Language of documents that carry none of their own."""
    normalize: NormalizeConfig = NormalizeConfig()
    """What is done to every document."""
    parse_special_tokens: bool = False
    """Whether text that looks like a special token is one in the shards; else it is ordinary text."""
    splits: SplitShares = SplitShares(train=0.98, valid=0.01, test=0.01)
    """Shares of the splits; a document's split is drawn from the hash of its id."""
    split_seed: Seed = 0
    """Another seed gives other splits."""
    owners: Owners = ()
    """Who answers for it, shown in the UI: e-mail addresses, or teams as team:name."""
