"""What a user writes: corpora, tokenizers and datasets as frozen models.

The models check types, values and the agreement between entries; `config_files` reads the YAML and turns what they
find into one sentence with file, line, key and the nearest right key.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import available_timezones

from croniter import croniter
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from tokpack_core.vision_config import VisionConfig

UnicodeForm = Literal["nfc", "nfkc", "none"]
Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")
OnError = Literal["error", "skip", "replace"]
Family = Literal[
    "byte_bpe",
    "sentencepiece_bpe",
    "sentencepiece_unigram",
    "wordpiece",
    "character",
    "word",
    "superbpe",
    "boundless_bpe",
    "pretrained",
]
Strategy = Literal["naive", "concat", "best_fit", "first_fit_decreasing", "first_fit"]
LongDocuments = Literal["chunk", "drop", "error"]
ShortChunks = Literal["balance", "drop"]
LargeImages = Literal["error", "drop"]
ImageAttentionName = Literal["causal", "isolate_images", "isolate_modalities"]
Role = Literal["eod", "pad", "bos", "unk", "image"]
Digits = Literal["free", "single", "groups_left", "groups_right"]
TieBreak = Literal["hugging_face", "lexicographic_greatest", "lexicographic_smallest"]
Alphabet = Literal["all_bytes", "seen_bytes"]
TokenizerGate = Literal["rare_token_share", "vocabulary_utilization", "unreachable_tokens", "round_trip", "fairness"]
PRETOKENIZERS = ("gpt2", "cl100k", "o200k", "superbpe", "qwen2", "llama3", "deepseek_v3")
REGEX = "regex:"
"""Begins a pretokenizer that is a regular expression of one's own."""

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


