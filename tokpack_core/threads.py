"""Work of one process in threads: items are taken, worked on, and their results used, all at the same time.

What is worked on may itself be such a pipeline. When an outer one ends early, by an error or an interrupt, those within
it end at their next item. Threads are daemons, so that a process ends though one of them waits for a server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import closing
from queue import SimpleQueue
from typing import Any, TypeVar

IN_FLIGHT = 2**24
"""Bytes of work that wait for each thread."""

PATIENCE_SECONDS = 3
"""How long a pipeline that ends early waits for what its threads are at."""

Item = TypeVar("Item")
Result = TypeVar("Result")

outer = threading.local()
"""`window`: that of the pipeline whose item this thread works on."""


def map_in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], weight: Callable[[Item], int], workers: int
) -> Iterator[Result]:
    """Applies a function that releases Python's lock to each item, in `workers` threads; results come in order.

    Where there are several, one more thread takes the items, so that reading goes on while results are used. Items in
    flight weigh at most IN_FLIGHT a worker together, or are one heavier item a worker. What is raised while an item is
    taken is raised where its result would come.

    Raises:
        CancelledError: the pipeline that this one works for has ended.
    """
    window: Window | None = getattr(outer, "window", None)
    in_order = mapped(function, items) if workers == 1 else mapped_ahead(function, items, weight, workers)
    with closing(in_order) as results:
        for result in results:
            if window is not None and not window.open:
                raise CancelledError
            yield result
            del result


def mapped(function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
    yield from map(function, items)


def mapped_ahead(
    function: Callable[[Item], Result], items: Iterable[Item], weight: Callable[[Item], int], workers: int
) -> Generator[Result]:
    window = Window(workers)
    submitted: SimpleQueue[tuple[Item, Future[Result]] | None] = SimpleQueue()
    under_way: SimpleQueue[tuple[int, Future[Result]] | None] = SimpleQueue()

    def take_items() -> None:
        try:
            for item in items:
                size = weight(item)
                if not window.enter(size):
                    return
                future: Future[Result] = Future()
                submitted.put((item, future))
                under_way.put((size, future))
                del item, future
        except BaseException as error:
            under_way.put((0, failed(error)))
        finally:
            under_way.put(None)

    def work() -> None:
        outer.window = window
        while (job := submitted.get()) and window.open:
            item, future = job
            del job
            try:
                future.set_result(function(item))
            except BaseException as error:
                future.set_exception(error)
            del item, future

    threads = [threading.Thread(target=target, daemon=True) for target in (take_items, *[work] * workers)]
    for thread in threads:
        thread.start()
    try:
        while entry := under_way.get():
            size, future = entry
            del entry
            result = future.result()
            del future
            window.leave(size)
            yield result
            del result
    finally:
        window.close()
        for _ in range(workers):
            submitted.put(None)
        for thread in threads:
            thread.join(PATIENCE_SECONDS)


def failed(error: BaseException) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


class Window:
    """How much is in flight between the thread that takes items and the one that uses results.

    Attributes:
        open: results are still wanted.
    """

    def __init__(self, workers: int) -> None:
        self.open = True
        self._workers = workers
        self._count = self._size = 0
        self._changed = threading.Condition()

    def enter(self, size: int) -> bool:
        """Waits for room for an item; False when none will come."""
        with self._changed:
            self._changed.wait_for(lambda: not self.open or self._has_room(size))
            self._count += 1
            self._size += size
            return self.open

    def leave(self, size: int) -> None:
        with self._changed:
            self._count -= 1
            self._size -= size
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self.open = False
            self._changed.notify()

    def _has_room(self, size: int) -> bool:
        heavy = self._size + size > self._workers * IN_FLIGHT
        return self._count < (self._workers if heavy else 4 * self._workers)
