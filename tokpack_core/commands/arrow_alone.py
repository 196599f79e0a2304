"""pyarrow without pandas.

Before it converts its first list, pyarrow imports pandas to tell lists from series: 0.3 s, a third of what training on
a little text takes. A command that has no series tells it that there is no pandas.
"""

from __future__ import annotations

import sys

import pyarrow as pa


class NoPandas:
    """Finds no pandas, and leaves all other modules to the finders behind it."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ImportError("left out by tokpack")


def leave_pandas_out() -> None:
    """pyarrow asks once in a process, here; without effect if pandas is there already."""
    if "pandas" in sys.modules:
        return
    finder = NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
