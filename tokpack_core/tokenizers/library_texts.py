"""What an encoder of ours must leave to the library whose ids it gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Tokenizer as Engine

from tokpack_core.config import NormalizeConfig, UnicodeForm
from tokpack_core.corpus.text_buffers import text_array, text_buffers
from tokpack_core.tokenizers.long_documents import in_parts
from tokpack_core.tokenizers.text_batches import BATCH_BYTES

STARTS_ANEW = re.compile(r"(?=[\x00-\x7fぁ-ゖァ-ヺ㐀-䶿一-鿿가-힣])")
"""Before such a character no unicode form changes anything: it is a starter that nothing before it composes with."""
MOST_ADDED_TOKENS = 64
FORMS: dict[str, UnicodeForm] = {"NFC": "nfc", "NFKC": "nfkc"}
ForLibrary = Callable[[pa.Array], npt.NDArray[np.bool_] | None]
Prepare = Callable[[pa.Array], pa.Array]


def unchanged(texts: pa.Array) -> pa.Array:
    return texts


def form_and_texts(
    engine: Engine, description: dict[str, Any], split_otherwise: ForLibrary | None
) -> tuple[UnicodeForm, ForLibrary] | None:
    """The unicode form that a tokenizer.json gives text, and which texts the library must encode.

    None for a file whose normalizer does more, or that has more added tokens than are looked for.
    """
    form = form_of(description["normalizer"])
    added = [token for token in description["added_tokens"] if not token["special"]]
    if form is None or len(added) > MOST_ADDED_TOKENS:
        return None
    as_they_are = [token["content"] for token in added if form == "none" or not token["normalized"]]
    normalized = [
        engine.normalizer.normalize_str(token["content"]) for token in added if form != "none" and token["normalized"]
    ]
    held = any_of(holding(as_they_are), holding(normalized, normalized_by(engine, form)) if normalized else None)
    return form, any_of(held, split_otherwise)


def form_of(normalizer: dict[str, Any] | None) -> UnicodeForm | None:
    if normalizer is None:
        return "none"
    if normalizer["type"] == "Sequence":
        inner = normalizer["normalizers"]
        return form_of(inner[0] if inner else None) if len(inner) <= 1 else None
    return FORMS.get(normalizer["type"])


def holding(added: Sequence[str], prepared: Prepare = unchanged) -> ForLibrary:
    """Which texts hold, when they are prepared, an added token that is not special, and so matches; None for none."""
    if not added:
        return lambda texts: None
    pattern = "|".join(map(re.escape, added))
    return lambda texts: matching(pattern, prepared(texts))


def matching(pattern: str, texts: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Which texts hold a match of a regex of RE2, which looks for all its alternatives at once; None for none."""
    mask = pc.match_substring_regex(texts, pattern)
    return mask.to_numpy(zero_copy_only=False) if pc.any(mask).as_py() else None


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
        parts, edges = in_parts(texts, STARTS_ANEW, BATCH_BYTES)
        ours = normalize(parts, normalization)[0]
        if ours is parts:
            return texts
        changed = pc.not_equal(parts, ours)
        del ours
        forms = [engine.normalizer.normalize_str(text.as_py()) for text in parts.filter(changed)]
        return whole_again(pc.replace_with_mask(parts, changed, pa.array(forms, parts.type)), edges)

    return normalized


def whole_again(parts: pa.Array, edges: npt.NDArray[np.int64]) -> pa.Array:
    """Documents of parts, as `in_parts` numbers them."""
    if edges[-1] == edges.size - 1:
        return parts
    data, offsets = text_buffers(parts)
    return text_array(data, offsets[edges], parts.type)
