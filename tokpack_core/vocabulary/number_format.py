"""Numbers as people read them."""

from __future__ import annotations

MAGNITUDES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


def abbreviated(number: int) -> str:
    """1000 as 1k, 2500000 as 2.5M."""
    for size, unit in MAGNITUDES:
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return str(number)


def byte_size(number: int) -> str:
    """112400000 as 112 MB, in powers of ten."""
    for size, unit in MAGNITUDES:
        if number >= size:
            return f"{number / size:.3g} {unit}B"
    return f"{number} bytes"


def percent(share: float) -> str:
    """Four significant digits, so that what just misses a limit does not read as the limit."""
    return f"{share * 100:.4g} %"


def decimal(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
