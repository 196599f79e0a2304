"""Runs units of work on a Ray cluster whose nodes see the store and the sources under the same paths.

A unit is one Ray task. At most IN_FLIGHT tasks a core are submitted at a time; results come in the order of the items.
A task whose worker or node is lost runs again elsewhere: that is safe because a unit is published under its content,
so doing it twice gives one object, and whoever finds it published does nothing. What a task raises itself is not
repeated, it is the same everywhere.
"""

from __future__ import annotations

import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tokpack_core.errors import ConfigError, TokpackError

IN_FLIGHT = 2
CONNECT_SECONDS = 10
RETRIES = 5
"""How often a task is repeated whose worker or node was lost."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class RayEngine:
    """`address` of a running cluster as ray.init takes it: `auto`, `host:port` or `ray://host:port`."""

    address: str = "auto"

    @property
    def workers(self) -> int:
        """Cores of this machine, for what does not run on the cluster."""
        return len(os.sched_getaffinity(0))

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Applies a picklable function of an installed package to each item.

        Raises:
            TokpackError: there is no such cluster, or a unit lost its worker again and again.
        """
        if not items:
            return
        ray = connect(self.address)
        run = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=False)(apply)
        shared = ray.put(function)
        most = max(1, int(ray.cluster_resources().get("CPU", 1))) * IN_FLIGHT
        waiting: deque[Any] = deque()
        try:
            for item in items:
                if len(waiting) >= most:
                    yield result_of(ray, waiting.popleft())
                waiting.append(run.remote(shared, item))
            while waiting:
                yield result_of(ray, waiting.popleft())
        finally:
            for task in waiting:
                ray.cancel(task, force=True)


def apply(function: Callable[[Item], Result], item: Item) -> Result:
    return function(item)


def connect(address: str) -> Any:
    """The module ray, connected; a connection of this process is used again."""
    try:
        import ray
    except ImportError:
        raise ConfigError("engine ray needs the package ray: pip install 'tokpack[ray]'") from None
    if not ray.is_initialized():
        try:
            require_listener(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, RuntimeError, ValueError) as error:
            said = " ".join(str(error).split())[:300]
            raise TokpackError(
                f"engine.address {address}: no Ray cluster answers there ({said}); start one with `ray start --head`, "
                "or name its address"
            ) from error
    return ray


def require_listener(address: str) -> None:
    """Raises OSError or ValueError where nothing listens; ray.init would try again for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()


def result_of(ray: Any, task: Any) -> Any:
    try:
        return ray.get(task)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    except ray.exceptions.RayError as error:
        said = " ".join(str(error).split())[:300]
        raise TokpackError(
            f"the Ray cluster lost a unit {RETRIES + 1} times ({type(error).__name__}: {said}); most likely its memory "
            "is short: start its nodes with fewer CPUs (ray start --num-cpus), finished units are kept"
        ) from error
