"""The lists of a comparison as pandas tables, for notebooks and for .csv files."""

from __future__ import annotations

import pandas as pd

from tokpack_core.comparison.comparison import Comparison

LISTS = ("tokenizers", "by_language", "differences", "parallel", "morphemes", "small_model", "retrofit")


def tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """A table a list that is not empty, by its name; those of the controls and of the sweep under their own names."""
    lists = {name: comparison.get(name, []) for name in LISTS}
    lists["retrofit"] = [row | {"families": ", ".join(row["families"])} for row in lists["retrofit"]]
    lists |= comparison["controls"]
    if "sweep" in comparison:
        lists["sweep_pairs"] = comparison["sweep"]["pairs"]
        lists["sweep_sizes"] = comparison["sweep"]["sizes"]
    return {name: pd.json_normalize(rows) for name, rows in lists.items() if rows}
