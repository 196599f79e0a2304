"""Which unicode form a normalizer applies, found by what it does to two strings."""

from __future__ import annotations

from collections.abc import Callable

from tokpack_core.config import UnicodeForm


def form_applied(normalize: Callable[[str], str]) -> UnicodeForm:
    """`nfkc` if compatibility characters fold (`ﬁ` → `fi`) and accents compose, `nfc` if only these do, else `none`."""
    composes = "\u00e9" in normalize("e\u0301")
    folds = "fi" in normalize("\ufb01")
    if composes:
        return "nfkc" if folds else "nfc"
    return "none"
