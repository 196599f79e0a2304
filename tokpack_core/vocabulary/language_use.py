"""How much of the vocabulary each language uses."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.vocabulary.counts import TokenCounts
from tokpack_core.vocabulary.fertility import UNDETERMINED
from tokpack_core.vocabulary.utilization import entry_ids


def language_use(counts: TokenCounts, vocabulary: pa.Table) -> dict[str, dict[str, int | float]]:
    """By language (none is `und`): entries that occur in it, their share of all, and how many make up 90 % of it."""
    entries = np.zeros(counts.vocab_size, bool)
    entries[entry_ids(vocabulary)] = True
    table = counts.by_language.filter(pa.array(entries[counts.by_language["id"].to_numpy()]))
    table = table.set_column(0, "lang", pc.fill_null(table["lang"], UNDETERMINED))
    table = table.group_by(["lang", "id"], use_threads=False).aggregate([("count", "sum")])
    table = table.sort_by([("lang", "ascending"), ("count_sum", "descending"), ("id", "ascending")])
    names = table["lang"].combine_chunks().dictionary_encode()
    codes, occurrences = names.indices.to_numpy(), table["count_sum"].to_numpy()
    borders = np.flatnonzero(np.diff(codes, prepend=-1, append=-1)) if len(codes) else np.zeros(0, np.int64)
    used = {}
    for code, lang in enumerate(names.dictionary.to_pylist()):
        own = np.cumsum(occurrences[borders[code] : borders[code + 1]])
        needed = int(np.searchsorted(own, 0.9 * own[-1])) + 1
        used[lang] = {"entries": len(own), "utilization": len(own) / int(entries.sum()), "entries_of_90": needed}
    return used
