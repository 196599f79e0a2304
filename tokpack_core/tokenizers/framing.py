"""Puts BOS, EOD and other ids around documents, on flat arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokpack_core.tokenizers.encoded import Encoded

LARGE = 2**22
"""Ids of a document that are not copied to add one."""


def framed(encoded: Encoded, chosen: npt.NDArray[np.bool_], bos: int | None, eod: int) -> Encoded:
    """The same documents; those chosen (bool [documents]) end in `eod` and, unless it is None, start with `bos`.

    `encoded` is used up: the ids of a single long document may grow where they stand.
    """
    added = chosen.astype(np.int64) * (1 if bos is None else 2)
    if bos is None:
        places = encoded.offsets[1:][chosen]
        values = np.full(places.size, eod, np.int32)
    else:
        # Column order keeps the EOD of one document before the BOS of the next at the same place.
        places = np.stack([encoded.offsets[:-1][chosen], encoded.offsets[1:][chosen]], axis=1).ravel()
        values = np.tile(np.array([bos, eod], np.int32), places.size // 2)
    offsets = encoded.offsets + np.concatenate([[0], np.cumsum(added)])
    if encoded.ids.size > LARGE and places.tolist() == [encoded.ids.size] and grew_by_one(encoded):
        encoded.ids[-1] = eod
        return Encoded(encoded.ids, offsets)
    return Encoded(np.insert(encoded.ids, places, values), offsets)


def grew_by_one(encoded: Encoded) -> bool:
    """Makes room for an id at the end of `encoded.ids`, unless someone else holds the array or a view of it."""
    try:
        encoded.ids.resize(encoded.ids.size + 1)
    except ValueError:
        return False
    return True


def surrounded(encoded: Encoded, before: tuple[int, ...], after: tuple[int, ...]) -> Encoded:
    """The same documents, empty ones too, each with these ids before and after its own."""
    if not before and not after:
        return encoded
    places = np.stack([encoded.offsets[:-1]] * len(before) + [encoded.offsets[1:]] * len(after), axis=1).ravel()
    values = np.tile(np.array([*before, *after], np.int32), encoded.documents)
    offsets = encoded.offsets + np.arange(encoded.documents + 1) * (len(before) + len(after))
    return Encoded(np.insert(encoded.ids, places, values), offsets)


def without_last(encoded: Encoded, token: int) -> Encoded:
    """The same documents; one that ends in `token` ends before it."""
    ends = encoded.offsets[1:][encoded.lengths > 0]
    last = ends[encoded.ids[ends - 1] == token] - 1
    removed = np.zeros(encoded.documents + 1, np.int64)
    np.add.at(removed, np.searchsorted(encoded.offsets, last, side="right"), 1)
    return Encoded(np.delete(encoded.ids, last), encoded.offsets - np.cumsum(removed))
