"""What a user writes of a dataset: tokenizer, mixture, packing, and the limits of its checks."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from tokpack_core.config.values import Model, Owners, Seed, Shares

Strategy = Literal["naive", "concat", "best_fit", "first_fit_decreasing", "first_fit"]
LongDocuments = Literal["chunk", "drop", "error"]
ShortChunks = Literal["balance", "drop"]
LargeImages = Literal["error", "drop"]
ImageAttentionName = Literal["causal", "isolate_images", "isolate_modalities"]


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
        if self.strategy == "naive" and self.documents_per_pack is not None:
            raise ValueError("strategy naive puts one piece in a pack: documents_per_pack has no effect, remove it")
        if self.long_documents != "chunk" and (self.min_chunk > 1 or self.short_chunks != "balance"):
            raise ValueError(
                f"long_documents {self.long_documents} leaves no document to cut: min_chunk and short_chunks have no "
                "effect, remove them"
            )
        if self.short_chunks != "balance" and self.min_chunk == 1:
            raise ValueError("short_chunks has no effect with min_chunk 1, for no piece is shorter: raise min_chunk")
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
