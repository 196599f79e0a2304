"""Which process holds a lease, and whether it still runs.

A process is named by its host, the boot and the pid namespace in which its pid counts, and its start time, since pids
are used again. Only a process of this very boot and namespace can be asked for; of any other (another host, a
container, an earlier boot: hosts of one name exist) nothing is known but when it last touched its file.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

STAT_STATE = 0
STAT_START_TIME = 19
"""Places in /proc/<pid>/stat after the command's name (proc(5))."""
ENDED = ("Z", "X")


@dataclass(frozen=True)
class Holder:
    """A process, as a lease names it.

    Attributes:
        boot: boot id of the kernel and the pid namespace.
        started: start time in clock ticks since boot; None where the system does not tell.
    """

    host: str
    boot: str
    pid: int
    started: int | None

    def to_json(self) -> dict[str, Any]:
        return {"host": self.host, "boot": self.boot, "pid": self.pid, "started": self.started}


@cache
def this_boot() -> str:
    """Boot id and pid namespace: equal for two processes that see each other's pids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def process_state(pid: int) -> tuple[str, int | None] | None:
    """State letter and start time of a process; None if there is none of that pid."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[STAT_STATE], int(fields[STAT_START_TIME])
    except (OSError, IndexError, ValueError):
        # No /proc, or one that hides other users' processes.
        return ("?", None) if answers(pid) else None


def answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def lives(pid: int) -> bool:
    """Whether a process runs: one that ended is no more, even while nobody has asked for its exit code."""
    state = process_state(pid)
    return state is not None and state[0] not in ENDED


def holder_of(pid: int) -> Holder:
    state = process_state(pid)
    return Holder(socket.gethostname(), this_boot(), pid, state[1] if state else None)


def can_be_asked(holder: Holder) -> bool:
    return holder.boot == this_boot()


def runs(holder: Holder) -> bool:
    """Whether a holder that can be asked still runs."""
    state = process_state(holder.pid)
    if state is None or state[0] in ENDED:
        return False
    return None in (state[1], holder.started) or state[1] == holder.started


def is_live(holders: Sequence[Holder], touched: float, expires: float) -> bool:
    """Whether one of the holders runs, or one that cannot be asked touched its file in the last `expires` seconds."""
    asked = [holder for holder in holders if can_be_asked(holder)]
    elsewhere = len(asked) < len(holders) or not holders
    return any(map(runs, asked)) or (elsewhere and time.time() - touched < expires)
