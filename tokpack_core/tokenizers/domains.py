"""The domain of each document, for an allocation of vocabulary: a corpus, or a language."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc


def by_domain(
    texts: pa.Array, languages: pa.Array, sources: Sequence[str], domains: Container[str]
) -> Iterator[tuple[str, pa.Array]]:
    """Texts with the domain that they are of: the first of `sources` that is one, else their language.

    `texts`, `languages`: string arrays of one length, the latter with nulls. What is of no domain comes under its
    language, or the first source.
    """
    named = next((source for source in sources if source in domains), None)
    if named is not None:
        yield named, texts
        return
    labels = pc.fill_null(languages, sources[0] if sources else "")
    for label in pc.unique(labels).to_pylist():
        yield label, texts.filter(pc.equal(labels, label))
