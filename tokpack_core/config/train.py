"""What shapes a trained tokenizer, apart from its training text."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tokpack_core.config.families import DERIVED, TAKEN_BY, Family
from tokpack_core.config.pretokenizers import REGEX, Pretokenizer, splits_digits
from tokpack_core.config.special_tokens import MEGATRON_ROLES, SpecialTokens, refuse_for_sentencepiece
from tokpack_core.config.values import Model

ALL_OTHERS = "*"
"""Stands for all languages that are not named."""
Language = Annotated[str, Field(min_length=1)]
Languages = Annotated[tuple[Language | Annotated[tuple[Language, ...], Field(min_length=1)], ...], Field(min_length=1)]
Digits = Literal["free", "single", "groups_left", "groups_right"]
TieBreak = Literal["hugging_face", "lexicographic_greatest", "lexicographic_smallest"]
Alphabet = Literal["all_bytes", "seen_bytes"]
RESERVED = "reserved"
"""The domain of an allocation that is special tokens."""
SMALLEST_COVERAGE = 0.98
"""The least `character_coverage` that SentencePiece takes."""
Allocation = Annotated[dict[Annotated[str, Field(min_length=1)], Annotated[int, Field(ge=1)]], Field(min_length=1)]


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
    """boundless_bpe, superbpe, supertokens: most parts between spaces in a superword; by default 4 for superbpe, else
    any number."""
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


class DerivedOptions(Model):
    """What is made from another tokenizer, and how."""

    base: str | None = None
    """litetoken, supertokens, minimum_cost: name of the tokenizer that they are made from."""
    max_residue_ratio: float = Field(default=0.05, ge=0, le=1)
    """litetoken: a token is a residue if a smaller share of its occurrences is final."""
    max_neighbor_entropy: float = Field(default=2.0, ge=0)
    """litetoken: and if what consumes it has less entropy, in bits."""
    min_count: int = Field(default=20, ge=1, lt=2**63)
    """litetoken: and if it occurs so often, finally or on the way."""
    top_k: int = Field(default=250, ge=1, le=10**6)
    """supertokens: phrases that are appended."""


class TrainConfig(SuperwordOptions, DerivedOptions):
    """What shapes a trained tokenizer, apart from its training text."""

    family: Family
    """Kind of tokenizer."""
    vocab_size: int | None = Field(default=None, ge=1, le=2**31 - 1)
    """Entries, special tokens included; not for `pretrained` and what has a `base`. modular_bpe, modular_unigram:
    those of each language's sub-tokenizer; the whole has more."""
    special_tokens: SpecialTokens = SpecialTokens()
    """Strings of the special tokens."""
    pretokenizer: Pretokenizer = "cl100k"
    """byte_bpe, modular_bpe, word, superbpe, boundless_bpe, cnf_mce: the published regex that splits text, by name, or
    `regex:PATTERN`, for superbpe its own by default; pretrained: that of a bare rank file, by default that of the
    published file with the same ranks."""
    digits: Digits | None = None
    """byte_bpe, modular_bpe, word, superbpe, boundless_bpe, cnf_mce: how runs of digits are split: not at all, one by
    one, in threes from the left or from the right; the default is what the pretokenizer's regex does."""
    min_frequency: int = Field(default=2, ge=1, lt=2**63)
    """byte_bpe, modular_bpe, wordpiece, superbpe, boundless_bpe: a pair seen fewer times is not merged; character,
    word, cnf_mce: a rarer one gets no entry."""
    tie_break: TieBreak = "hugging_face"
    """byte_bpe, modular_bpe, superbpe, boundless_bpe: which of the most frequent pairs is merged: the smallest pair of
    ids, or the greatest or smallest pair of byte strings."""
    max_token_length: int | None = Field(default=None, ge=2, le=2**31 - 1)
    """byte_bpe: a merged token has fewer bytes than this, as in Hugging Face's trainer; cnf_mce: any token, 33 by
    default."""
    max_pretoken_bytes: int | None = Field(default=None, ge=1)
    """byte_bpe: longer pretokens are not trained on, and counted."""
    alphabet: Alphabet = "all_bytes"
    """byte_bpe: `seen_bytes` gives an id only to bytes that the training text holds; others become `unk`."""
    delete_threshold: float | None = Field(default=None, gt=0.5, le=1)
    """byte_bpe, boundless_bpe: after a merge of words, one of its two tokens is deleted if at least this share of its
    occurrences went into it (PickyBPE: 0.6 to 0.9)."""
    character_coverage: float = Field(default=0.9995, gt=0, le=1)
    """sentencepiece, modular_unigram, wordpiece: share of characters that get a piece of their own; the rest becomes
    bytes or unk."""
    required_characters: Literal["gb2312_level_1"] | None = None
    """byte_bpe, sentencepiece, modular_unigram: characters that get an entry however rare they are: the 3,755 common
    Hanzi."""
    allocation: Allocation | None = None
    """byte_bpe, sentencepiece: entries by domain, which is a corpus or a language of documents: each is trained by
    itself, and all are merged; `reserved` is for special tokens. The sum is `vocab_size`."""
    id_layout: Literal["hugging_face", "megatron_tiktoken"] = "hugging_face"
    """byte_bpe: special tokens, bytes as Hugging Face's trainer orders them, merges; or what Megatron's TikTokenizer
    takes: 1,000 special tokens, bytes by value, merges."""
    wordpiece_criterion: Literal["likelihood", "frequency"] = "frequency"
    """wordpiece: merge the pair of greatest count(ab), or of greatest count(ab) / (count(a) · count(b))."""
    refills: int = Field(default=8, ge=0, le=1000)
    """cnf_mce: rounds in which little-used tokens are filtered out and the vocabulary is refilled."""
    refill_share: float = Field(default=0.3, gt=0, lt=1)
    """cnf_mce: share of the vocabulary that the first round filters out; it falls evenly, to none after the last."""
    seed_vocabulary: str | None = None
    """sentencepiece_unigram: a text file with one entry a line (morphemes, words) that training starts from."""
    languages: Languages | None = None
    """modular_bpe, modular_unigram: the languages that get a sub-tokenizer, in the order in which they are trained; a
    list of languages gets one together, and so does `*`, all that are not named. By default every language of the
    sample, that of the most bytes beyond ASCII first."""
    path: str | None = None
    """pretrained: tokenizer.json, x.model, x.tiktoken, GPT-2's vocab.json beside merges.txt, or a folder with one."""

    @model_validator(mode="before")
    @classmethod
    def allocation_sums_up(cls, values: Any) -> Any:
        quotas = values.get("allocation") if isinstance(values, dict) else None
        if isinstance(quotas, dict) and quotas and all(type(quota) is int for quota in quotas.values()):
            return {"vocab_size": sum(quotas.values())} | values
        return values

    @model_validator(mode="after")
    def allocation_holds_all(self) -> TrainConfig:
        if self.allocation is None:
            return self
        total, special, quotas = sum(self.allocation.values()), len(self.special_tokens.by_role()), self.quotas()
        own_unk = self.family != "byte_bpe" and self.special_tokens.unk is None
        special += own_unk
        if self.vocab_size != total:
            raise ValueError(f"`allocation` sums up to {total}, and `vocab_size` is {self.vocab_size}: leave it out")
        if self.reserved() < special:
            also = " and SentencePiece's own unk" if own_unk else ""
            raise ValueError(
                f"`allocation` needs `{RESERVED}: {special}` or more, for the special tokens configured{also}"
            )
        if sum(quotas.values()) < 256:
            raise ValueError("`allocation` needs at least 256 entries beside `reserved`, for the bytes")
        seen = self.alphabet != "all_bytes"
        if self.delete_threshold is not None or self.required_characters or seen or self.seed_vocabulary:
            raise ValueError(
                "`allocation` goes neither with `delete_threshold` nor with `required_characters` nor with "
                "`seed_vocabulary` nor with `alphabet: seen_bytes`"
            )
        if any(text.startswith(f"<|{RESERVED}_") for text in self.special_tokens.by_role().values()):
            raise ValueError(f"special tokens that begin with <|{RESERVED}_ are those of `allocation`: name others")
        return self

    @model_validator(mode="after")
    def layout_is_megatrons(self) -> TrainConfig:
        if self.id_layout == "hugging_face":
            return self
        if (self.pretokenizer, self.digits) != ("superbpe", "single"):
            raise ValueError(
                "`id_layout: megatron_tiktoken` needs the regex that Megatron calls v2: `pretokenizer: superbpe` and "
                "`digits: single`"
            )
        for role, text in self.special_tokens.by_role().items():
            if MEGATRON_ROLES.get(role) != text:
                raise ValueError(
                    f"`id_layout: megatron_tiktoken` has the special tokens of Megatron's own, {MEGATRON_ROLES}, "
                    f"not {role} {text!r}"
                )
        if self.allocation or self.delete_threshold is not None or self.alphabet != "all_bytes":
            raise ValueError(
                "`id_layout: megatron_tiktoken` goes neither with `allocation` nor with `delete_threshold` nor with "
                "`alphabet: seen_bytes`"
            )
        return self

    def quotas(self) -> dict[str, int]:
        """Entries by domain, without what is reserved."""
        return {name: quota for name, quota in (self.allocation or {}).items() if name != RESERVED}

    def reserved(self) -> int:
        """Entries for special tokens, configured ones included."""
        return (self.allocation or {}).get(RESERVED, 0)

    @model_validator(mode="after")
    def family_has_what_it_needs(self) -> TrainConfig:
        if self.family == "pretrained":
            if self.path is None:
                raise ValueError("a pretrained tokenizer needs `path`: a tokenizer.json, .model or .tiktoken")
            if self.vocab_size is not None:
                raise ValueError("a pretrained tokenizer has the `vocab_size` of its file: remove the key")
        elif self.family in DERIVED:
            if self.base is None:
                raise ValueError(f"a {self.family} tokenizer needs `base`: the tokenizer that it is made from")
            for key in {"vocab_size", "special_tokens"} & self.model_fields_set:
                raise ValueError(f"a {self.family} tokenizer has the `{key}` of its base: remove the key")
        else:
            if self.vocab_size is None:
                raise ValueError(f"a {self.family} tokenizer needs `vocab_size`")
        if self.delete_threshold is not None and (self.max_token_length or self.alphabet != "all_bytes"):
            raise ValueError("`delete_threshold` goes neither with `max_token_length` nor with `alphabet: seen_bytes`")
        named = [name for entry in self.languages or () for name in ((entry,) if isinstance(entry, str) else entry)]
        if len(set(named)) < len(named):
            raise ValueError("`languages` names a language twice: name each once")
        if ALL_OTHERS in named and ALL_OTHERS not in (self.languages or ()):
            raise ValueError("`languages`: write `*`, all other languages, by itself and not in a list")
        if self.digits == "free" and self.pretokenizer.startswith(REGEX) and splits_digits(self.pretokenizer):
            raise ValueError(
                "`digits: free` keeps runs of digits whole, and `pretokenizer` splits them: change the regex or leave "
                "`digits` out"
            )
        if self.delete_threshold is not None and self.export == "hf":
            raise ValueError("`export: hf` cannot say when a token is deleted: remove it, or `delete_threshold`")
        by_sentencepiece = self.family in ("sentencepiece_bpe", "sentencepiece_unigram", "modular_unigram")
        if by_sentencepiece:
            refuse_for_sentencepiece(self.special_tokens.by_role())
        if by_sentencepiece and self.character_coverage < SMALLEST_COVERAGE:
            raise ValueError(
                f"`character_coverage` {self.character_coverage} is too small for SentencePiece: raise it to "
                f"{SMALLEST_COVERAGE} or more"
            )
        for option, families in TAKEN_BY.items():
            if option in self.model_fields_set and self.family not in families:
                raise ValueError(f"`{option}` has no effect on {self.family}: it is for {', '.join(families)}")
        return self

    @model_validator(mode="after")
    def options_have_an_effect(self) -> TrainConfig:
        """Beside those that a family does not take: what other options leave without an effect."""
        given = self.model_fields_set
        in_pieces = self.family == "superbpe" and self.joins == "pieces"
        if in_pieces and "export" in given:
            raise ValueError("`export` has no effect on superbpe of pieces, whose tokenizer.json is exact: remove it")
        if self.family == "superbpe" and self.transition_size != "auto":
            without = ("tie_winner", "mergeable") if in_pieces else ("tie_winner",)
            for option in without:
                if option in given:
                    raise ValueError(
                        f"`{option}` has no effect on superbpe{' of pieces' * in_pieces} with a `transition_size` in "
                        "numbers, for words and superwords do not compete then: remove one of them"
                    )
        if self.refills == 0 and "refill_share" in given:
            raise ValueError("`refill_share` has no effect with `refills: 0`: remove it")
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
