"""What a user writes of a tokenizer: how it is trained, on what text, and the limits of its checks."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from tokpack_core.config.families import DERIVED, OF_BYTES
from tokpack_core.config.tokenizer_checks import TokenizerChecks
from tokpack_core.config.train import TrainConfig
from tokpack_core.config.values import Bytes, Model, Owners, Seed, Shares
from tokpack_core.config.vision import VisionConfig

BYTES = 256


class ModelConfig(Model):
    """The model that a tokenizer is for, of which its report tells what the vocabulary costs."""

    parameters: float = Field(gt=0)
    """All of them, one embedding matrix included: 7e9."""
    d_model: int = Field(ge=1)
    """Width of the embeddings."""


class TokenizerConfig(TrainConfig):
    model_config = ConfigDict(json_schema_extra={"required": ["family", "train_on"]})

    train_on: Shares | None = None
    """Shares of the training sample by corpus. For `pretrained` and `minimum_cost`: the sample on which it is
    judged."""
    sample_bytes: Bytes = 10**9
    """Size of the training sample; a corpus with less than its share gives all it has."""
    seed: Seed = 0
    """Keys the choice of sample documents."""
    bos: bool = False
    """Whether each document starts with BOS in the shards; it always ends with EOD."""
    encode_by_language: bool = False
    """modular_bpe, modular_unigram: whether, in the shards, a document has the ids of its language's sub-tokenizer;
    else those of the whole vocabulary."""
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
        own = self.family != "pretrained" and self.family not in DERIVED
        if own and self.special_tokens.eod is None:
            raise ValueError('`special_tokens` needs `eod`, which ends every document: {eod: "<|endoftext|>"}')
        if self.checks.max_premium is not None and self.parallel is None:
            raise ValueError("`checks.max_premium` needs `parallel`: a file of the same sentences in several languages")
        if "fairness" in self.checks.warn and self.checks.max_premium is None:
            raise ValueError("`checks.warn: [fairness]` has no effect without the limit `checks.max_premium`: set it")
        if self.family == "pretrained" and "retrain" in self.model_fields_set:
            raise ValueError("`retrain` has no effect on a pretrained tokenizer, which is not trained: remove it")
        if self.bos and self.special_tokens.bos is None and self.family not in DERIVED:
            raise ValueError("`bos: true` needs the token in `special_tokens`: {bos: ...}")
        if self.vision is not None and own and self.special_tokens.image is None:
            raise ValueError('`vision` needs the placeholder of images in `special_tokens`: {image: "<|image|>"}')
        return self

    @model_validator(mode="after")
    def sizes_have_room(self) -> TokenizerConfig:
        if self.vocab_size is None or self.family not in OF_BYTES or self.alphabet != "all_bytes":
            return self
        smallest = BYTES + len(self.special_tokens.by_role())
        needed = f"{BYTES} bytes and {smallest - BYTES} special tokens"
        if self.vocab_size < smallest:
            raise ValueError(f"`vocab_size` {self.vocab_size} is too small: {needed} need {smallest}")
        transition = self.transition_size
        if isinstance(transition, int) and not smallest <= transition <= self.vocab_size:
            raise ValueError(
                f"`transition_size` {transition} is not between {smallest} ({needed}) and `vocab_size` "
                f"{self.vocab_size}: correct it"
            )
        return self

    @model_validator(mode="after")
    def superwords_can_be(self) -> TokenizerConfig:
        if "mergeable" in self.model_fields_set:
            import regex

            try:
                regex.compile(self.mergeable)
            except regex.error as error:
                raise ValueError(
                    f"`mergeable`, `{self.mergeable}`, is no regular expression ({error}): correct it"
                ) from None
        if self.family == "supertokens" and self.max_words == 1:
            raise ValueError("`max_words` 1 leaves no phrase to append: raise it to 2 or more")
        return self
