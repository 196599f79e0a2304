"""Units on a real Ray cluster of three nodes on this machine: the objects of a local run, whatever is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.small_project import write_small_project
from tests.test_engine import refuse_three, square_slowly_at_first
from tokpack_core import ray_engine
from tokpack_core.engine import LocalEngine
from tokpack_core.errors import InputError, TokpackError
from tokpack_core.ray_engine import RayEngine
from tokpack_core.stages import unit as unit_module
from tokpack_core.stages.unit import Unit, run_units
from tokpack_core.store.actions import Action
from tokpack_core.store.store import Store, open_store

ray = pytest.importorskip("ray")
ROOT = Path(__file__).parent.parent
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
EVERYTHING_ON_THE_CLUSTER = """
from tokpack_core.stages import unit
unit.SMALL_WORK = 0
from tokpack_assets.cli import main
main()
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT)  # workers import functions of tests by name
    nodes = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
    for _ in range(2):
        nodes.add_node(**NODE)
    yield nodes
    ray.shutdown()
    nodes.shutdown()
    os.environ.pop("PYTHONPATH")
    if before is not None:
        os.environ["PYTHONPATH"] = before


def die_the_first_time(folder: Path, number: int) -> int:
    """Item 3 kills its worker once."""
    if number == 3 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_order_errors_and_a_killed_worker(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = RayEngine(cluster.address)
    assert list(engine.map(square_slowly_at_first, range(9))) == [n * n for n in range(9)]
    with pytest.raises(InputError, match=r"^file\.jsonl, line 3: wrong; mend it$"):
        list(engine.map(refuse_three, range(9)))
    assert list(engine.map(partial(die_the_first_time, tmp_path), range(9))) == [n * n for n in range(9)]
    assert (tmp_path / "died").exists()
    monkeypatch.setattr(ray_engine, "RETRIES", 0)
    with pytest.raises(TokpackError, match=r"the Ray cluster lost a unit 1 times.*finished units are kept"):
        list(engine.map(die, range(2)))


def write_number(number: int, seconds: float, folder: Path) -> dict[str, Any]:
    time.sleep(seconds)
    (folder / "number.txt").write_text(str(number))
    return {"number": number}


def units(seconds: float) -> list[Unit]:
    build = [partial(write_number, number, seconds) for number in range(12)]
    return [
        Unit(Action("test_unit", 1, {"number": number}), one, unit_module.SMALL_WORK)
        for number, one in enumerate(build)
    ]


def objects_of(store: Store) -> dict[str, bytes]:
    return {str(p.relative_to(store.root)): p.read_bytes() for p in store.root.glob("objects/**/*") if p.is_file()}


@pytest.mark.slow
def test_a_lost_node_loses_and_doubles_nothing(cluster: Any, tmp_path: Path) -> None:
    expected = run_units(open_store(tmp_path / "local", create=True), LocalEngine(1), units(0), lambda _: None)
    store = open_store(tmp_path / "ray", create=True)
    lost = cluster.add_node(**NODE)
    seen: list[int] = []

    def on_progress(progress: unit_module.Progress) -> None:
        seen.append(progress.done)
        if progress.done == 2:
            cluster.remove_node(lost, allow_graceful=False)

    results = run_units(store, RayEngine(cluster.address), units(0.4), on_progress)
    assert results == expected
    assert seen == list(range(1, 13))
    assert objects_of(store) == objects_of(open_store(tmp_path / "local"))


@pytest.mark.slow
def test_tokpack_build_on_the_cluster_gives_the_same_datasets(cluster: Any, tmp_path: Path) -> None:
    project = write_small_project(tmp_path)
    local = project.build()
    with (project.configs / "engine.yaml").open("w") as file:
        file.write(f"engine: {{name: ray, address: '{cluster.address}'}}\n")
    environment = os.environ | {
        "TOKPACK_CONFIGS": str(project.configs),
        "TOKPACK_STORE": str(tmp_path / "other"),
        "DAGSTER_HOME": str(tmp_path / "home"),
    }
    command = [sys.executable, "-c", EVERYTHING_ON_THE_CLUSTER, "build", "--json"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr
    assets = json.loads(run.stdout)["assets"]
    assert {key: shown["digest"] for key, shown in assets.items()} == {
        key: built.entry.object.digest for key, built in local.items()
    }


def test_no_cluster_is_one_sentence() -> None:
    refused = "import sys; from tokpack_core.ray_engine import RayEngine; list(RayEngine('127.0.0.1:9').map(abs, [1]))"
    run = subprocess.run([sys.executable, "-c", refused], capture_output=True, text=True, check=False, timeout=120)
    assert "TokpackError: engine.address 127.0.0.1:9: no Ray cluster answers there" in run.stderr
