"""Runs units of work on a Ray cluster whose nodes see sources and store (or output) under the same paths.

A unit is one Ray task. At most IN_FLIGHT tasks a core are submitted at a time; results come in the order of the items.
A task whose worker or node is lost runs again elsewhere: that is safe because a unit is published under its content,
so doing it twice gives one object, and whoever finds it published does nothing. What a task raises itself is not
repeated, it is the same everywhere; only trouble with files may be a node's own, so its name is told.

A node with other code or libraries could publish other bytes under the same name, so each task first compares its
node's installation with the one that sent it; function and item travel pickled, to be opened after that.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tokpack_core.errors import ConfigError, LostUnitError, TokpackError
from tokpack_core.installation import differences, installation

IN_FLIGHT = 2
CONNECT_SECONDS = 10
RETRIES = 5
"""How often a task is repeated whose worker or node was lost."""
NOT_INSTALLED = "function failed to import on the worker"

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
        shared = ray.put((installation(), pickle.dumps(function)))
        most = max(1, int(ray.cluster_resources().get("CPU", 1))) * IN_FLIGHT
        waiting: deque[Any] = deque()
        try:
            for item in items:
                if len(waiting) >= most:
                    yield result_of(ray, waiting.popleft())
                waiting.append(run.remote(shared, pickle.dumps(item)))
            while waiting:
                yield result_of(ray, waiting.popleft())
        finally:
            for task in waiting:
                ray.cancel(task, force=True)


def apply(shared: tuple[dict[str, str], bytes], item: bytes) -> Any:
    """Runs on the cluster: the pickled function of the pickled item.

    Raises:
        TokpackError: this node has another tokpack, or cannot use a file; names the node.
    """
    required, function = shared
    if other := differences(installation(), required):
        raise TokpackError(
            f"the Ray node {socket.gethostname()} has {', '.join(other)}; install there what the calling machine has, "
            "and start the node again"
        )
    try:
        return pickle.loads(function)(pickle.loads(item))
    except TokpackError as error:
        if isinstance(error.__cause__, OSError):
            raise type(error)(f"{error} (on the Ray node {socket.gethostname()})") from error
        raise


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
                f"no Ray cluster answers at {address} ({said}); start one with `ray start --head`, or name its address "
                "(engine.address, --ray-address)"
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
        if NOT_INSTALLED in str(error.cause):
            said = str(error.cause).strip().splitlines()[-1]
            address = re.search(r"ip=([^)]+)", str(error))
            node = address[1] if address else "of a unit"
            raise TokpackError(
                f"the Ray node {node} cannot import tokpack ({said}); install there what the calling machine has, and "
                "start the node again"
            ) from error
        raise error.cause from error
    except ray.exceptions.RayError as error:
        said = " ".join(str(error).split())[:300]
        raise LostUnitError(
            f"the Ray cluster lost a unit {RETRIES + 1} times ({type(error).__name__}: {said}); most likely its memory "
            "is short: start its nodes with fewer CPUs (ray start --num-cpus); finished units are kept of a build, and "
            "of an encode with --resume"
        ) from error
