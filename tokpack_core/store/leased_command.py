"""Runs a foreign command, such as a training job, that holds objects of the store while it runs."""

from __future__ import annotations

import os
import shutil
import signal
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tokpack_core.errors import TokpackError
from tokpack_core.store.files import store_errors
from tokpack_core.store.holders import holder_of
from tokpack_core.store.leases import Lease, require_held
from tokpack_core.store.objects import ObjectRef
from tokpack_core.store.store import Store

FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def run_with_lease(store: Store, refs: Sequence[ObjectRef], command: list[str]) -> int:
    """Runs `command` and returns its exit code, 128 + n for a signal n; `refs` are held as long as it runs.

    The lease names the command's process beside this one, so it outlives a crash of this one. Processes that the
    command leaves behind hold nothing.

    Raises:
        StoreError: the store cannot be written, or one of `refs` is not there.
        TokpackError: there is no such command.
    """
    if shutil.which(command[0]) is None:
        raise TokpackError(f"there is no command {command[0]}; name a program on the PATH, or by its path")
    lease = Lease(store, uuid.uuid4().hex)
    purpose = f"`{' '.join(command)}`"
    try:
        lease.begin([holder_of(os.getpid())], refs, purpose)
        require_held(store, refs)
        child, go = start_waiting(store, command)
        with forwarded_signals(child):
            try:
                lease.begin([holder_of(os.getpid()), holder_of(child)], refs, purpose)
                lease.keep_touching()
                os.write(go, b"go")
            finally:
                os.close(go)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return code if code >= 0 else 128 - code
    finally:
        lease.end()


def start_waiting(store: Store, command: list[str]) -> tuple[int, int]:
    """A process that becomes `command` when something is written to the descriptor, and ends when it is closed."""
    gate, go = os.pipe()
    with store_errors(store.root, "start a process"):
        child = os.fork()
    if child == 0:
        try:
            os.close(go)
            if os.read(gate, 2):
                os.execvp(command[0], command)
        finally:
            os._exit(127)
    os.close(gate)
    return child, go


@contextmanager
def forwarded_signals(child: int) -> Iterator[None]:
    """Hands signals on to the child; an interrupt from the terminal reaches it by itself."""
    before = {number: signal.signal(number, lambda number, _: os.kill(child, number)) for number in FORWARDED}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
