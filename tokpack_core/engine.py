"""Where units of work run: in this process, or in local worker processes.

The engine shapes no bytes: results come back in the order of the items, whatever finished first.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Protocol, TypeVar

from tokpack_core.errors import TokpackError

PATIENCE_SECONDS = 3
"""How long an interrupted worker may take to end by itself."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Where units run."""

    @property
    def workers(self) -> int:
        """Processes, or threads for work that stays in this process."""
        ...

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Applies a picklable function of an installed package to each item; results come in the order of the items.

        Raises:
            TokpackError: workers were lost.
        """
        ...


@dataclass(frozen=True)
class LocalEngine:
    """`workers` processes on this machine; 1 runs everything in the calling process."""

    workers: int

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Applies a picklable function of an installed package to each item; at most 2 x workers are in flight.

        Raises:
            TokpackError: a worker died (it was killed, or memory ran out).
        """
        workers = min(self.workers, len(items))
        return map(function, items) if workers <= 1 else in_processes(function, items, workers)


def call_apart(function: Callable[[Item], Result], item: Item) -> Result:
    """Calls a function in a process of its own, which an interrupt ends though it be in native code for hours.

    Raises:
        TokpackError: the process died.
    """
    (result,) = in_processes(function, [item], 1)
    return result


def in_processes(function: Callable[[Item], Result], items: Sequence[Item], workers: int) -> Iterator[Result]:
    context = multiprocessing.get_context("forkserver")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=end_with_parent)
    try:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            if len(waiting) >= 2 * workers:
                yield waiting.popleft().result()
            waiting.append(pool.submit(function, item))
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise TokpackError(
            "a worker process died, most likely killed for lack of memory; run again with fewer workers "
            "(TOKPACK_WORKERS), finished units are kept"
        ) from error
    except BaseException as error:
        if not isinstance(error, Exception):
            # An interrupt does not wait for units, which may run for minutes; nothing of theirs has a name yet.
            end_processes(set(multiprocessing.active_children()) - others)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def threads_of_each(engine: Engine, units: int) -> int:
    """Threads that each of so many units may use, where there are fewer units than workers on this machine."""
    return max(engine.workers // max(units, 1), 1) if isinstance(engine, LocalEngine) else 1


def end_processes(processes: Iterable[BaseProcess]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(PATIENCE_SECONDS)
        if process.is_alive():
            process.kill()


def end_with_parent() -> None:
    """Ends a worker process when the one that it works for is killed; waiting for work, it would not notice."""

    def work() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=work, name="end-with-parent", daemon=True).start()


def refuse_of_other_engine(engine: str, address: str | None, workers: int | None) -> None:
    """Raises TokpackError for an option of the engine that is not used."""
    if engine == "local" and address is not None:
        raise TokpackError("--ray-address goes with --engine ray: add it, or leave out the address")
    if engine != "local" and workers is not None:
        raise TokpackError("--workers is for the engine local: a Ray cluster uses the CPUs that its nodes offer")


def default_engine() -> LocalEngine:
    """As many workers as TOKPACK_WORKERS says, else one for each core this process may use.

    Raises:
        TokpackError: TOKPACK_WORKERS is not a positive number.
    """
    setting = os.environ.get("TOKPACK_WORKERS", "")
    if setting and not (setting.isdecimal() and int(setting) > 0):
        raise TokpackError(f"TOKPACK_WORKERS={setting!r} is not a number of processes, 1 or more")
    return LocalEngine(int(setting) if setting else len(os.sched_getaffinity(0)))
