"""What a user writes: corpora, tokenizers and datasets as frozen models.

The models check types, values and the agreement between entries; `config_files` reads the YAML and turns what they
find into one sentence with file, line, key and the nearest right key.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

UnicodeForm = Literal["nfc", "nfkc", "none"]
Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")
OnError = Literal["error", "skip", "replace"]
Family = Literal["byte_bpe", "sentencepiece_bpe", "sentencepiece_unigram", "pretrained"]
Strategy = Literal["naive", "concat", "best_fit"]
Role = Literal["eod", "pad", "bos", "unk"]

BYTE_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
BYTE_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def parse_bytes(value: object) -> object:
    """`2GB`, `512 MiB` or a plain number of bytes, as an int; anything else is left for the type check to refuse."""
    if not isinstance(value, str):
        return value
    text = value.strip().upper()
    digits = text.rstrip("BKMGTI ")
    unit = text[len(digits) :].strip()
    try:
        return int(float(digits) * BYTE_UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        raise ValueError(f"{value!r} is not a size: write bytes as 2GB, 512MiB or 1000000") from None


Bytes = Annotated[int, BeforeValidator(parse_bytes), Field(ge=1)]


def check_shares(shares: dict[str, float]) -> dict[str, float]:
    bad = {name: share for name, share in shares.items() if not (math.isfinite(share) and share > 0)}
    if bad:
        raise ValueError(f"shares must be positive numbers, not {bad}")
    return shares


Shares = Annotated[dict[str, float], AfterValidator(check_shares), Field(min_length=1)]


class Model(BaseModel):
    """Unknown keys are errors, values keep their type, instances are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=False)


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


class SplitShares(Model):
    train: float = Field(default=1.0, ge=0)
    valid: float = Field(default=0.0, ge=0)
    test: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def shares_sum_to_one(self) -> SplitShares:
        if not math.isclose(self.train + self.valid + self.test, 1.0, abs_tol=1e-9):
            raise ValueError(f"the shares must sum to 1, not to {self.train + self.valid + self.test:g}")
        return self


class ReadConfig(Model):
    """How documents stand in files."""

    text_field: str = "text"
    id_field: str | None = None
    lang_field: str | None = None
    metadata_fields: tuple[str, ...] = ()
    txt_document: Literal["file", "line"] = "file"
    """What one document is in a `.txt` file."""
    on_error: OnError = "error"
    """What happens to a document that cannot be read; `replace` mends undecodable bytes only and is `error` else."""
    max_document_bytes: Bytes = 2**30


class CorpusConfig(ReadConfig):
    paths: tuple[str, ...] = Field(min_length=1)
    """Files, folders and globs; relative ones start at the folder that contains the configuration folder."""
    lang: str | None = None
    """Language of documents that carry none of their own."""
    normalize: NormalizeConfig = NormalizeConfig()
    splits: SplitShares = SplitShares(train=0.98, valid=0.01, test=0.01)
    split_seed: int = 0


class SpecialTokens(Model):
    """Strings by role. Text that looks like one of them is encoded as ordinary text."""

    eod: str | None = None
    pad: str | None = None
    bos: str | None = None
    unk: str | None = None

    @model_validator(mode="after")
    def strings_are_distinct(self) -> SpecialTokens:
        strings = list(self.by_role().values())
        if "" in strings or len(set(strings)) < len(strings):
            raise ValueError("special tokens must be distinct, non-empty strings")
        return self

    def by_role(self) -> dict[str, str]:
        return {role: text for role, text in self.model_dump().items() if text is not None}


class TokenizerChecks(Model):
    rare_below: int = Field(default=5, ge=1, le=1001)
    max_rare_token_share: float = Field(default=0.10, ge=0, le=1)
    min_vocabulary_utilization: float = Field(default=0.90, ge=0, le=1)


