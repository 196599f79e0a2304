"""Code and English of the running Python's standard library: the part of the demo corpus that needs no network.

Only what every build of one version of Python has: no tests, no parts that distributions package separately, no
files written by the build. Code is whole modules; English is the reference manual that `help()` shows and docstrings.
"""

from __future__ import annotations

import ast
import os
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from tokpack_core.corpus.demo_documents import Document

SOURCE = "python-stdlib"
LICENCE = "PSF-2.0"
STDLIB = Path(sysconfig.get_path("stdlib"))
SKIPPED_FOLDERS = re.compile(
    "tests?|site-packages|dist-packages|distutils|ensurepip|idlelib|lib2to3|tkinter|turtledemo|venv|config-.*"
    "|__phello__|__pycache__|pydoc_data|encodings"
)
"""The last two hold tables, not code."""
SKIPPED_FILES = re.compile(r"(_sysconfigdata|sitecustomize|usercustomize)")
MODULE_CHARACTERS = range(300, 200_000)
SHORTEST_DOCSTRING = 60
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
MARKUP = re.compile(r"\*\*|``")


def stdlib_documents() -> Iterator[Document]:
    """Modules as `code`; topics and docstrings as `en`."""
    for topic, text in topics().items():
        yield Document(f"{SOURCE}:topics/{topic}", MARKUP.sub("", text).strip(), "en", SOURCE)
    for name, text in modules():
        yield Document(f"{SOURCE}:{name}", text, "code", SOURCE)
        prose = docstrings(text)
        if prose:
            yield Document(f"{SOURCE}:docstrings/{name}", prose, "en", SOURCE)


def modules() -> Iterator[tuple[str, str]]:
    """Path below the standard library and text of each module, in order of path."""
    for path in module_paths():
        try:
            text = (STDLIB / path).read_bytes().decode()
        except UnicodeDecodeError:
            continue
        if len(text) in MODULE_CHARACTERS:
            yield path, text


def module_paths() -> list[str]:
    paths: list[str] = []
    for parent, folders, names in os.walk(STDLIB):
        folders[:] = [folder for folder in folders if not SKIPPED_FOLDERS.fullmatch(folder)]
        below = Path(parent).relative_to(STDLIB)
        paths += [(below / name).as_posix() for name in names if name.endswith(".py") and not SKIPPED_FILES.match(name)]
    return sorted(paths)


def topics() -> dict[str, str]:
    """Topics of `help()`, in order of name; none where a distribution leaves them out."""
    path = STDLIB / "pydoc_data" / "topics.py"
    if not path.exists():
        return {}
    assignments = [node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.Assign)]
    return dict(sorted(ast.literal_eval(assignments[-1].value).items()))


def docstrings(text: str) -> str:
    """The longer docstrings of a module, in order, with an empty line between them."""
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, DOCUMENTED))
    found = (ast.get_docstring(node) or "" for node in nodes)
    return "\n\n".join(docstring for docstring in found if len(docstring) > SHORTEST_DOCSTRING)
