"""Kinds of tokenizers, and the options that each takes."""

from __future__ import annotations

from typing import Literal

Family = Literal[
    "byte_bpe",
    "sentencepiece_bpe",
    "sentencepiece_unigram",
    "wordpiece",
    "character",
    "word",
    "superbpe",
    "boundless_bpe",
    "modular_bpe",
    "modular_unigram",
    "cnf_mce",
    "litetoken",
    "supertokens",
    "minimum_cost",
    "pretrained",
]
DERIVED: tuple[Family, ...] = ("litetoken", "supertokens", "minimum_cost")
"""Made from another tokenizer of the configuration, whose special tokens and unicode form they have."""
OF_BYTES: tuple[Family, ...] = (
    "byte_bpe",
    "sentencepiece_bpe",
    "sentencepiece_unigram",
    "superbpe",
    "boundless_bpe",
    "modular_bpe",
    "modular_unigram",
    "cnf_mce",
)
"""The families that are trained and have an entry for each of the 256 bytes."""
BASES: dict[Family, tuple[Family, ...]] = {
    "litetoken": ("byte_bpe", "superbpe", "boundless_bpe", "modular_bpe", "supertokens", "pretrained"),
    "supertokens": ("byte_bpe", "modular_bpe", "pretrained"),
    "minimum_cost": (*OF_BYTES, "supertokens", "minimum_cost", "pretrained"),
}
"""What each of them is made from."""
MODULAR: tuple[Family, ...] = ("modular_bpe", "modular_unigram")
"""The families that are trained language by language."""
TAKEN_BY: dict[str, tuple[Family, ...]] = {
    "pretokenizer": ("byte_bpe", "word", "superbpe", "boundless_bpe", "modular_bpe", "cnf_mce", "pretrained"),
    "digits": ("byte_bpe", "word", "superbpe", "boundless_bpe", "modular_bpe", "cnf_mce"),
    "min_frequency": (
        "byte_bpe",
        "wordpiece",
        "character",
        "word",
        "superbpe",
        "boundless_bpe",
        "modular_bpe",
        "cnf_mce",
        "supertokens",
    ),
    "tie_break": ("byte_bpe", "superbpe", "boundless_bpe", "modular_bpe"),
    "max_token_length": ("byte_bpe", "cnf_mce"),
    "max_pretoken_bytes": ("byte_bpe",),
    "alphabet": ("byte_bpe",),
    "delete_threshold": ("byte_bpe", "boundless_bpe"),
    "character_coverage": ("sentencepiece_bpe", "sentencepiece_unigram", "modular_unigram", "wordpiece"),
    "required_characters": ("byte_bpe", "sentencepiece_bpe", "sentencepiece_unigram", "modular_unigram"),
    "allocation": ("byte_bpe", "sentencepiece_bpe", "sentencepiece_unigram"),
    "id_layout": ("byte_bpe",),
    "wordpiece_criterion": ("wordpiece",),
    "seed_vocabulary": ("sentencepiece_unigram",),
    **dict.fromkeys(("languages", "encode_by_language"), MODULAR),
    "path": ("pretrained",),
    **dict.fromkeys(("refills", "refill_share"), ("cnf_mce",)),
    "base": DERIVED,
    **dict.fromkeys(("max_residue_ratio", "max_neighbor_entropy", "min_count"), ("litetoken",)),
    "top_k": ("supertokens",),
    **dict.fromkeys(("mergeable", "script_aware", "tie_winner", "export"), ("boundless_bpe", "superbpe")),
    "max_words": ("boundless_bpe", "superbpe", "supertokens"),
    **dict.fromkeys(("transition_size", "joins"), ("superbpe",)),
}
"""The families that use an option; in any other it is an error."""
