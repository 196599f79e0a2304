"""What of an installation shapes bytes: tokpack's own code and the versions of Python and of some libraries."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CODE = "tokpack"
LIBRARIES = (
    "gigatoken",
    "numba",
    "numpy",
    "orjson",
    "pyarrow",
    "regex",
    "sentencepiece",
    "tiktoken",
    "tokenizers",
    "zstandard",
)


@cache
def installation() -> dict[str, str]:
    """Versions by name; of tokpack it is a digest of the code that runs."""
    found = {CODE: code_digest(Path(__file__).parent), "python": "{}.{}".format(*sys.version_info)}
    return found | {name: installed_version(name) for name in LIBRARIES}


def installed_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def code_digest(folder: Path) -> str:
    """Short sha256 of all modules and their paths."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


def differences(there: dict[str, str], here: dict[str, str]) -> list[str]:
    """What has another version there than here, for people to read."""
    return [
        f"{name} {there.get(name)} in the place of {version}"
        for name, version in here.items()
        if there.get(name) != version
    ]
