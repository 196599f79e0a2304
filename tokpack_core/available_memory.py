"""Memory that this process may still take: what the system has free, or what its control groups leave, if less.

Of a control group (version 2: memory.max and memory.current in its folder and those above) file pages that are not in
use count as free.
"""

from __future__ import annotations

from pathlib import Path

MEMINFO = Path("/proc/meminfo")
OWN_GROUP = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")


def available_bytes() -> int | None:
    """None where the system does not tell."""
    found = [left for left in (left_on_system(), *map(left_in_group, groups())) if left is not None]
    return min(found, default=None)


def left_on_system() -> int | None:
    try:
        lines = MEMINFO.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), None)


def groups() -> list[Path]:
    """The folder of the group that this process is in, and those above; in a container its own is the topmost."""
    try:
        own = next(line[3:] for line in OWN_GROUP.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return [GROUPS]
    folder = GROUPS / own.strip("/")
    return [folder, *(above for above in folder.parents if above.is_relative_to(GROUPS))]


def left_in_group(folder: Path) -> int | None:
    try:
        limit, used = (folder / "memory.max").read_text().strip(), int((folder / "memory.current").read_text())
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return None if limit == "max" else max(int(limit) - used + int(statistics.get("inactive_file", 0)), 0)
    except (OSError, ValueError):
        return None
