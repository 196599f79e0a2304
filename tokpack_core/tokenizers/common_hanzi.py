"""The common Hanzi: level 1 of GB/T 2312-1980, rows 16 to 55, which any codec of that standard holds."""

from __future__ import annotations


def level_one_hanzi() -> list[str]:
    """3,755 characters ordered by reading: 94 a row, the last row ends at 0xD7F9."""
    codes = [(row, cell) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF) if (row, cell) <= (0xD7, 0xF9)]
    return [bytes(code).decode("gb2312") for code in codes]
