"""train, encode, pack and report on plain files, against the libraries themselves and the published file layout."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from tokenizers import Tokenizer

from tests.command_line import EOD, read_raw, refused, tokpack
from tests.small_project import write_small_project

TRAIN = ("train", "--family", "byte_bpe", "--vocab-size", "600", "--special-token", f"eod={EOD}", "--output", "tok")
PACK = ("pack", "--sequence-length", "256", "--eod", "0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small project with a tokenizer, docs encoded with EOD and code without."""
    root = tmp_path_factory.mktemp("plain")
    write_small_project(root)
    tokpack(root, *TRAIN, "data/docs")
    tokpack(root, "encode", "--tokenizer", "tok", "--append-eod", "--output", "enc/docs", "data/docs/*.jsonl")
    tokpack(root, "encode", "--tokenizer", "tok/tokenizer.json", "--output", "enc/code", "data/code")
    return root


def texts(folder: Path) -> list[str]:
    files = sorted((folder / "data" / "docs").glob("*.jsonl"))
    return [json.loads(line)["text"] for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def code_texts(folder: Path) -> list[str]:
    return [file.read_text(encoding="utf-8") for file in sorted((folder / "data" / "code").glob("*.txt"))]


def library_ids(folder: Path, documents: list[str]) -> list[list[int]]:
    """Ids by Hugging Face tokenizers alone."""
    engine = Tokenizer.from_file(str(folder / "tok" / "tokenizer.json"))
    engine.encode_special_tokens = True
    return [engine.encode(text, add_special_tokens=False).ids for text in documents]


def manifest(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.with_name(f"{path.name}.manifest.json").read_bytes())
    return content


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def assert_digests_right(path: Path) -> None:
    content = manifest(path)
    assert content["inputs"]
    assert content["outputs"]
    for entry in content["inputs"]:
        assert sha256(Path(entry["path"])) == entry["sha256"]
        assert Path(entry["path"]).stat().st_size == entry["size"]
    for entry in content["outputs"]:
        file = path.parent / entry["path"]
        assert (sha256(file), file.stat().st_size) == (entry["sha256"], entry["size"])


def test_train_gives_the_tokenizer_that_the_manifest_names(folder: Path) -> None:
    engine = Tokenizer.from_file(str(folder / "tok" / "tokenizer.json"))
    assert engine.get_vocab_size() == 600
    assert engine.token_to_id(EOD) == 0
    assert engine.normalizer.normalize_str("e\u0301") == "\u00e9"
    content = manifest(folder / "tok")
    assert_digests_right(folder / "tok")
    assert [Path(entry["path"]).name for entry in content["inputs"]] == ["0.jsonl", "1.jsonl", "2.jsonl"]
    assert content["counts"]["documents"] == len(texts(folder))
    files = [file for file in (folder / "tok").rglob("*") if file.is_file()]
    lines = sorted(f"{sha256(file)}  {file.relative_to(folder / 'tok')}\n" for file in files)
    assert content["tokenizer"]["digest"] == hashlib.sha256("".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("family", ["sentencepiece_bpe", "sentencepiece_unigram"])
def test_sentencepiece_from_training_to_ids(folder: Path, tmp_path: Path, family: str) -> None:
    files = [str(folder / "data" / "docs" / f"{number}.jsonl") for number in (2, 0)]
    trained = ("--family", family, "--vocab-size", "500", "--unicode", "nfkc", "--output", "sp")
    tokpack(tmp_path, "train", *trained, *files)
    encoded = tokpack(tmp_path, "encode", "--tokenizer", "sp/tokenizer.model", "--output", "x", "--json", *files).json
    engine = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "sp" / "tokenizer.model"))
    assert engine.normalize("\ufb01") == "fi"
    documents = [json.loads(line)["text"] for file in files for line in Path(file).read_text("utf-8").splitlines()]
    wanted = [ids for ids in map(engine.encode, documents) if ids]
    assert read_raw(tmp_path / "x").sequences == wanted
    assert encoded["counts"]["tokens"] == sum(map(len, wanted))


