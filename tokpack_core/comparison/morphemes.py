"""Do tokens end where morphemes end? Boundary F1 against a gold list.

The list is text, a word a line: the word, a tab, its morphemes with spaces between (`unhappily<TAB>un happi ly`); where
the morphemes do not spell the word the line is an error. A word is encoded behind a space, as inside a sentence.
Precision and recall count boundaries inside words, over all words together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tokpack_core.errors import InputError
from tokpack_core.tokenizers.protocol import Tokenizer


@dataclass(frozen=True)
class GoldWords:
    """words: as in the list; boundaries: places between morphemes, in bytes from the word's start."""

    words: tuple[str, ...]
    boundaries: tuple[frozenset[int], ...]


def read_gold_words(path: Path) -> GoldWords:
    """Raises InputError, naming file and line, for anything else than a word and its morphemes."""
    words, boundaries = [], []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the gold list cannot be read as UTF-8 text ({error})") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        word, _, morphemes = line.partition("\t")
        parts = morphemes.split()
        if not parts or "".join(parts) != word:
            raise InputError(f"{path}, line {number}: write WORD<TAB>MORPHEMES, which spell the word: un happi ly")
        ends = np.cumsum([len(part.encode()) for part in parts])[:-1]
        words.append(word)
        boundaries.append(frozenset(ends.tolist()))
    if not words:
        raise InputError(f"{path} holds no word: write WORD<TAB>MORPHEMES in each line")
    return GoldWords(tuple(words), tuple(boundaries))


def boundary_scores(tokenizer: Tokenizer, gold: GoldWords) -> dict[str, Any]:
    """precision, recall and f1 (null where there is no boundary to judge), and the boundaries found and told."""
    encoded = tokenizer.encode(pa.array([f" {word}" for word in gold.words], pa.string()))
    sizes = sizes_of_entries(tokenizer)
    found = told = right = 0
    for place, true in enumerate(gold.boundaries):
        ids = encoded.ids[encoded.offsets[place] : encoded.offsets[place + 1]]
        length = len(gold.words[place].encode())
        ends = np.cumsum(sizes[ids])
        # The space in front may be an entry's own first byte, an entry, or, where white space is dropped, none.
        ends = ends - (int(ends[-1]) - length if len(ends) else 0)
        guessed = {int(end) for end in ends if 0 < end < length}
        found, told, right = found + len(guessed), told + len(true), right + len(guessed & true)
    precision, recall = (right / total if total else None for total in (found, told))
    f1 = 2 * right / (found + told) if found + told else None
    return {"words": len(gold.words), "precision": precision, "recall": recall, "f1": f1}


def sizes_of_entries(tokenizer: Tokenizer) -> NDArray[np.int64]:
    """Bytes of text of each id: int64 [vocab_size]."""
    vocabulary = tokenizer.vocabulary()
    sizes = np.zeros(tokenizer.vocab_size, np.int64)
    sizes[vocabulary["id"].to_numpy()] = pc.binary_length(vocabulary["token"]).to_numpy()
    return sizes