WrittenBytes = int | Annotated[str, Field(pattern=r"^\s*[0-9.]+ *([KMGT]i?)?B?\s*$", examples=["2GB", "512MiB"])]
"""What an editor lets a size be; `parse_bytes` judges it."""
Bytes = Annotated[int, BeforeValidator(parse_bytes, json_schema_input_type=WrittenBytes), Field(ge=1, lt=2**63)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
SourcePath = Annotated[str, Field(min_length=1)]


def check_shares(shares: dict[str, float]) -> dict[str, float]:
    bad = {name: share for name, share in shares.items() if not (math.isfinite(share) and share > 0)}
    if bad:
        raise ValueError(f"shares must be positive numbers, not {bad}")
    return shares


def check_owner(owner: str) -> str:
    if not OWNER.fullmatch(owner):
        raise ValueError(f"{owner!r} is no owner: write an e-mail address, or team:name")
    return owner


OWNER = re.compile(r"team:[A-Za-z0-9_]+|[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}")
Owners = tuple[Annotated[str, AfterValidator(check_owner)], ...]

Shares = Annotated[dict[str, float], AfterValidator(check_shares), Field(min_length=1)]


class Model(BaseModel):
    """Unknown keys are errors, values keep their type, instances are frozen."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=False, allow_inf_nan=False, use_attribute_docstrings=True
    )


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


def check_pretokenizer(pretokenizer: str) -> str:
    if not pretokenizer.startswith(REGEX):
        if pretokenizer in PRETOKENIZERS:
            return pretokenizer
        near = get_close_matches(pretokenizer, PRETOKENIZERS, 1)
        raise ValueError(
            f"there is no pretokenizer {pretokenizer!r}{f'; did you mean {near[0]!r}?' if near else ''} "
            f"Known are {', '.join(PRETOKENIZERS)} and {REGEX}PATTERN"
        )
    import regex

    try:
        compiled = regex.compile(pretokenizer.removeprefix(REGEX))
    except regex.error as error:
        raise ValueError(f"the pretokenizer {pretokenizer!r} is no regular expression ({error}): correct it") from None
    if compiled.fullmatch(""):
        raise ValueError(
            f"the pretokenizer {pretokenizer!r} matches the empty string: let it match a character or more"
        )
    return pretokenizer


Pretokenizer = Annotated[str, AfterValidator(check_pretokenizer)]


class SpecialTokens(Model):
    """Strings by role. Text that looks like one of them is encoded as ordinary text."""

    eod: str | None = None
    """Ends every document."""
    pad: str | None = None
    """Reserved for padding by trainers."""
    bos: str | None = None
    """Begins every document where `bos: true` says so."""
    unk: str | None = None
    """What stands for text that the vocabulary lacks."""
    image: str | None = None
    """Stands at every position of an image."""

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
    """An entry seen fewer times in the training sample is rare."""
    max_rare_token_share: float = Field(default=0.10, ge=0, le=1)
    """Most rare entries, never seen ones included, as a share of all without special tokens."""
    min_vocabulary_utilization: float = Field(default=0.90, ge=0, le=1)
    """Fewest entries seen at least once, as a share of all without special tokens."""
    warn: tuple[TokenizerGate, ...] = ()
    """Checks that warn where they would stop what is downstream."""
    pits: Literal["warn", "block"] = "warn"
    """Whether a common fault (digits in long runs, lost indentation, missing Hanzi, …) stops what is downstream."""
    max_unreachable_share: float = Field(default=0.05, ge=0, le=1)
    """Most entries that no text gives, as a share of all without special tokens."""
    max_premium: float | None = Field(default=None, ge=1)
    """Most tokens of any language over English on the same sentences; needs `parallel`."""


TAKEN_BY: dict[str, tuple[Family, ...]] = {
    "pretokenizer": ("byte_bpe", "word", "superbpe", "boundless_bpe", "pretrained"),
    "digits": ("byte_bpe", "word", "superbpe", "boundless_bpe"),
    "min_frequency": ("byte_bpe", "wordpiece", "character", "word", "superbpe", "boundless_bpe"),
    "tie_break": ("byte_bpe", "superbpe", "boundless_bpe"),
    "max_token_length": ("byte_bpe",),
    "max_pretoken_bytes": ("byte_bpe",),
    "alphabet": ("byte_bpe",),
    "delete_threshold": ("byte_bpe",),
    "character_coverage": ("sentencepiece_bpe", "sentencepiece_unigram", "wordpiece"),
    "required_characters": ("sentencepiece_bpe", "sentencepiece_unigram"),
    "wordpiece_criterion": ("wordpiece",),
    "seed_vocabulary": ("sentencepiece_unigram",),
    "path": ("pretrained",),
    **dict.fromkeys(("mergeable", "script_aware", "tie_winner", "max_words", "export"), ("boundless_bpe", "superbpe")),
    **dict.fromkeys(("transition_size", "joins"), ("superbpe",)),
}
"""The families that use an option; in any other it is an error."""


class SuperwordOptions(Model):
    """What shapes tokens that go across words."""

    mergeable: str = Field(default=r"\p{L}", min_length=1)
    """boundless_bpe, superbpe: a word that holds a match of this regex may be part of a superword."""
    script_aware: bool = False
    """boundless_bpe, superbpe: in Chinese, Japanese, Thai, Khmer, Lao and Burmese a word is one letter, so that their
    words arise as superwords."""
    tie_winner: Literal["word", "superword"] = "word"
    """boundless_bpe, superbpe: which of a word merge and a supermerge of equal counts comes first."""
    max_words: int | None = Field(default=None, ge=1)
    """boundless_bpe, superbpe: most parts between spaces in a superword; by default 4 for superbpe, else any number."""
    transition_size: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    """superbpe: vocabulary of the first stage, special tokens included; `auto`: with as many words as boundless_bpe."""
    joins: Literal["pieces", "words"] = "pieces"
    """superbpe: what joins in the second stage: any tokens of a piece of text, or whole words as in boundless_bpe."""
    export: Literal["exact", "hf"] = "exact"
    """boundless_bpe, superbpe of words: our own file, or a stock tokenizer.json that is not quite the same."""

    @model_validator(mode="before")
    @classmethod
    def superbpe_has_its_own_pretokenizer(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("family") == "superbpe":
            return {"pretokenizer": "superbpe"} | values
        return values


class TrainConfig(SuperwordOptions):
    """What shapes a trained tokenizer, apart from its training text."""

    family: Family
    """Kind of tokenizer."""
    vocab_size: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """Entries, special tokens included; not for `pretrained`."""
    special_tokens: SpecialTokens = SpecialTokens()
    """Strings of the special tokens."""
    pretokenizer: Pretokenizer = "cl100k"
    """byte_bpe, word, superbpe, boundless_bpe: the published regex that splits text, by name, or `regex:PATTERN`, for
    superbpe its own by default; pretrained: that of a bare rank file."""
    digits: Digits | None = None
    """byte_bpe, word, superbpe, boundless_bpe: how runs of digits are split: not at all, one by one, in threes from the
    left or from the right; the default is what the pretokenizer's regex does."""
    min_frequency: int = Field(default=2, ge=1, lt=2**63)
    """byte_bpe, wordpiece, superbpe, boundless_bpe: a pair seen fewer times is not merged; character, word: a rarer one
    gets no entry."""
    tie_break: TieBreak = "hugging_face"
    """byte_bpe, superbpe, boundless_bpe: which of the most frequent pairs is merged: the smallest pair of ids, or the
    greatest or smallest pair of byte strings."""
    max_token_length: int | None = Field(default=None, ge=2)
    """byte_bpe: a merged token has fewer bytes than this, as in Hugging Face's trainer."""
    max_pretoken_bytes: int | None = Field(default=None, ge=1)
    """byte_bpe: longer pretokens are not trained on, and counted."""
    alphabet: Alphabet = "all_bytes"
    """byte_bpe: `seen_bytes` gives an id only to bytes that the training text holds; others become `unk`."""
    delete_threshold: float | None = Field(default=None, gt=0.5, le=1)
    """byte_bpe: after a merge, one of its two tokens is deleted if at least this share of its occurrences went into it
    (PickyBPE: 0.6 to 0.9)."""
    character_coverage: float = Field(default=0.9995, gt=0, le=1)
    """sentencepiece, wordpiece: share of characters that get a piece of their own; the rest becomes bytes or unk."""
    required_characters: Literal["gb2312_level_1"] | None = None
    """sentencepiece: characters that get a piece however rare they are: the 3,755 common Hanzi."""
    wordpiece_criterion: Literal["likelihood", "frequency"] = "frequency"
    """wordpiece: merge the pair of greatest count(ab), or of greatest count(ab) / (count(a) · count(b))."""
    seed_vocabulary: str | None = None
    """sentencepiece_unigram: a text file with one entry a line (morphemes, words) that training starts from."""
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
        if self.delete_threshold is not None and (self.max_token_length or self.alphabet != "all_bytes"):
            raise ValueError("`delete_threshold` goes neither with `max_token_length` nor with `alphabet: seen_bytes`")
        for option, families in TAKEN_BY.items():
            if option in self.model_fields_set and self.family not in families:
                raise ValueError(f"`{option}` has no effect on {self.family}: it is for {', '.join(families)}")
        return self

    @model_validator(mode="after")
    def unseen_bytes_have_a_token(self) -> TrainConfig:
        if self.alphabet == "seen_bytes" and self.special_tokens.unk is None:
            raise ValueError(
                '`alphabet: seen_bytes` needs a token for all other bytes in `special_tokens`: {unk: "<unk>"}'
            )
        return self

    def parameters(self) -> dict[str, Any]:
        """What shapes the tokenizer, for keys and manifests: family, size, tokens, and what differs from the default.

        Paths are left out: files are inputs.
        """
        always: dict[str, Any] = {"family": self.family, "vocab_size": self.vocab_size}
        always["special_tokens"] = self.special_tokens.by_role()
        return self.model_dump(mode="json", exclude_defaults=True, exclude={"path", "seed_vocabulary"}) | always


class ModelConfig(Model):
    """The model that a tokenizer is for, of which its report tells what the vocabulary costs."""

    parameters: float = Field(gt=0)
    """All of them, one embedding matrix included: 7e9."""
    d_model: int = Field(ge=1)
    """Width of the embeddings."""


class TokenizerConfig(TrainConfig):
    model_config = ConfigDict(json_schema_extra={"required": ["family", "train_on"]})

    train_on: Shares | None = None
    """Shares of the training sample by corpus. For `pretrained`: the sample on which it is judged."""
    sample_bytes: Bytes = 10**9
    """Size of the training sample; a corpus with less than its share gives all it has."""
    seed: Seed = 0
    """Keys the choice of sample documents."""
    bos: bool = False
    """Whether each document starts with BOS in the shards; it always ends with EOD."""
    vision: VisionConfig | None = None
    """How many tokens an image becomes, in corpora with a `content_field`."""
    parallel: str | None = None
    """Parallel text (.jsonl, also .gz, .zst) for the report: what the same sentences cost by language."""
    model: ModelConfig | None = None
    """For the report: the share of the embeddings in this model, in place of the usual sizes."""
    retrain: Literal["on_request", "auto"] = "on_request"
    """Whether changed training text is a reason to train again."""
    checks: TokenizerChecks = TokenizerChecks()
    """Limits of the gate before the shards."""
    owners: Owners = ()
    """Who answers for it, shown in the UI: e-mail addresses, or teams as team:name."""

    @model_validator(mode="after")
    def has_training_text(self) -> TokenizerConfig:
        if self.train_on is None:
            raise ValueError("`train_on` names the corpora of its training sample (pretrained: of its report)")
        if self.family != "pretrained" and self.special_tokens.eod is None:
            raise ValueError('`special_tokens` needs `eod`, which ends every document: {eod: "<|endoftext|>"}')
        if self.checks.max_premium is not None and self.parallel is None:
            raise ValueError("`checks.max_premium` needs `parallel`: a file of the same sentences in several languages")
        if self.bos and self.special_tokens.bos is None:
            raise ValueError("`bos: true` needs the token in `special_tokens`: {bos: ...}")
        if self.vision is not None and self.family != "pretrained" and self.special_tokens.image is None:
            raise ValueError('`vision` needs the placeholder of images in `special_tokens`: {image: "<|image|>"}')
        return self


class PackingConfig(Model):
    """How documents become packs. Nothing is dropped unless told, and what is dropped is counted."""

    strategy: Strategy = "best_fit"
    """How packs are filled; all but concat and naive cut only documents longer than a pack."""
    sequence_length: int = Field(ge=1, le=2**31 - 1)
    """Tokens a pack."""
    noise: float = Field(default=0.0, ge=0, le=4)
    """best_fit: documents come by decreasing length times e^(noise x a standard normal number), which mixes lengths."""
    long_documents: LongDocuments = "chunk"
    """What happens to a document longer than a pack."""
    documents_per_pack: int | None = Field(default=None, ge=1)
    """Most pieces of documents in a pack."""
    images_per_pack: int | None = Field(default=None, ge=1, le=10**6)
    """Most images in a pack; text does not count."""
    large_images: LargeImages = "error"
    """What happens to an image of more tokens than a pack, which is never cut: the build stops, or it is left out."""
    align: int = Field(default=1, ge=1)
    """Each piece starts at a multiple of this, as context parallelism wants (2 x its size)."""
    min_chunk: int = Field(default=1, ge=1)
    """Fewest tokens of the last piece of a document that is cut."""
    short_chunks: ShortChunks = "balance"
    """What happens to a shorter last piece: it and the piece before are made about equal, or it is dropped."""

    @model_validator(mode="after")
    def policies_agree(self) -> PackingConfig:
        if self.sequence_length % self.align:
            raise ValueError(f"sequence_length {self.sequence_length} is no multiple of align {self.align}")
        longest = max(self.sequence_length // (2 * self.align) * self.align, 1)
        if self.min_chunk > longest:
            raise ValueError(f"min_chunk is at most half a pack, here {longest}, not {self.min_chunk}")
        if self.noise and self.strategy != "best_fit":
            raise ValueError(f"noise is for strategy best_fit only, not for {self.strategy}")
        if self.strategy == "concat" and (self.documents_per_pack is not None or self.min_chunk > 1):
            raise ValueError("strategy concat cuts anywhere: it takes neither documents_per_pack nor min_chunk")
        if self.images_per_pack is not None and self.strategy not in ("best_fit", "naive"):
            raise ValueError(f"images_per_pack is for strategies best_fit and naive, not for {self.strategy}")
        if self.images_per_pack is not None and self.documents_per_pack is not None:
            raise ValueError("a pack takes one limit beside its tokens: images_per_pack or documents_per_pack")
        return self

    def parameters(self) -> dict[str, Any]:
        """What shapes packs, for keys and manifests: strategy, length, and what differs from the default."""
        always = {"strategy": self.strategy, "sequence_length": self.sequence_length}
        return self.model_dump(mode="json", exclude_defaults=True) | always


class DatasetChecks(Model):
    min_packing_utilization: float = Field(default=0.95, ge=0, le=1)
    """Fewest positions that hold tokens, as a share of all."""
    warn: tuple[Literal["packing_utilization"], ...] = ()
    """Checks that warn where they would stop what is downstream."""


class DatasetConfig(Model):
    tokenizer: str
    """Name of the tokenizer."""
    mixture: Shares
    """Epochs of each corpus, given to the trainer as blend weights."""
    packing: PackingConfig
    """How documents become packs."""
    image_attention: ImageAttentionName = "causal"
    """What an image sees, besides itself, of what precedes it in its document; stored with the packs."""
    seed: Seed = 0
    """Keys the order of packs."""
    checks: DatasetChecks = DatasetChecks()
    """Limits of the gate before the export."""
    owners: Owners = ()
    """Who answers for it, shown in the UI: e-mail addresses, or teams as team:name."""


class ScheduleConfig(Model):
    """When everything that changed is built again."""

    cron: str
    """Five fields, like '0 3 * * *'."""
    timezone: str = "UTC"
    """A name of the IANA database, like Asia/Shanghai."""
    assets: tuple[str, ...] = ()
    """Keys of the assets that are built, with all they stand on; all when empty."""

    @field_validator("cron")
    @classmethod
    def cron_is_valid(cls, cron: str) -> str:
        if not croniter.is_valid(cron):
            raise ValueError(f"{cron!r} is no cron expression of five fields, like '0 3 * * *'")
        return cron

    @field_validator("timezone")
    @classmethod
    def timezone_exists(cls, timezone: str) -> str:
        if timezone not in available_timezones():
            raise ValueError(f"{timezone!r} is no time zone of the IANA database, like Asia/Shanghai")
        return timezone


class EngineConfig(Model):
    """Where units of work run; shapes no bytes."""

    name: Literal["local", "ray"] = "local"
    """local: processes on this machine; ray: tasks on a Ray cluster."""
    address: str = "auto"
    """ray: the cluster, as `ray.init` takes it; `auto` is the one that runs on this machine."""

    @model_validator(mode="before")
    @classmethod
    def a_name_alone(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value


@dataclass(frozen=True)
class Project:
    """All that is configured; relative corpus and tokenizer paths start at `base`."""

    base: Path
    corpora: dict[str, CorpusConfig]
    tokenizers: dict[str, TokenizerConfig]
    datasets: dict[str, DatasetConfig]
    schedules: dict[str, ScheduleConfig]
    engine: EngineConfig

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