def test_encode_is_the_library_with_eod_after_each_document(folder: Path) -> None:
    expected = library_ids(folder, texts(folder))
    docs = read_raw(folder / "enc" / "docs")
    assert docs.dtype == np.uint16
    assert docs.sequences == [[*ids, 0] for ids in expected if ids]
    assert np.diff(docs.document_indices).tolist() == [int(bool(ids)) for ids in expected]
    assert_digests_right(folder / "enc" / "docs")
    counts = manifest(folder / "enc" / "docs")["counts"]
    assert (counts["documents"], counts["empty_documents"], counts["eod"]) == (len(expected), 1, 0)


def test_encode_adds_nothing_unless_told(folder: Path) -> None:
    assert read_raw(folder / "enc" / "code").sequences == library_ids(folder, code_texts(folder))
    assert manifest(folder / "enc" / "code")["tokenizer"]["digest"] == manifest(folder / "tok")["tokenizer"]["digest"]


def test_reading_options_choose_what_a_document_is(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(b"one\n\nthr\xffee\n")
    (tmp_path / "a.jsonl").write_text('{"body": "two"}\n{"other": 1}\n', encoding="utf-8")
    options = ("--txt-document", "line", "--text-field", "body", "--on-error", "skip")
    encoding = ("encode", "--tokenizer", folder / "tok", "--output", "x", "--json", *options)
    counts = tokpack(tmp_path, *encoding, "b.txt", "a.jsonl").json["counts"]
    assert read_raw(tmp_path / "x").sequences == library_ids(folder, ["one", "two"])
    assert (counts["documents"], counts["empty_documents"]) == (3, 1)
    assert counts["reading"]["skipped"] == {"invalid UTF-8": 1, "no text field": 1}


def test_report_counts_what_the_library_gives(folder: Path, tmp_path: Path) -> None:
    reporting = ("report", "--tokenizer", folder / "tok", "--output", "rep", "--lang-field", "lang", "--json")
    printed = tokpack(tmp_path, *reporting, folder / "data" / "docs").json
    report = json.loads((tmp_path / "rep" / "report.json").read_bytes())
    seen = Counter(token for ids in library_ids(folder, texts(folder)) for token in ids)
    assert report["tokens"]["sample"] == [seen[token] for token in range(600)]
    assert {row["lang"]: row["documents"] for row in report["sample"]["languages"]} == {
        "en": len(texts(folder)) - 1,
        "fr": 1,
    }
    assert report["round_trip"] == {"documents": len(texts(folder)), "failures": 0, "examples": []}
    entries = 600 - 1
    assert printed["counts"]["vocabulary_utilization"] == sum(seen[token] > 0 for token in range(1, 600)) / entries
    assert "<html" in (tmp_path / "rep" / "report.html").read_text(encoding="utf-8")
    assert_digests_right(tmp_path / "rep")


@pytest.mark.parametrize("strategy", ["best_fit", "concat", "naive"])
def test_packs_hold_every_document_once(folder: Path, tmp_path: Path, strategy: str) -> None:
    packing = (*PACK, "--append-eod", "--strategy", strategy, "--output", tmp_path / "x", "--json")
    counts = tokpack(folder, *packing, "enc/docs", "enc/code").json["counts"]
    packs, docs = read_raw(tmp_path / "x"), read_raw(tmp_path / "x_docs")
    assert {len(pack) for pack in packs.sequences} == {256}
    assert packs.document_indices == list(range(len(packs.sequences) + 1))
    assert (tmp_path / "x.bin").samefile(tmp_path / "x_docs.bin")
    expected = [[*ids, 0] for ids in library_ids(folder, [*texts(folder), *code_texts(folder)]) if ids]
    wanted = Counter(token for ids in expected for token in ids)
    found = Counter(token for pack in packs.sequences for token in pack)
    padding = len(packs.sequences) * 256 - sum(map(len, expected))
    assert found - Counter({0: padding}) == wanted
    assert (counts["padding"], counts["tokens_lost"], counts["eod_appended"]) == (padding, 0, 10)
    assert counts["documents"] == len(texts(folder)) + 10
    views = [docs.sequences[a:b] for a, b in pairwise(docs.document_indices)]
    assert [[token for piece in view for token in piece] for view in views] == packs.sequences
    if strategy == "best_fit":
        whole = Counter(tuple(ids) for ids in expected if len(ids) <= 256)
        pieces = Counter(tuple(piece) for view in views for piece in view)
        assert whole <= pieces
    assert_digests_right(tmp_path / "x")


def test_the_seed_alone_decides_the_order_of_packs(folder: Path, tmp_path: Path) -> None:
    def packed(name: str, seed: str) -> bytes:
        tokpack(folder, *PACK, "--seed", seed, "--output", tmp_path / name, "enc/docs")
        return (tmp_path / f"{name}.bin").read_bytes()

    first, again, other = packed("a", "1"), packed("b", "1"), packed("c", "2")
    assert first == again
    assert first != other
    assert sorted(read_raw(tmp_path / "a").sequences) == sorted(read_raw(tmp_path / "c").sequences)


def test_pack_refuses_what_would_spoil_training(folder: Path, tmp_path: Path) -> None:
    said = refused(folder, *PACK, "--output", tmp_path / "x", "enc/docs", "enc/code")
    assert said.startswith("enc/code.bin: 10 of 10 documents do not end in EOD 0")
    assert "--append-eod" in said
    wrong = ("pack", "--sequence-length", "256", "--eod", "7", "--output", tmp_path / "x", "enc/docs")
    assert refused(folder, *wrong) == "--eod 7 is not the EOD of the tokenizer of enc/docs, which is 0"
    tokpack(folder, *PACK, "--output", tmp_path / "packed", "enc/docs")
    assert "is packed already" in refused(folder, *PACK, "--output", tmp_path / "x", tmp_path / "packed")
    shape = ("--sequence-length", "1", "--long-documents", "drop", "--eod", "0")
    assert "there is no pack to write" in refused(folder, "pack", *shape, "--output", tmp_path / "x", "enc/docs")
    cut = tmp_path / "cut"
    for ending in ("bin", "idx"):
        content = (folder / "enc" / f"docs.{ending}").read_bytes()
        cut.with_suffix(f".{ending}").write_bytes(content[:-2] if ending == "bin" else content)
    assert "cut.bin is cut off" in refused(folder, *PACK, "--output", tmp_path / "x", cut)
    assert not list(tmp_path.glob("x*"))


def test_prefixes_of_different_dtypes_are_refused(folder: Path, tmp_path: Path) -> None:
    wide = tmp_path / "wide"
    np.array([5, 6, 0], "<i4").tofile(wide.with_suffix(".bin"))
    header = b"MMIDIDX\x00\x00" + np.array([1], "<u8").tobytes() + b"\x04" + np.array([1, 2], "<u8").tobytes()
    arrays = np.array([3], "<i4").tobytes() + np.array([0], "<i8").tobytes() + np.array([0, 1], "<i8").tobytes()
    wide.with_suffix(".idx").write_bytes(header + arrays)
    said = refused(folder, *PACK, "--output", tmp_path / "x", "enc/docs", wide)
    assert said == f"{wide} holds int32 tokens and enc/docs uint16: encode both with the same tokenizer"


def test_nothing_is_overwritten_and_a_failure_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    before = sha256(folder / "enc" / "docs.bin")
    again = ("encode", "--tokenizer", "tok", "--output", "enc/docs", "data/docs")
    assert "docs.bin exists already" in refused(folder, *again)
    assert sha256(folder / "enc" / "docs.bin") == before
    assert "tok exists already" in refused(folder, *TRAIN, "data/docs")
    (tmp_path / "bad.jsonl").write_text('{"text": "good"}\n{"text": 7}\n', encoding="utf-8")
    failing = ("encode", "--tokenizer", folder / "tok", "--output", "new/x", "bad.jsonl")
    assert "bad.jsonl, line 2: text is not a string" in refused(tmp_path, *failing)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]


