"""Work of one process in threads: items are taken, worked on, and their results used, all at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, TypeVar

IN_FLIGHT = 2**24
"""Bytes of work that wait for each thread."""

PATIENCE_SECONDS = 3
"""How long an interrupted pipeline waits for an item that is being read, from a slow disk or server."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], weight: Callable[[Item], int], workers: int
) -> Iterator[Result]:
    """Applies a function that releases Python's lock to each item, in `workers` threads; results come in order.

    Where there are several, one more thread takes the items, so that reading goes on while results are used. Items in
    flight weigh at most IN_FLIGHT a worker together, or are one heavier item a worker. What is raised while an item is
    taken is raised where its result would come.
    """
    if workers == 1:
        yield from map(function, items)
        return
    window = Window(workers)
    under_way: SimpleQueue[tuple[int, Future[Result]] | None] = SimpleQueue()
    pool = ThreadPoolExecutor(workers)

    def take_items() -> None:
        try:
            for item in items:
                size = weight(item)
                if not window.enter(size):
                    return
                under_way.put((size, pool.submit(function, item)))
                del item
        except BaseException as error:
            under_way.put((0, failed(error)))
        finally:
            under_way.put(None)

    taker = threading.Thread(target=take_items, daemon=True)
    taker.start()
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
        pool.shutdown(cancel_futures=True)
        taker.join(PATIENCE_SECONDS)


def failed(error: BaseException) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


class Window:
    """How much is in flight between the thread that takes items and the one that uses results."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._count = self._size = 0
        self._open = True
        self._changed = threading.Condition()

    def enter(self, size: int) -> bool:
        """Waits for room for an item; False when none will come."""
        with self._changed:
            self._changed.wait_for(lambda: not self._open or self._has_room(size))
            self._count += 1
            self._size += size
            return self._open

    def leave(self, size: int) -> None:
        with self._changed:
            self._count -= 1
            self._size -= size
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._open = False
            self._changed.notify()

    def _has_room(self, size: int) -> bool:
        heavy = self._size + size > self._workers * IN_FLIGHT
        return self._count < (self._workers if heavy else 4 * self._workers)
