"""Builds assets of a small project and stops at one file operation after another; run with file_faults.c preloaded.

    python -m tests.fault_driver FOLDER MODE ERROR STRIDE [ASSET...]

After each fault the store must be valid, and a second run must give the bytes and versions of an undisturbed one
without repeating a unit whose action is recorded. Many operations leave the same store, apart from garbage in `tmp/`
and dead leases: what the second run makes of it is seen once, and again after every tenth fault, whatever the garbage.
Prints a JSON object: faults by asset, sentences shown, failures.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import sys
import traceback
from collections import Counter
from pathlib import Path

from tests.small_project import SmallProject, write_small_project
from tests.store_checks import content_of, faults_of, versions_of
from tokpack_core.errors import TokpackError
from tokpack_core.stages.asset import Workplace
from tokpack_core.stages.graph import AssetPlan, plan_graph
from tokpack_core.store import actions, objects, verified
from tokpack_core.store.store import Store

ARM = ctypes.CDLL(None)
ARM.faults_counted.restype = ctypes.c_long
RUN_AGAIN_EVERY = 10
KILLED, SHOWN, TRACEBACK, DONE, BEYOND = 9, 3, 4, 0, 5


def build_armed(work: Workplace, plan: AssetPlan, at: int, mode: int, error: int, said: Path) -> int:
    """Exit code of a child that builds the asset with a fault at operation `at`."""
    child = os.fork()
    if child == 0:
        code = TRACEBACK
        try:
            ARM.faults_arm(str(work.store.root).encode(), ctypes.c_long(at), mode, error)
            try:
                plan.build(work)
                code = DONE
            except TokpackError as shown:
                ARM.faults_arm(b"", ctypes.c_long(0), 0, 0)
                said.write_text(str(shown))
                code = SHOWN
            if ARM.faults_counted() and ARM.faults_counted() < at:
                code = BEYOND
        except BaseException:
            ARM.faults_arm(b"", ctypes.c_long(0), 0, 0)
            said.write_text(traceback.format_exc())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def state_of(store: Store) -> bytes:
    """All that a build looks at: names, modes and content, and which files count as compared."""
    digest = hashlib.sha256()
    for folder in (store.objects, store.actions, store.assets, store.pins):
        for path in sorted(folder.rglob("*")):
            digest.update(f"{path} {path.stat().st_mode}\n".encode())
            if path.is_file():
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    for ref in objects.list_objects(store):
        folder = objects.folder_of(store, ref)
        noted = verified.load(verified.path_of(store, ref.stage, ref.digest), folder)
        same = sorted(name for name, seen in noted.items() if objects.still_the_same({folder / name: seen}))
        digest.update(f"{ref} {sorted(noted)} {same}\n".encode())
    return digest.digest()


class Driver:
    def __init__(self, project: SmallProject, mode: int, error: int, stride: int) -> None:
        self.project, self.mode, self.error, self.stride = project, mode, error, stride
        self.said = project.folder / "said"
        self.failures: list[str] = []
        self.sentences: Counter[str] = Counter()

    def faults_in(self, plan: AssetPlan, before: Path, after: Path) -> int:
        """Faults injected into the build of one asset on the store `before`, which undisturbed gives `after`."""
        wanted = self.at(after)
        contents, versions = content_of(wanted.store), versions_of(wanted.store)
        records = len(actions.list_records(wanted.store))
        recorded = len(actions.list_records(self.at(before).store))
        units = records - recorded
        seen: set[bytes] = set()
        for number in range(1, 10**6):
            at = 1 + (number - 1) * self.stride
            remove(self.project.store)
            shutil.copytree(before, self.project.store)
            work = self.project.work()
            self.said.unlink(missing_ok=True)
            code = build_armed(work, plan, at, self.mode, self.error, self.said)
            if code == BEYOND:
                found = f"{number - 1} faults, {len(seen)} stores, {len(self.failures)} failures so far"
                print(f"{plan.key}: {found}", file=sys.stderr)
                return number - 1
            where = f"{plan.key}, operation {at}"
            self.judge(where, code)
            state = state_of(work.store)
            if state in seen and number % RUN_AGAIN_EVERY:
                continue
            seen.add(state)
            self.failures += [f"{where}: {fault}" for fault in faults_of(work.store)]
            there = len(actions.list_records(work.store)) - recorded
            built = plan.build(work)
            if built.units_run != units - there:
                self.failures.append(f"{where}: {built.units_run} units run again, {there} of {units} were recorded")
            if content_of(work.store) != contents or versions_of(work.store) != versions:
                self.failures.append(f"{where}: the second run gave other bytes or versions")
        return 0

    def judge(self, where: str, code: int) -> None:
        said = self.said.read_text() if self.said.exists() else ""
        if code == SHOWN:
            self.sentences[said.replace(str(self.project.folder), "")] += 1
            if "\n" in said or str(self.project.store) not in said:
                self.failures.append(f"{where}: not one sentence that names the store: {said}")
        elif code == TRACEBACK or code != (KILLED if self.mode == 1 else DONE):
            self.failures.append(f"{where}: exit {code} {said}")

    def at(self, store: Path) -> Workplace:
        remove(self.project.store)
        shutil.copytree(store, self.project.store)
        return self.project.work()


def remove(folder: Path) -> None:
    if folder.exists():
        for parent, _, _ in os.walk(folder):
            os.chmod(parent, 0o755)
        shutil.rmtree(folder)


def main(folder: Path, mode: int, error: int, stride: int, chosen: list[str]) -> None:
    project = write_small_project(folder)
    stores: list[Path] = []
    work = project.work()
    plans = plan_graph(work.project)
    for number, plan in enumerate(plans):
        stores.append(folder / f"before-{number}")
        shutil.copytree(project.store, stores[-1])
        plan.build(work)
    stores.append(folder / "complete")
    shutil.copytree(project.store, stores[-1])
    driver = Driver(project, mode, error, stride)
    faults = {
        plan.key: driver.faults_in(plan, stores[number], stores[number + 1])
        for number, plan in enumerate(plans)
        if not chosen or plan.key in chosen
    }
    print(json.dumps({"faults": faults, "sentences": driver.sentences, "failures": driver.failures}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
