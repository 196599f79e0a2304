"""Kills builds of a small project at random instants: the build itself, any process that it started, or all at once.

    python -m tests.kill_driver FOLDER KILLS SEED

The builds are forked from this process, which built the project before, so that no time goes into starting Python and
the instants are spread over the whole build. After each kill the store must be valid; now and then, and whenever a
build lives to its end, the bytes and versions must be those of an undisturbed one. Prints a JSON object: kills by kind,
builds that were completed, failures.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.small_project import SmallProject, write_small_project
from tests.store_checks import content_of, faults_of, versions_of
from tokpack_core.errors import TokpackError
from tokpack_core.store import objects
from tokpack_core.store.store import open_store

WORKERS = 2
COMPLETE_EVERY = 20
DONE, SHOWN, TRACEBACK = 0, 3, 4
KINDS = ("build", "one of its processes", "all of them")


def write_larger_project(folder: Path) -> SmallProject:
    """A small project whose normalization and encoding are worth worker processes."""
    project = write_small_project(folder)
    for number in range(12):
        lines = [
            json.dumps({"id": f"{number}-{row}", "text": f"row {row} of file {number}. " * 60, "lang": "en"}) + "\n"
            for row in range(500)
        ]
        (folder / "data" / "docs" / f"more-{number:02d}.jsonl").write_text("".join(lines), encoding="utf-8")
    return project


def begin_build(project: SmallProject, said: Path) -> int:
    """The process id of a build that leads a process group of its own."""
    said.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        code = TRACEBACK
        try:
            os.setsid()
            project.build(workers=WORKERS)
            code = DONE
        except TokpackError as shown:
            said.write_text(str(shown))
            code = SHOWN
        except BaseException:
            said.write_text(traceback.format_exc())
        finally:
            os._exit(code)
    return child


def end_of(process: int) -> int | None:
    """Exit code of a child process; None while it runs."""
    found, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def processes_of(process: int) -> list[int]:
    """All that a process started and that these started."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [found for child in map(int, children) for found in (child, *processes_of(child))]


def kill(build: int, kind: str, chance: random.Random) -> str | None:
    """What was killed, if it was there to be killed."""
    started = processes_of(build)
    victims = {"build": [build], "all of them": [build, *started]}.get(kind, started and [chance.choice(started)])
    for victim in victims:
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            return None
    return kind if victims else None


class Driver:
    def __init__(self, folder: Path, seed: int) -> None:
        self.project = write_larger_project(folder / "killed")
        self.said = folder / "said"
        self.chance = random.Random(seed)
        self.kills: Counter[str] = Counter()
        self.complete = 0
        self.failures: list[str] = []
        undisturbed = write_larger_project(folder / "undisturbed")
        undisturbed.build(workers=1)
        wanted = open_store(undisturbed.store)
        self.contents, self.versions = content_of(wanted), versions_of(wanted)
        begin = time.monotonic()
        os.waitpid(begin_build(self.project, self.said), 0)
        self.seconds = time.monotonic() - begin
        self.judge_complete("undisturbed, in a process of its own")

    def judge_complete(self, where: str) -> None:
        store = open_store(self.project.store)
        self.failures += [f"{where}: {fault}" for fault in faults_of(store)]
        if not content_of(store).items() >= self.contents.items() or versions_of(store) != self.versions:
            self.failures.append(f"{where}: other bytes or versions")
        objects.remove_folder(self.project.store)
        self.complete += 1

    def run(self, kills: int) -> None:
        while self.kills.total() < kills:
            kind = self.chance.choice(KINDS)
            wait = self.chance.uniform(0, self.seconds)
            where = f"kill {self.kills.total() + 1} of {kind} after {wait:.2f} s"
            build = begin_build(self.project, self.said)
            until = time.monotonic() + wait
            code = None
            while code is None and time.monotonic() < until:
                time.sleep(0.002)
                code = end_of(build)
            killed = kill(build, kind, self.chance) if code is None else None
            if code is None:
                code = os.waitstatus_to_exitcode(os.waitpid(build, 0)[1])
            self.judge(where, code, killed)
            if killed:
                self.kills[killed] += 1
            if (self.project.store / "store.json").exists():
                self.failures += [f"{where}: {fault}" for fault in faults_of(open_store(self.project.store))]
            if killed and self.kills.total() % COMPLETE_EVERY == 0:
                print(f"{self.kills.total()} kills, {self.complete} complete", file=sys.stderr)
                code = os.waitstatus_to_exitcode(os.waitpid(begin_build(self.project, self.said), 0)[1])
                self.judge(f"{where}, the run after it", code, None)
            if code == DONE:
                self.judge_complete(where)

    def judge(self, where: str, code: int, killed: str | None) -> None:
        """A build that lost one of its processes says so in one sentence, or did without it."""
        said = self.said.read_text() if self.said.exists() else ""
        allowed = {None: {DONE}, "one of its processes": {DONE, SHOWN}}.get(killed, {DONE, -signal.SIGKILL})
        if code not in allowed or "\n" in said:
            self.failures.append(f"{where}: exit {code} {said}")


def main(folder: Path, kills: int, seed: int) -> None:
    driver = Driver(folder, seed)
    driver.run(kills)
    print(json.dumps({"kills": driver.kills, "complete": driver.complete, "failures": driver.failures}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
