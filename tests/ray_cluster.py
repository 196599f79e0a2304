"""A Ray cluster of several nodes on this machine, started by `ray start` as a user starts one.

Every `ray start --block` leads a session of its own, which all its processes and workers belong to, so a node is killed
and the cluster ends without touching another cluster of the machine.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.dagster_server import ROOT, free_port

RAY = Path(sys.executable).with_name("ray")
STARTED = "Ray runtime started."
WORKS = "ray::apply"
"""What a worker process is called while it runs a unit."""


def processes_of(session: int) -> dict[int, str]:
    """Names of the processes of a session that are not dead, by process id."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getsid(int(folder.name)) == session and (name := (folder / "cmdline").read_bytes()):
                found[int(folder.name)] = name.decode(errors="replace").strip("\0 ")
    return found


@dataclass(frozen=True)
class RayNode:
    """One `ray start --block` and all its processes; `log` is what it said."""

    process: subprocess.Popen[bytes]
    log: Path

    def wait_until_started(self, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while STARTED not in self.log.read_text():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        """As an operator ends it; what does not heed that is killed."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.kill()

    def kill(self) -> None:
        """Ends all of the node at once, as a power cut does."""
        while alive := processes_of(self.process.pid):
            for process in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            self.process.poll()
            time.sleep(0.05)
        self.process.wait()

    def units(self) -> list[int]:
        """Processes that run a unit."""
        return [process for process, name in processes_of(self.process.pid).items() if name.startswith(WORKS)]


@dataclass
class RayCluster:
    """`nodes`: the head, and those that joined it."""

    folder: Path
    port: int = field(default_factory=free_port)
    nodes: list[RayNode] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self, *arguments: str, **environment: str) -> RayNode:
        """`ray start` of a node with one CPU; functions of tests are importable there."""
        log = self.folder / f"node_{len(self.nodes)}.log"
        command = [RAY, "start", "--block", "--num-cpus=1", f"--object-store-memory={80 * 2**20}", *arguments]
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*command, "--disable-usage-stats", "--include-log-monitor=false"],
                cwd=self.folder,
                env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.nodes.append(RayNode(process, log))
        return self.nodes[-1]

    def start_head(self) -> None:
        clients = f"--ray-client-server-port={free_port()}"
        own = (f"--port={self.port}", f"--temp-dir={self.folder / 'ray'}", "--include-dashboard=false", clients)
        self.start("--head", *own).wait_until_started()

    def join(self, **environment: str) -> RayNode:
        """One more node. Nodes of one machine choose the names of their sockets as they start: one after the other."""
        node = self.start(f"--address={self.address}", **environment)
        node.wait_until_started()
        return node

    def kill_a_worker(self, seconds: float = 30) -> None:
        """Kills a process as soon as one runs a unit."""
        end = time.monotonic() + seconds
        while not (working := [process for node in self.nodes for process in node.units()]):
            assert time.monotonic() < end
            time.sleep(0.01)
        os.kill(working[0], signal.SIGKILL)


@contextmanager
def ray_cluster(nodes: int) -> Iterator[RayCluster]:
    """A cluster that ends with the block, whatever happens in it."""
    folder = Path(tempfile.mkdtemp(prefix="tokpack_ray_"))  # short: the paths of sockets may have 107 bytes
    cluster = RayCluster(folder)
    try:
        cluster.start_head()
        for _ in range(nodes - 1):
            cluster.join()
        yield cluster
    finally:
        for node in reversed(cluster.nodes):
            node.stop()
        shutil.rmtree(folder, ignore_errors=True)
