"""How far a command has come, on stderr: a bar with rate and time left for people, a line now and then for logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

SECONDS_BETWEEN_LINES = 30.0

OnDone = Callable[[int], None]
"""Takes how much is done so far, of the total."""


@contextmanager
def progress(label: str, total: int, unit: str, quiet: bool) -> Iterator[OnDone]:
    """Shows `label` and how much of `total` (counted in `unit`, such as B or tokens) is done; nothing if quiet."""
    console = Console(stderr=True)
    begin = time.monotonic()

    def rate(done: int) -> str:
        return f"{done / 1e6 / max(time.monotonic() - begin, 1e-9):,.1f} M{unit}/s"

    if quiet:
        yield lambda done: None
    elif console.is_terminal:
        # Nobody else needs the bar, which takes as long to import as a small file takes to read.
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rate]}")]
        with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bars:
            task = bars.add_task(label, total=total, rate="")
            yield lambda done: bars.update(task, completed=done, rate=rate(done))
    else:
        yield Lines(console, label, total, rate).show


class Lines:
    """Where there is no terminal: a line at most every half minute."""

    def __init__(self, console: Console, label: str, total: int, rate: Callable[[int], str]) -> None:
        self._console = console
        self._label = label
        self._total = total
        self._rate = rate
        self._begin = self._last = time.monotonic()

    def show(self, done: int) -> None:
        now = time.monotonic()
        if now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            left = (now - self._begin) * (self._total - done) / max(done, 1)
            share = done / max(self._total, 1)
            line = f"{self._label}: {share:.0%} at {self._rate(done)}, {left:,.0f} s left"
            self._console.print(line, highlight=False, soft_wrap=True)
