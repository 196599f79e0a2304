"""What manifests say of images, added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokpack_core.tokenizers.huggingface.interleaved import ImageCounts


def summed_vision(told: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The `vision` counts of several runs as one, with the scheme of the first; None of none."""
    if not told:
        return None
    total = sum((ImageCounts.from_dict(vision) for vision in told), ImageCounts())
    warnings = sorted({warning for vision in told for warning in vision["warnings"]})
    return {"scheme": told[0]["scheme"], **total.as_dict(), "warnings": warnings}
