"""What an encoder of ours must leave to the library whose ids it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Tokenizer as Engine

from tokpack_core.config import NormalizeConfig, UnicodeForm

ForLibrary = Callable[[pa.Array], npt.NDArray[np.bool_] | None]
Prepare = Callable[[pa.Array], pa.Array]


def holding(added: Sequence[str]) -> ForLibrary:
    """Which texts hold an added token that is not special, and so matches; None for none of them."""

    def for_library(texts: pa.Array) -> npt.NDArray[np.bool_] | None:
        masks = [pc.match_substring(texts, content) for content in added]
        masks = [mask for mask in masks if pc.any(mask).as_py()]
        return np.logical_or.reduce([mask.to_numpy(zero_copy_only=False) for mask in masks]) if masks else None

    return for_library


def any_of(one: ForLibrary, other: ForLibrary | None) -> ForLibrary:
    if other is None:
        return one

    def for_library(texts: pa.Array) -> npt.NDArray[np.bool_] | None:
        masks = [mask for mask in (one(texts), other(texts)) if mask is not None]
        return np.logical_or.reduce(masks) if masks else None

    return for_library


def normalized_by(engine: Engine, form: UnicodeForm) -> Prepare:
    """Texts as the library's normalizer leaves them: those that ours changes are given to the library's."""
    if form == "none":
        return unchanged
    # Loads kernels, which small texts have no use for.
    from tokpack_core.corpus.normalization import normalize

    normalization = NormalizeConfig(unicode=form, byte_order_marks="keep")

    def normalized(texts: pa.Array) -> pa.Array:
        ours = normalize(texts, normalization)[0]
        if ours is texts:
            return texts
        changed = pc.not_equal(texts, ours)
        forms = [engine.normalizer.normalize_str(text.as_py()) for text in texts.filter(changed)]
        return pc.replace_with_mask(texts, changed, pa.array(forms, texts.type))

    return normalized


def unchanged(texts: pa.Array) -> pa.Array:
    return texts
