"""A field of languages that no document has is told, with the fields that there are."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command_line import EOD, refused, tokpack
from tests.small_project import SmallProject, write_small_project
from tokpack_core.corpus.field_names import field_names

TEXTS = [f"line {number} of the text that is read here" for number in range(40)]
TRAIN = ("--family", "byte_bpe", "--vocab-size", "270", "--special-token", f"eod={EOD}")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The same documents in every format, with the fields lng and text."""
    table = pa.table({"lng": ["en"] * len(TEXTS), "text": TEXTS})
    found = {
        kind: tmp_path / f"a.{kind}" for kind in ("jsonl", "jsonl.gz", "csv", "tsv", "parquet", "arrow", "feather")
    }
    lines = "\n" + "".join(json.dumps({"lng": "en", "text": text}) + "\n" for text in TEXTS)
    found["jsonl"].write_text(lines)
    found["jsonl.gz"].write_bytes(gzip.compress(lines.encode()))
    for kind, separator in (("csv", ","), ("tsv", "\t")):
        rows = [separator.join(row) for row in (["lng", "text"], *(["en", text] for text in TEXTS))]
        found[kind].write_text("\n".join(rows) + "\n")
    pq.write_table(table, found["parquet"])
    for kind, new in (("arrow", pa.ipc.new_file), ("feather", pa.ipc.new_stream)):
        with new(str(found[kind]), table.schema) as writer:
            writer.write_table(table)
    return found


def test_fields_of_every_format(files: dict[str, Path], tmp_path: Path) -> None:
    assert {kind: field_names(path) for kind, path in files.items()} == {kind: ["lng", "text"] for kind in files}
    (tmp_path / "a.txt").write_text("text")
    assert field_names(tmp_path / "a.txt") == []


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_field_that_no_document_has_is_a_warning(files: dict[str, Path], tmp_path: Path, kind: str) -> None:
    file = files[kind]
    said = f"no document has a language in 'lang', which `lang_field` names; the fields of {file} are 'lng', 'text'"
    trained = tokpack(tmp_path, "train", *TRAIN, "--output", "tok", "--lang-field", "lang", file).out
    assert said in trained
    assert "no document" not in tokpack(tmp_path, "train", *TRAIN, "--output", "tok2", "--lang-field", "lng", file).out


def test_a_report_tells_it(files: dict[str, Path], tmp_path: Path) -> None:
    tokpack(tmp_path, "train", *TRAIN, "--output", "tok", files["jsonl"])
    for field, told in (("lang", True), ("lng", False)):
        command = ("report", "--tokenizer", "tok", "--lang-field", field, "--output", f"by_{field}", "--json")
        reading = tokpack(tmp_path, *command, files["jsonl"]).json["counts"]["reading"]
        assert ("warnings" in reading) is told


def test_encode_asks_for_languages_only_by_language(files: dict[str, Path], tmp_path: Path) -> None:
    tokpack(tmp_path, "train", *TRAIN, "--output", "tok", files["jsonl"])
    for option in (("--lang-field", "lng"), ("--lang", "en")):
        said = refused(tmp_path, "encode", "--tokenizer", "tok", *option, "--output", "x", files["jsonl"])
        assert said.startswith("--lang-field and --lang are for --by-language")


def test_a_corpus_whose_field_no_document_has(tmp_path: Path) -> None:
    write_small_project(tmp_path)
    project = SmallProject(tmp_path)
    project.edit("lang_field: lang", "lang_field: language")
    said = " ".join(tokpack(project.folder, "build", "normalized_corpus/docs", store=project.store).out.split())
    assert "normalized_corpus/docs: no document has a language in 'language', which `lang_field` names;" in said
    assert "'lang'" in said
    key = "normalized_corpus/docs"
    project.edit("    lang_field: language\n", "")
    first = project.build(key)[key]
    assert first.warnings == ()
    project.edit("    id_field: id\n", "    id_field: id\n    lang_field: other\n")
    second = project.build(key)[key]
    assert second.entry.object == first.entry.object
    assert [said.split(",")[0] for said in second.warnings] == ["no document has a language in 'other'"]
    assert project.build(key)[key].warnings == second.warnings
    project.edit("lang_field: other", "metadata_fields: [nothing, lang]")
    (said,) = project.build(key)[key].warnings
    assert said.startswith("no document has a value in 'nothing', which `metadata_fields` names; the fields of ")
