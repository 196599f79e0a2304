"""What a vocabulary costs a model, and the size that the scaling laws of vocabularies advise.

Embedding parameters are V · d_model, twice that where input and output are not tied. The optimum is approach 2 of Tao
et al. 2024 (NeurIPS, arXiv 2407.13623): vocabulary parameters grow as non-vocabulary parameters to a power,
which gives 30-35k entries for 1B, 60-67k for 7B and 212-231k for 70B parameters at the d_model that the paper fits to
each.

Cost of training on a text: 6 FLOPs a token for each non-vocabulary parameter and for each of the output layer's
V · d_model. A larger vocabulary makes fewer tokens of the same text and a dearer softmax: `relative_cost` compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokpack_core.vocabulary.planning import BASE_OTHERS, BASE_VOCABULARY, GAMMA


@dataclass(frozen=True)
class ModelShape:
    """parameters: all of them, one embedding matrix included."""

    name: str
    parameters: float
    d_model: int


USUAL_SHAPES = (ModelShape("1B", 1e9, 2048), ModelShape("7B", 7e9, 4096), ModelShape("70B", 70e9, 8192))


def optimal_vocabulary(non_vocabulary_parameters: float, d_model: int) -> int:
    """Entries by approach 2 (`planning`), not rounded to a multiple."""
    return round(BASE_VOCABULARY * (non_vocabulary_parameters / BASE_OTHERS) ** GAMMA / d_model)


def model_costs(
    vocab_size: int, sizes: Sequence[Mapping[str, Any]] | None, shapes: Sequence[ModelShape] = USUAL_SHAPES
) -> list[dict[str, Any]]:
    """One row a model.

    vocab_size: ids; sizes: rows of `sizes.size_row`, whole vocabulary last, for `relative_cost`: training cost on the
    same text at each size over that of the whole vocabulary.
    """
    rows = []
    for shape in shapes:
        embedding = vocab_size * shape.d_model
        rest = max(shape.parameters - embedding, 0.0)
        cost = [(rest + row["entries"] * shape.d_model) * row["tokens"] for row in sizes or []]
        rows.append(
            {
                "model": shape.name,
                "parameters": shape.parameters,
                "d_model": shape.d_model,
                "embedding_parameters": embedding,
                "embedding_share": embedding / shape.parameters,
                "untied_share": 2 * embedding / (shape.parameters + embedding),
                "softmax_share": embedding / (rest + embedding),
                "optimal_vocabulary": optimal_vocabulary(rest, shape.d_model),
                "relative_cost": [round(one / cost[-1], 9) for one in cost] if cost and cost[-1] else None,
            }
        )
    return rows
