"""A user's own entries as seeds of Unigram: morphemes, or the words of a domain, one a line.

Each entry is a seed as it stands and with a space before it, with the count of its occurrences in the training text.
One that does not occur, or that no piece can be (two scripts, more than 16 characters, digits), is left out by the
trainer. Seeds are where training starts: it keeps those that the text needs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.sentencepiece.piece_trie import piece_trie
from tokpack_core.tokenizers.sentencepiece.piece_trie_kernels import BEGIN, count_pieces
from tokpack_core.tokenizers.sentencepiece.seed_pieces import SeedPieces


def read_seed_vocabulary(path: Path) -> list[str]:
    """Entries in the order of the file, each once. Raises InputError for a file without any, or that is no UTF-8."""
    try:
        lines = path.read_bytes().decode("utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"`seed_vocabulary` {path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"`seed_vocabulary` {path}: byte {error.start} is no UTF-8: save the file as UTF-8") from None
    entries = list(dict.fromkeys(line.rstrip() for line in lines if line.strip()))
    if not entries:
        raise InputError(f"`seed_vocabulary` {path} has no entries: write one a line")
    return entries


def with_entries(seeds: SeedPieces, entries: list[str], words: PretokenCounts) -> SeedPieces:
    """The entries that occur in the words, then the other seeds."""
    forms = list(dict.fromkeys(form for entry in entries for form in (entry, f" {entry.lstrip()}") if len(form) > 1))
    trie = piece_trie(forms, [BEGIN] * len(forms), range(len(forms)))
    totals = np.zeros(len(forms), np.int64)
    count_pieces(words.data, words.offsets, words.counts, trie.keys, trie.children, trie.tokens, totals)
    found = np.flatnonzero(totals).tolist()
    own = {forms[place] for place in found}
    others = np.array([piece not in own for piece in seeds.pieces], bool)
    pieces = [piece for piece, other in zip(seeds.pieces, others, strict=True) if other]
    return SeedPieces([forms[place] for place in found] + pieces, np.concatenate([totals[found], seeds.counts[others]]))


def entries_kept(entries: list[str], tokens: list[bytes]) -> int:
    """How many entries are in a vocabulary, as they stand or after a space."""
    known = set(tokens)
    return sum(entry.encode() in known or b" " + entry.encode() in known for entry in entries)
