"""Serves the pages of the store's vocabulary reports to this machine, as long as the process that started it lives.

Browsers open no `file:` link from a page that came over HTTP, so the UI's links to reports lead here. Only reports are
given out: `/<digest>/report.html`, each with the verdicts that the configuration gives when the page is asked for.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

from tokpack_assets.environment import HOST, REPORTS_PORT, configs_folder
from tokpack_core.config.files import load_project
from tokpack_core.errors import TokpackError
from tokpack_core.stages.asset import read_json
from tokpack_core.stages.report import PAGE, REPORT, STAGE
from tokpack_core.stages.report_checks import judge
from tokpack_core.verdict import Verdict
from tokpack_core.vocabulary.report import SCHEMA_VERSION
from tokpack_core.vocabulary.report_page import render_page

PATH = re.compile(rf"/([0-9a-f]{{64}})/{re.escape(PAGE)}")


def start(store: Path, port: int) -> None:
    """Starts the server as a process of its own; a port in use leaves the links dead and is told on stderr.

    Links that `tokpack build` made from a terminal lead to REPORTS_PORT, whatever port the UI is opened on.
    """
    ports = dict.fromkeys([port, REPORTS_PORT])
    subprocess.Popen([sys.executable, "-m", __name__, str(store), *map(str, ports)], start_new_session=True)


def judged_page(folder: Path) -> bytes:
    """The page of a stored report with today's verdicts at its top.

    It is given as it is stored when the configuration has no such tokenizer, or the report another schema.
    """
    stored, report = (folder / PAGE).read_bytes(), read_json(folder / REPORT)
    if report["schema_version"] != SCHEMA_VERSION:
        return stored
    try:
        tokenizer = load_project(configs_folder()).tokenizers.get(report["name"])
    except TokpackError as error:
        unknown = f"there are no limits to judge by: {error}"
        return render_page(report, [Verdict("configuration", False, 0.0, 0.0, unknown, blocking=False)]).encode()
    return render_page(report, judge(report, tokenizer.checks)).encode() if tokenizer else stored


class ReportPages(BaseHTTPRequestHandler):
    folder: ClassVar[Path]

    def do_GET(self) -> None:
        found = PATH.fullmatch(self.path)
        try:
            page = judged_page(self.folder / found[1]) if found else None
        except OSError:
            page = None
        if page is None:
            self.send_error(404, "There is no such report in this store")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Nothing: the terminal belongs to Dagster."""


def serve(store: Path, ports: list[int]) -> None:
    """Serves on the first port until the parent process is gone, and on the others that are free."""
    parent = os.getppid()

    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(0)

    ReportPages.folder = store / "objects" / STAGE
    try:
        server = ThreadingHTTPServer((HOST, ports[0]), ReportPages)
    except OSError as error:
        sys.exit(f"reports are not served on port {ports[0]}: {error.strerror}; the UI's links to them will not open")
    for port in ports[1:]:
        with suppress(OSError):  # another `tokpack dev` serves its own reports there
            other = ThreadingHTTPServer((HOST, port), ReportPages)
            threading.Thread(target=other.serve_forever, daemon=True).start()
    threading.Thread(target=end_with_parent, daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), list(map(int, sys.argv[2:])))
