"""Parallel text: the same sentences in several languages, from a `.jsonl` file (also `.gz`, `.zst`).

Either a record a sentence with its text by language, `{"id": …, "text": {"en": …, "hi": …}}`, or a record a sentence
and language, `{"id": …, "lang": "hi", "text": …}`, where equal ids are one sentence. A sentence may lack languages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from tokpack_core.corpus.compression import check_regular, read_blocks, text_blocks
from tokpack_core.corpus.files import file_type
from tokpack_core.errors import InputError


@dataclass(frozen=True, eq=False)
class ParallelText:
    """texts: by language (sorted), string array [sentences], null where the sentence lacks it."""

    sentences: int
    texts: Mapping[str, pa.Array]


def read_parallel(path: Path) -> ParallelText:
    """Raises InputError, naming file and line, for what is no such record, and for fewer than two languages."""
    found: dict[str, dict[str, str]] = {}
    for number, line in enumerate(lines(path), 1):
        if line.strip():
            key, texts = parse(line, f"{path}, line {number}", number)
            sentence = found.setdefault(key, {})
            again = sorted(sentence.keys() & texts)
            if again:
                raise InputError(f"{path}, line {number}: sentence {key} has a text in {again[0]} already: keep one")
            sentence |= texts
    languages = sorted({lang for texts in found.values() for lang in texts})
    if len(languages) < 2:
        raise InputError(f"{path} holds {len(languages)} languages: parallel text needs two or more")
    columns = {lang: pa.array([texts.get(lang) for texts in found.values()], pa.string()) for lang in languages}
    return ParallelText(len(found), columns)


def lines(path: Path) -> Iterator[bytes]:
    kind = file_type(path.name)
    if kind is None or kind[0] != "jsonl":
        raise InputError(f"{path} is no .jsonl: give parallel text as JSON lines (also .gz, .zst)")
    check_regular(path, str(path))
    rest = b""
    for block in text_blocks(read_blocks(path, str(path), kind[1]), str(path)):
        *whole, rest = (rest + block).split(b"\n")
        yield from whole
    yield rest


def parse(line: bytes, where: str, number: int) -> tuple[str, dict[str, str]]:
    """Key of the sentence, and its texts by language."""
    remedy = 'write {"id": …, "text": {"en": …, "hi": …}} or {"id": …, "lang": …, "text": …}'
    try:
        record: Any = orjson.loads(line)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error}); {remedy}") from None
    if not isinstance(record, dict):
        raise InputError(f"{where}: not an object; {remedy}")
    texts, lang = record.get("text"), record.get("lang")
    if isinstance(texts, str) and isinstance(lang, str) and "id" in record:
        return str(record["id"]), {lang: texts} if texts else {}
    if not isinstance(texts, dict) or not all(isinstance(text, str | None) for text in texts.values()):
        raise InputError(f"{where}: no texts by language; {remedy}")
    return str(record.get("id", f"line {number}")), {lang: text for lang, text in texts.items() if text}
