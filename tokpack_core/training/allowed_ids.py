"""A loss over some ids only: the others have no share of the probability, and no gradient."""

from __future__ import annotations

import torch


def mask_logits(logits: torch.Tensor, allowed_ids: torch.Tensor) -> torch.Tensor:
    """Logits [..., vocabulary], -inf for all ids that are not allowed (int64 [ids]): softmax makes them exactly 0."""
    forbidden = torch.ones(logits.shape[-1], dtype=torch.bool, device=logits.device)
    forbidden[allowed_ids] = False
    return logits.masked_fill(forbidden, float("-inf"))


def masked_loss(logits: torch.Tensor, labels: torch.Tensor, allowed_ids: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of labels int64 [...] (-100: not trained) under the masked logits [..., vocabulary].

    The gradient of every other id's logit is exactly 0. A label that is not allowed gives infinity.
    """
    masked = mask_logits(logits, allowed_ids)
    return torch.nn.functional.cross_entropy(masked.flatten(0, -2), labels.flatten(), ignore_index=-100)