def test_a_document_that_is_too_long_is_an_error_or_counted(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "long.jsonl").write_text('{"text": "short"}\n{"text": "%s"}\n' % ("long " * 300), encoding="utf-8")
    encoding = ("encode", "--tokenizer", folder / "tok", "--output", "x", "--max-document-bytes", "1KB")
    said = refused(tmp_path, *encoding, "long.jsonl")
    assert "long.jsonl, line 2: document larger than max_document_bytes (1000)" in said
    assert [path.name for path in tmp_path.iterdir()] == ["long.jsonl"]
    found = tokpack(tmp_path, *encoding, "--on-error", "skip", "--json", "long.jsonl").json
    assert found["counts"]["documents"] == 1
    assert found["counts"]["reading"]["skipped"] == {"document larger than max_document_bytes": 1}
    assert found["parameters"]["max_document_bytes"] == 1000
    assert "is not a size" in tokpack(tmp_path, *encoding[:-1], "many", "long.jsonl", may_fail=True).err


def test_wrong_arguments_are_one_sentence(folder: Path, tmp_path: Path) -> None:
    encoding = ("encode", "--output", "x")
    assert "is no tokenizer" in refused(folder, *encoding, "--tokenizer", "configs/project.yaml", "data/docs")
    assert "data/nope: gives no file" in refused(folder, *encoding, "--tokenizer", "tok", "data/nope")
    (tmp_path / "empty.jsonl").touch()
    assert "there is no document" in refused(folder, *encoding, "--tokenizer", "tok", tmp_path / "empty.jsonl")
    (tmp_path / "bad.jsonl").write_text('{"text": 1}\n{"text": {"a": 1}}\n{"t": ""}\n', encoding="utf-8")
    skipping = ("--tokenizer", "tok", "--on-error", "skip", tmp_path / "bad.jsonl", tmp_path / "empty.jsonl")
    said = "bad.jsonl and 1 more: every document was left out (no text field: 1, text is not a string: 2)"
    assert said in refused(folder, *encoding, *skipping)
    (tmp_path / "blank.jsonl").write_text('{"text": ""}\n', encoding="utf-8")
    assert "every document is empty" in refused(folder, *encoding, "--tokenizer", "tok", tmp_path / "blank.jsonl")
    training = ("train", "--family", "byte_bpe", "--output", "t")
    assert "need 256" in refused(folder, *training, "--vocab-size", "9", "data/docs")
    assert "ROLE=STRING" in refused(folder, *training, "--vocab-size", "600", "--special-token", "end=x", "data/docs")
    failed = tokpack(folder, *encoding, "--tokenizer", "nope", "--json", "data/docs", may_fail=True)
    assert failed.code == 1
    assert "nope does not exist" in failed.json["error"]
    assert not list(folder.glob("x*"))
    assert not list(folder.glob("t.*"))


