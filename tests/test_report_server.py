"""The pages that `tokpack dev` gives out beside the UI: reports of the store with verdicts, and nothing else."""

import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.dagster_server import free_port
from tests.small_project import SmallProject, write_small_project
from tokpack_assets.report_server import ReportPages
from tokpack_core.stages import report

DIGEST = "0123456789abcdef" * 4


@contextmanager
def served(folder: Path) -> Iterator[str]:
    pages = type("Pages", (ReportPages,), {"folder": folder})
    server = ThreadingHTTPServer(("127.0.0.1", 0), pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "vocabulary_report" / DIGEST
    folder.mkdir(parents=True)
    (folder / "report.html").write_text("<h1>Größe</h1>", encoding="utf-8")
    (folder / "report.json").write_text('{"schema_version": 1}')
    (folder / "manifest.json").write_text("{}")
    (tmp_path / "store.json").write_text("{}")
    with served(tmp_path / "vocabulary_report") as url:
        yield url


def test_a_report_of_another_schema_is_shown_as_it_is_stored(address: str) -> None:
    with urllib.request.urlopen(f"{address}/{DIGEST}/report.html") as response:
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        assert response.read().decode() == "<h1>Größe</h1>"


@pytest.mark.parametrize(
    "path", ["", "/", f"/{DIGEST}", f"/{DIGEST}/manifest.json", "/../store.json", f"/{'f' * 64}/report.html"]
)
def test_nothing_else_is(address: str, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{address}{path}")


def test_reports_are_served_on_every_port_that_is_free(tmp_path: Path) -> None:
    """Those of earlier links too, unless another server has it; the first port is a must."""
    page = tmp_path / "objects" / report.STAGE / DIGEST / "report.html"
    page.parent.mkdir(parents=True)
    page.write_text("a page")
    page.with_name("report.json").write_text('{"schema_version": 1}')
    own, earlier = free_port(), free_port()
    with served(tmp_path) as other:
        taken = other.rpartition(":")[2]
        command = [sys.executable, "-m", "tokpack_assets.report_server", str(tmp_path)]
        refused = subprocess.run([*command, taken, str(own)], capture_output=True, text=True, timeout=60)
        assert f"reports are not served on port {taken}: " in refused.stderr
        server = subprocess.Popen([*command, str(own), taken, str(earlier)])
        try:
            for port in (own, earlier):
                assert opened_when_ready(f"http://127.0.0.1:{port}/{DIGEST}/report.html") == b"a page"
        finally:
            server.kill()
            server.wait()


def opened_when_ready(url: str) -> bytes:
    for _ in range(300):
        try:
            with urllib.request.urlopen(url) as response:
                return response.read()
        except urllib.error.URLError:
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> SmallProject:
    project = write_small_project(tmp_path_factory.mktemp("judged"))
    project.build("vocabulary_report/bpe_600")
    return project


def shown_verdicts(page: str) -> list[tuple[str, str]]:
    """(outcome, what is judged) of each, at the top of the page."""
    top, _, _ = page.partition('<ol class="findings"')
    return re.findall(r'<li class="(\w+)"><b>. \w+</b>([\w ]+)<p>', top)


def test_verdicts_are_those_of_the_limits_when_the_page_is_opened(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKPACK_CONFIGS", str(project.configs))
    (folder,) = (project.store / "objects" / report.STAGE).iterdir()
    stored = (folder / report.PAGE).read_text(encoding="utf-8")
    assert shown_verdicts(stored) == []
    with served(folder.parent) as url:

        def opened() -> str:
            with urllib.request.urlopen(f"{url}/{folder.name}/{report.PAGE}") as response:
                return response.read().decode()

        expected = [(v.name.replace("_", " "), v.passed) for v in report.verdicts(project.work(), "bpe_600")]
        first = shown_verdicts(opened())
        assert [(name, outcome == "passed") for outcome, name in first] == expected
        assert ("passed", "vocabulary utilization") in first
        project.edit("min_vocabulary_utilization: 0.5", "min_vocabulary_utilization: 1.0")
        assert ("failed", "vocabulary utilization") in shown_verdicts(opened())
        project.edit("min_vocabulary_utilization: 1.0", "min_vocabulary_utilization: much")
        assert shown_verdicts(opened()) == [("warning", "configuration")]
        project.edit("bpe_600", "other")
        project.edit("min_vocabulary_utilization: much", "min_vocabulary_utilization: 0.5")
        assert opened() == stored
    assert (folder / report.PAGE).read_text(encoding="utf-8") == stored