class TrainConfig(Model):
    """What shapes a trained tokenizer, apart from its training text."""

    family: Family
    vocab_size: int | None = Field(default=None, ge=1, le=2**31 - 1)
    special_tokens: SpecialTokens = SpecialTokens()
    pretokenizer: Literal["gpt2", "cl100k", "o200k"] = "cl100k"
    """byte_bpe: the published regex that splits text before merging."""
    min_frequency: int = Field(default=2, ge=1)
    """byte_bpe: a pair seen fewer times is not merged."""
    character_coverage: float = Field(default=0.9995, gt=0, le=1)
    """sentencepiece: share of characters that get a piece of their own; the rest falls back to bytes."""
    path: str | None = None
    """pretrained: tokenizer.json, x.model, x.tiktoken, or a folder with one of them."""

    @model_validator(mode="after")
    def family_has_what_it_needs(self) -> TrainConfig:
        if self.family == "pretrained":
            if self.path is None:
                raise ValueError("a pretrained tokenizer needs `path`: a tokenizer.json, .model or .tiktoken")
            if self.vocab_size is not None:
                raise ValueError("a pretrained tokenizer has the `vocab_size` of its file: remove the key")
        else:
            if self.vocab_size is None:
                raise ValueError(f"a {self.family} tokenizer needs `vocab_size`")
            if self.path is not None:
                raise ValueError("only a pretrained tokenizer takes `path`")
        return self


class TokenizerConfig(TrainConfig):
    train_on: Shares | None = None
    """Shares of the training sample by corpus. For `pretrained`: the sample on which it is judged."""
    sample_bytes: Bytes = 10**9
    seed: int = 0
    """Keys the choice of sample documents."""
    bos: bool = False
    """Whether each document starts with BOS in the shards; it always ends with EOD."""
    retrain: Literal["on_request", "auto"] = "on_request"
    """Whether changed training text is a reason to train again."""
    checks: TokenizerChecks = TokenizerChecks()

    @model_validator(mode="after")
    def has_training_text(self) -> TokenizerConfig:
        if self.train_on is None:
            raise ValueError("`train_on` names the corpora of its training sample (pretrained: of its report)")
        if self.family != "pretrained" and self.special_tokens.eod is None:
            raise ValueError('`special_tokens` needs `eod`, which ends every document: {eod: "<|endoftext|>"}')
        if self.bos and self.special_tokens.bos is None:
            raise ValueError("`bos: true` needs the token in `special_tokens`: {bos: ...}")
        return self


class PackingConfig(Model):
    strategy: Strategy = "best_fit"
    sequence_length: int = Field(ge=1, le=2**31 - 1)


class DatasetChecks(Model):
    min_packing_utilization: float = Field(default=0.95, ge=0, le=1)


class DatasetConfig(Model):
    tokenizer: str
    mixture: Shares
    """Epochs of each corpus, given to the trainer as blend weights."""
    packing: PackingConfig
    seed: int = 0
    """Keys the order of packs."""
    checks: DatasetChecks = DatasetChecks()


@dataclass(frozen=True)
class Project:
    """All that is configured; relative corpus and tokenizer paths start at `base`."""

    base: Path
    corpora: dict[str, CorpusConfig]
    tokenizers: dict[str, TokenizerConfig]
    datasets: dict[str, DatasetConfig]

    def encoded_pairs(self) -> list[tuple[str, str]]:
        """The (tokenizer, corpus) pairs that some dataset uses, sorted."""
        return sorted({(d.tokenizer, corpus) for d in self.datasets.values() for corpus in d.mixture})

    def training_corpora(self, tokenizer: str) -> dict[str, float]:
        """Shares of the training sample by corpus, summing to 1."""
        shares = self.tokenizers[tokenizer].train_on or {}
        total = sum(shares.values())
        return {corpus: share / total for corpus, share in sorted(shares.items())}

    def unicode_form(self, tokenizer: str) -> UnicodeForm:
        """The form that all corpora of a tokenizer's training sample share."""
        return self.corpora[next(iter(self.training_corpora(tokenizer)))].normalize.unicode
