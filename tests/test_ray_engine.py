"""Units on a Ray cluster of several nodes that `ray start` made: the results of a local run, whatever is killed."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command_line import tokpack as run_tokpack
from tests.dagster_server import TOKPACK
from tests.ray_cluster import RayCluster, ray_cluster
from tests.small_project import SmallProject, write_small_project
from tests.store_checks import content_of, versions_of
from tests.test_engine import refuse_three, square_slowly_at_first
from tests.test_merge import same_bytes
from tokpack_core import ray_engine
from tokpack_core.engine import LocalEngine
from tokpack_core.errors import InputError, StoreError, TokpackError
from tokpack_core.ray_engine import RayEngine
from tokpack_core.stages import unit as unit_module
from tokpack_core.stages.file_errors import file_errors
from tokpack_core.stages.runs import hash_fraction
from tokpack_core.stages.unit import Unit, run_units
from tokpack_core.store.actions import Action
from tokpack_core.store.store import Store, open_store

ray = pytest.importorskip("ray")
ROOT = Path(__file__).parent.parent
SMALL_UNITS = """
from tokpack_core.commands import encode_on_engine
from tokpack_core.cli.app import app
encode_on_engine.UNIT_BYTES, encode_on_engine.CHECKPOINT_SECONDS = 20_000, 0
app()
"""
SLEEPS = """
import sys, time
from tokpack_core.ray_engine import RayEngine
list(RayEngine(sys.argv[1]).map(time.sleep, [0.3] * 20))
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster(2) as nodes:
        yield nodes
        ray.shutdown()


def die_the_first_time(folder: Path, number: int) -> int:
    """Item 3 kills its worker once."""
    if number == 3 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def read_what_is_not_there(number: int) -> None:
    with file_errors(Store(Path("/store")), "read"):
        Path(f"/source/{number}").read_bytes()


