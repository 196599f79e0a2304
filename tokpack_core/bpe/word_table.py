"""Owns the arrays of a word table (see `word_table_kernels`) and grows them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.word_table_kernels import fill_slots

SMALLEST = 1 << 12


def empty_entries() -> npt.NDArray[np.uint64]:
    return np.empty((SMALLEST, 4), np.uint64)


@dataclass
class WordTable:
    slots: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(2 * SMALLEST, np.uint64))
    entries: npt.NDArray[np.uint64] = field(default_factory=empty_entries)
    arena: npt.NDArray[np.uint8] = field(default_factory=lambda: np.empty(16 * SMALLEST, np.uint8))
    used: int = 0
    """entries"""
    filled: int = 0
    """bytes of the arena"""

    def reserve(self, words: int, size: int) -> None:
        """Makes room for more words of `size` bytes together."""
        needed = self.used + words
        if needed > len(self.entries):
            grown = np.empty((max(needed, len(self.entries) * 3 // 2), 4), np.uint64)
            grown[: self.used] = self.entries[: self.used]
            self.entries = grown
        if self.filled + size > self.arena.size:
            arena = np.empty(max(self.filled + size, self.arena.size * 3 // 2), np.uint8)
            arena[: self.filled] = self.arena[: self.filled]
            self.arena = arena
        if 2 * needed > self.slots.size:
            self.slots = np.zeros(1 << (2 * needed - 1).bit_length(), np.uint64)
            fill_slots(self.slots, self.entries, self.used)

    @property
    def size(self) -> int:
        """Bytes of memory in use."""
        return self.slots.nbytes + self.used * 32 + self.filled

    def clear(self) -> None:
        """Forgets all words and gives the memory back."""
        self.__init__()  # type: ignore[misc]