def test_an_eod_that_the_tokenizer_lacks_can_be_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes((folder / "tok" / "tokenizer.json").read_bytes())
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n', encoding="utf-8")
    encoding = ("encode", "--tokenizer", "tokenizer.json", "--append-eod", "--output", "x")
    assert "names no end-of-document token" in refused(tmp_path, *encoding, "a.jsonl")
    tokpack(tmp_path, *encoding, "--eod", "<|stop|>", "a.jsonl")
    assert read_raw(tmp_path / "x").sequences == [[*library_ids(folder, ["one"])[0], 600]]
    shown = tokpack(tmp_path, "inspect", "x", "--json").json
    assert shown["pack"]["segments"][0]["text"] == "one<|stop|>"


def test_arguments_that_are_no_utf_8(tmp_path: Path) -> None:
    name = "\udcff.txt"
    (tmp_path / name).write_text("a text", encoding="utf-8")
    train = ("train", "--family", "byte_bpe", "--vocab-size", "256", "--json", name, "--output")
    assert tokpack(tmp_path, *train, "out").json["counts"]["documents"] == 1
    for arguments in ((*train, "\udcff"), (*train, "other", "--lang", "\udcff")):
        ended = tokpack(tmp_path, *arguments, may_fail=True)
        assert ended.code == 1
        assert ended.json["error"].startswith("the argument \\xff is no UTF-8")
    assert not (tmp_path / "other").exists()
