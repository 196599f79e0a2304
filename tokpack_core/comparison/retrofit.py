"""Can it be retrofitted? What a trained base model needs to take on a tokenizer of each kind, and how final that is."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Retrofit:
    method: str
    families: tuple[str, ...]
    needs: str
    reversibility: str
    source: str


RETROFITS = (
    Retrofit(
        "LiteToken",
        ("litetoken",),
        "no training: the ids that are kept stay as they are",
        "high: go back to the old file at any time",
        "arXiv 2602.04706",
    ),
    Retrofit(
        "minimum-cost encoding over the same vocabulary",
        ("minimum_cost",),
        "no new parameters; the model meets other segmentations than in training: a short continued training",
        "high: the vocabulary is the same",
        "arXiv 2610.01127",
    ),
    Retrofit(
        "byteification",
        (),
        "an alignment stage, then a stage of the whole model, but no pre-training",
        "high: the tokens' own model is kept beside it",
        "arXiv 2512.15586",
    ),
    Retrofit(
        "supertoken extension",
        ("supertokens",),
        "the new rows of embeddings and LM head (start: mean of their parts), and a few layers",
        "medium: new ids can be left unused",
        "arXiv 2604.26355",
    ),
    Retrofit(
        "SuperBPE, BoundlessBPE",
        ("superbpe", "boundless_bpe"),
        "embeddings and LM head trained anew",
        "low: decide before pre-training",
        "arXiv 2503.13423, 2504.00178",
    ),
    Retrofit(
        "modular tokenizers",
        ("modular_bpe", "modular_unigram"),
        "embeddings and LM head trained anew, on a sub-tokenizer drawn for each batch; languages are chosen afterwards",
        "low: decide before pre-training",
        "arXiv 2609.15528",
    ),
    Retrofit(
        "another vocabulary of a classic family",
        ("byte_bpe", "sentencepiece_bpe", "sentencepiece_unigram", "wordpiece", "character", "word", "cnf_mce"),
        "embeddings and LM head trained anew",
        "low: decide before pre-training",
        "as for superwords: every id changes its meaning",
    ),
)


def retrofit_rows(families: set[str]) -> list[dict[str, object]]:
    """Every method as plain data; `compared` says whether a tokenizer of it took part."""
    return [asdict(row) | {"compared": bool(families & set(row.families))} for row in RETROFITS]
