"""The pages that `tokpack dev` gives out beside the UI: reports of the store, and nothing else."""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tokpack_assets.report_server import ReportPages

DIGEST = "0123456789abcdef" * 4


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "vocabulary_report" / DIGEST
    folder.mkdir(parents=True)
    (folder / "report.html").write_text("<h1>Größe</h1>", encoding="utf-8")
    (folder / "manifest.json").write_text("{}")
    (tmp_path / "store.json").write_text("{}")
    pages = type("Pages", (ReportPages,), {"folder": tmp_path / "vocabulary_report"})
    server = ThreadingHTTPServer(("127.0.0.1", 0), pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_report_is_shown(address: str) -> None:
    with urllib.request.urlopen(f"{address}/{DIGEST}/report.html") as response:
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        assert response.read().decode() == "<h1>Größe</h1>"


@pytest.mark.parametrize(
    "path", ["", "/", f"/{DIGEST}", f"/{DIGEST}/manifest.json", "/../store.json", f"/{'f' * 64}/report.html"]
)
def test_nothing_else_is(address: str, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{address}{path}")
