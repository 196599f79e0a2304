"""What every family says of the text that it is trained on: that there is none, or that it holds special tokens."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

NO_TEXT = (
    "the training sample holds no text: name files that hold some; in a configuration, check `train_on` and the train "
    "split of its corpora"
)
IN_TEXT = "special_tokens_in_text"
"""The training figure that counts special tokens in the text."""


@dataclass
class LookAlikes:
    """Counts strings of special tokens in the text, where they are ordinary text."""

    strings: Collection[str]
    found: int = 0

    def counting(self, texts: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for array in texts:
            for string in self.strings:
                self.found += pc.sum(pc.count_substring(array, string)).as_py() or 0
            yield array

    def figures(self) -> dict[str, int]:
        """As training figures have it: nothing if there were none."""
        return {IN_TEXT: self.found} if self.found else {}