def test_order_errors_and_a_killed_worker(cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = RayEngine(cluster.address)
    assert list(engine.map(square_slowly_at_first, range(9))) == [n * n for n in range(9)]
    with pytest.raises(InputError, match=r"^file\.jsonl, line 3: wrong; mend it$"):
        list(engine.map(refuse_three, range(9)))
    with pytest.raises(InputError, match=r"^/source/0: cannot be read .* \(on the Ray node \S+\)$"):
        list(engine.map(read_what_is_not_there, range(1)))
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


def test_a_lost_node_loses_and_doubles_nothing(cluster: RayCluster, tmp_path: Path) -> None:
    """A worker is killed while it runs a unit, and then a whole node while others run."""
    expected = run_units(open_store(tmp_path / "local", create=True), LocalEngine(1), units(0), lambda _: None)
    store = open_store(tmp_path / "ray", create=True)
    seen: list[int] = []

    def on_progress(progress: unit_module.Progress) -> None:
        seen.append(progress.done)
        if progress.done == 2:
            cluster.kill_a_worker()
        if progress.done == 5:
            cluster.nodes[-1].kill()

    cluster.join()
    results = run_units(store, RayEngine(cluster.address), units(0.4), on_progress)
    assert results == expected
    assert seen == list(range(1, 13))
    assert objects_of(store) == objects_of(open_store(tmp_path / "local"))


def write_six_units(folder: Path) -> SmallProject:
    """A small project with a corpus of six files of 1.5 MB, each of which is a unit by the hash of its name."""
    project = write_small_project(folder)
    (folder / "data" / "more").mkdir()
    names = (f"data/more/{number}.jsonl" for number in itertools.count())
    for name in itertools.islice((name for name in names if hash_fraction(name) < 0.09), 6):
        lines = (json.dumps({"id": f"{row}", "text": f"row {row} of {name}. " * 60}) + "\n" for row in range(1000))
        (folder / name).write_text("".join(lines))
    project.edit("corpora:\n", "corpora:\n  more: {paths: [data/more], id_field: id}\n")
    project.edit("code: 1.0}\n    packing", "code: 1.0, more: 1.0}\n    packing")
    return project


def run_log(home: Path) -> list[str]:
    """What tokpack said in the runs of a Dagster instance."""
    with dg.DagsterInstance.from_config(str(home)) as instance:
        runs = [record.dagster_run.run_id for record in instance.get_run_records()]
        return [entry.user_message for run in runs for entry in instance.all_logs(run)]


@pytest.mark.slow
def test_tokpack_build_on_the_cluster_gives_the_same_datasets(cluster: RayCluster, tmp_path: Path) -> None:
    """A worker and then a node are killed in the midst of it."""
    project = write_six_units(tmp_path)
    project.build()
    configured = project.configs / "engine.yaml"
    configured.write_text(f"engine: {{name: ray, address: '{cluster.address}'}}\n")
    there = tmp_path / "there"
    environment = os.environ | {"TOKPACK_CONFIGS": str(project.configs), "TOKPACK_STORE": str(there)}
    environment["DAGSTER_HOME"] = str(tmp_path / "home")
    command = [*TOKPACK, "build"]
    said = tmp_path / "said"
    lost = cluster.join()
    with said.open("wb") as out:
        build = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out)
        cluster.kill_a_worker(seconds=120)
        while build.poll() is None and not lost.units():
            time.sleep(0.01)
        lost.kill()
        assert build.wait(300) == 0, said.read_text()
    assert content_of(open_store(there)) == content_of(open_store(project.store))
    assert versions_of(open_store(there)) == versions_of(open_store(project.store))
    progress = re.compile(r"normalized_part: 6 of 6 units, \d+\.\d MB at \d+\.\d MB/s, 0 s left")
    assert progress.search(said.read_text())
    assert any(progress.fullmatch(message) for message in run_log(tmp_path / "home"))

    configured.unlink()
    broken = next((tmp_path / "data" / "more").iterdir())
    broken.write_text(broken.read_text() + "{\n")
    failed = subprocess.run(
        [*command, "--engine", "ray", "--ray-address", cluster.address, "normalized_corpus/more"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert failed.returncode == 1
    assert re.search(rf"error: normalized_corpus/more: data/more/{broken.name}, line 1001: .*JSON", failed.stderr)
    assert "Traceback" not in failed.stderr


def write_corpus(folder: Path) -> None:
    """Lines to be cut into ranges, row groups, and a stream that is one unit."""
    texts = [f"row {row}: " + "of a corpus that takes a while. " * (row % 40) for row in range(2000)]
    (folder / "data" / "zh").mkdir(parents=True)
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "data" / "zh" / "a.jsonl").write_text(lines)
    pq.write_table(pa.table({"text": texts}), folder / "data" / "zh" / "b.parquet", row_group_size=100)
    with gzip.open(folder / "data" / "zh" / "c.jsonl.gz", "wt") as file:
        file.write(lines)


def test_encode_on_the_cluster_gives_the_same_bytes(cluster: RayCluster, tmp_path: Path) -> None:
    """A worker, a node and then the run itself are killed in the midst of it."""
    write_corpus(tmp_path)
    run_tokpack(tmp_path, "train", "--family", "byte_bpe", "--vocab-size", "300", "--output", "my_tokenizer", "data/zh")
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^tokpack (encode --engine ray .*)$", page, re.M)
    words = command.replace("10.0.0.1:6379", cluster.address).split()
    local = [word for word in words if word not in ("--engine", "ray", "--ray-address", cluster.address, "--resume")]
    run_tokpack(tmp_path, *["local" if word == "zh" else word for word in local])

    lost = cluster.join()
    checkpoint = tmp_path / ".zh.unfinished" / "unfinished" / "checkpoint.json"
    program = [sys.executable, "-c", SMALL_UNITS, *words]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with (tmp_path / "said").open("wb") as out:
        first = subprocess.Popen(program, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=out)
        cluster.kill_a_worker()
        while first.poll() is None and not lost.units():
            time.sleep(0.01)
        lost.kill()
        while first.poll() is None and joined(checkpoint) < 10:
            time.sleep(0.01)
        first.kill()
        said, _ = first.communicate()
        assert first.returncode == -signal.SIGKILL, (tmp_path / "said").read_text()
        assert said == b"", "that a node was lost is no result"
    assert not list(tmp_path.glob("zh.*"))
    again = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert again.returncode == 0, again.stderr
    assert same_bytes(tmp_path / "zh", tmp_path / "local")
    told = [json.loads((tmp_path / f"{name}.manifest.json").read_bytes()) for name in ("zh", "local")]
    assert [one["counts"] for one in told] == [told[0]["counts"]] * 2
    assert told[0]["inputs"] == told[1]["inputs"]
    assert not list(tmp_path.glob(".zh*"))


def joined(checkpoint: Path) -> int:
    return int(json.loads(checkpoint.read_bytes())["units"]) if checkpoint.exists() else 0


def wrong_installations(folder: Path) -> Iterator[tuple[Path, str]]:
    """What a node has in the place of tokpack, and what is said of it."""
    none, other = folder / "none" / "tokpack_core", folder / "other" / "tokpack_core"
    none.mkdir(parents=True)
    (none / "__init__.py").write_text("raise ModuleNotFoundError('nothing here')")
    yield none.parent, r"the Ray node \S+ cannot import tokpack \(ModuleNotFoundError: nothing here\); install there"
    shutil.copytree(ROOT / "tokpack_core", other, ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "errors.py").open("a") as file:
        file.write("# another version\n")
    yield other.parent, r"the Ray node \S+ has tokpack \w{12} in the place of \w{12}; install there"


def test_the_commands_of_the_page_are_those_that_start_the_cluster(cluster: RayCluster) -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    head, other = (set(re.findall(r"--[\w-]+", line)) for line in re.findall(r"^    ray start .*$", page, re.M))
    started = [{str(word).partition("=")[0] for word in node.process.args} for node in cluster.nodes[:2]]  # type: ignore[union-attr]
    assert head == {"--head", "--port", "--num-cpus", "--block"} <= started[0]
    assert other == {"--address", "--num-cpus", "--block"} <= started[1]


@pytest.mark.slow
def test_a_node_with_another_tokpack_is_refused(cluster: RayCluster, tmp_path: Path) -> None:
    """It could publish other bytes under the name of ours."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for path, expected in wrong_installations(tmp_path):
        node = cluster.join(PYTHONPATH=str(path))
        run = subprocess.run(
            [sys.executable, "-c", SLEEPS, cluster.address],
            cwd=tmp_path,  # Ray's workers import from the folder of the driver, too
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        node.stop()
        assert run.returncode == 1
        assert re.match(rf"\S*TokpackError: {expected}", run.stderr.splitlines()[-1]), run.stderr


def test_a_machine_that_does_not_see_the_store_says_so(tmp_path: Path) -> None:
    unseen = Store(tmp_path / "not_mounted")
    with pytest.raises(StoreError, match=r"not_mounted: the machine \S+ does not see the store; mount it there"):
        unit_module.run_unit_in_worker(unseen, "lease", units(0)[0])
    assert not unseen.root.exists()


def test_no_cluster_is_one_sentence() -> None:
    refused = "import sys; from tokpack_core.ray_engine import RayEngine; list(RayEngine('127.0.0.1:9').map(abs, [1]))"
    run = subprocess.run([sys.executable, "-c", refused], capture_output=True, text=True, check=False, timeout=120)
    assert "TokpackError: no Ray cluster answers at 127.0.0.1:9 (" in run.stderr
