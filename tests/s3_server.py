"""A real S3 server (moto) on loopback, in a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import s3fs


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """Its URL; `folder` takes its log."""
    log = folder / "log"
    with log.open("w") as file:
        command = [Path(sys.executable).with_name("moto_server"), "-H", "127.0.0.1", "-p", "0"]
        process = subprocess.Popen(command, stdout=file, stderr=file, env=credentials())
    try:
        while not (found := re.search(r"http://127\.0\.0\.1:[0-9]+", log.read_text())):
            assert process.poll() is None, log.read_text()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
        yield found.group()
    finally:
        process.terminate()
        process.wait()


def credentials() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return kept | {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1"}


def use_server(server: str, monkeypatch: pytest.MonkeyPatch) -> s3fs.S3FileSystem:
    """Points this process, and those it starts, to the server."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name, value in credentials().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    return s3fs.S3FileSystem(skip_instance_cache=True)
