"""An encode in units gives the bytes and the manifest of one that reads file after file, wherever the units run."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.command_line import EOD, refused, tokpack
from tests.small_project import write_small_project
from tests.test_merge import same_bytes
from tokpack_core.commands import encode_in_worker, encode_on_engine, encode_units
from tokpack_core.commands.document_encoder import EncodeOptions
from tokpack_core.commands.encode import encode
from tokpack_core.commands.encode_units import EncodeUnit, large_files, make_units
from tokpack_core.commands.opened_tokenizer import open_tokenizer
from tokpack_core.commands.reading import open_reading
from tokpack_core.commands.token_files import TokenFiles, append_file
from tokpack_core.config import ReadConfig
from tokpack_core.corpus.documents import read_documents
from tokpack_core.corpus.files import SourceFile
from tokpack_core.corpus.problems import Problems
from tokpack_core.corpus.ranges import LineRanges, RowRange, has_ranges, row_group_ranges
from tokpack_core.engine import Engine, LocalEngine
from tokpack_core.errors import InputError, LostUnitError

FILES = ("a.jsonl", "small", "b.parquet", "c.jsonl.gz")
KEYS = ("text", "title")


def rows_of(texts: Sequence[str], first: int) -> list[dict[str, Any]]:
    return [{"text": text, "title": [f"{first + n}", text[:20]]} for n, text in enumerate(texts)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer, and files of every kind: with ranges, many small ones, and one that has none."""
    root = tmp_path_factory.mktemp("units")
    write_small_project(root)
    tokpack(root, "train", "--family", "byte_bpe", "--vocab-size", "400", "--special-token", f"eod={EOD}",
            "--output", "tok", "data/docs")  # fmt: skip
    texts = [row["text"] for row in map(json.loads, (root / "data" / "docs" / "0.jsonl").open(encoding="utf-8"))]
    lines = [json.dumps(row) for row in rows_of(texts, 0)]
    lines[3:3] = ["", '{"text": 7, "title": 8}', "no JSON"]
    (root / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")  # the last line has no end
    (root / "small").mkdir()
    for number, text in enumerate(texts[:5]):
        line = json.dumps({"text": [text, "", "more"], "title": ""})
        (root / "small" / f"{number}.jsonl").write_text(f"{line}\n", encoding="utf-8")
    table = pa.table({"text": [None, *texts], "title": [None, *(f"title {n}" for n in range(len(texts)))]})
    pq.write_table(table, root / "b.parquet", row_group_size=7)
    with gzip.open(root / "c.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows_of(texts, 1000))
    return root


@pytest.fixture(scope="module")
def whole(folder: Path) -> dict[str, Any]:
    return run(folder, folder / "whole", None)


def run(
    folder: Path,
    output: Path,
    cluster: Engine | None,
    files: Sequence[str] = FILES,
    on_error: str = "skip",
    resume: bool = False,
) -> dict[str, Any]:
    opened = open_tokenizer(folder / "tok")
    reading = open_reading(
        [str(folder / file) for file in files], ReadConfig.model_validate({"on_error": on_error}), None
    )
    options = EncodeOptions(append_eod=True, json_keys=KEYS, resume=resume)
    return encode(opened, reading, output, options, quiet=True, cluster=cluster)


def same_output(one: Path, other: Path) -> bool:
    return all(
        same_bytes(one.with_name(f"{one.name}_{key}_document"), other.with_name(f"{other.name}_{key}_document"))
        for key in KEYS
    )


def without_names(manifest: dict[str, Any]) -> dict[str, Any]:
    """Outputs by what they hold; all else as it is."""
    return manifest | {"outputs": [(entry["size"], entry["sha256"]) for entry in manifest["outputs"]]}


@pytest.mark.parametrize("goal", [1, 5_000, 10**9])
def test_units_of_any_size_give_what_one_run_gives(
    folder: Path, whole: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goal: int
) -> None:
    monkeypatch.setattr(encode_on_engine, "UNIT_BYTES", goal)
    done = run(folder, tmp_path / "x", LocalEngine(1))
    assert same_output(tmp_path / "x", folder / "whole")
    assert without_names(done) == without_names(whole)
    assert done["counts"]["fields"]["text"]["reading"]["skipped"] == {
        "invalid JSON": 1,
        "null text": 1,
        "text is not a string": 1,
    }
    assert {path.name for path in tmp_path.iterdir()} == {
        "x.manifest.json",
        *(f"x_{key}_document.{ending}" for key in KEYS for ending in ("bin", "idx")),
    }


def test_files_are_joined_where_the_kernel_copies_none(tmp_path: Path) -> None:
    """/proc is such a place."""
    (tmp_path / "a").write_bytes(b"of the folder")
    with (tmp_path / "x").open("w+b") as file:
        file.write(b"first ")
        for path in (tmp_path / "a", Path("/proc/version"), tmp_path / "a"):
            append_file(path, file)
        file.write(b"!")
    version = Path("/proc/version").read_bytes()
    assert (tmp_path / "x").read_bytes() == b"first of the folder" + version + b"of the folder!"


class Stopped(Exception):
    pass


class StopsAfter(LocalEngine):
    """Runs units in other order and some of them twice, as a cluster may, and stops after a number of results."""

    def __init__(self, results: int) -> None:
        super().__init__(1)
        object.__setattr__(self, "results", results)

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        for place in range(0, len(items), 4):
            some = items[place : place + 4]
            for item in [*reversed(some), some[0]]:
                function(item)
            for item in some:
                if isinstance(item, EncodeUnit):
                    if not self.results:  # type: ignore[attr-defined]
                        raise Stopped
                    object.__setattr__(self, "results", self.results - 1)  # type: ignore[attr-defined]
                yield function(item)


def test_stopped_again_and_again_the_bytes_are_the_same(
    folder: Path, whole: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode_on_engine, "CHECKPOINT_SECONDS", 0)
    monkeypatch.setattr(encode_on_engine, "UNIT_BYTES", 5_000)
    made: list[int] = []
    write = encode_in_worker.write_unit

    def counted(settings: Any, unit: EncodeUnit, into: Path) -> None:
        made.append(unit.number)
        write(settings, unit, into)

    monkeypatch.setattr(encode_in_worker, "write_unit", counted)
    joined = []
    for results in (0, 3, 2):
        with pytest.raises(Stopped):
            run(folder, tmp_path / "x", StopsAfter(results), resume=True)
        checkpoint = tmp_path / ".x.unfinished" / "unfinished" / "checkpoint.json"
        joined.append(json.loads(checkpoint.read_bytes())["units"] if checkpoint.exists() else 0)
    assert joined == [0, 3, 5]
    with pytest.raises(InputError, match="had other files, options, engine or tokenizer"):
        run(folder, tmp_path / "x", None, resume=True)
    done = run(folder, tmp_path / "x", LocalEngine(1), resume=True)
    assert made == list(dict.fromkeys(made)), "a unit that was done is not done again"
    assert sorted(made) == list(range(max(made) + 1))
    assert same_output(tmp_path / "x", folder / "whole")
    assert done["counts"] == whole["counts"]
    assert done["inputs"] == whole["inputs"]


def test_units_that_no_checkpoint_names_are_joined_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode_on_engine, "UNIT_BYTES", 5_000)
    monkeypatch.setattr(encode_on_engine, "CHECKPOINT_SECONDS", 1_000)
    with pytest.raises(Stopped):
        run(folder, tmp_path / "x", StopsAfter(5), resume=True)
    checkpoint = tmp_path / ".x.unfinished" / "unfinished" / "checkpoint.json"
    assert json.loads(checkpoint.read_bytes())["units"] == 0
    monkeypatch.setattr(encode_in_worker, "write_unit", write_no_first_unit)
    run(folder, tmp_path / "x", LocalEngine(1), resume=True)
    assert same_output(tmp_path / "x", folder / "whole")


def test_a_checkpoint_costs_as_much_behind_many_files_as_behind_one(tmp_path: Path) -> None:
    def entries(numbers: range) -> list[dict[str, Any]]:
        return [{"path": f"/data/{number}.jsonl", "size": number, "sha256": "0" * 64} for number in numbers]

    files = TokenFiles([tmp_path / "x"], np.dtype("<u2"), "job")
    sizes = []
    for known in (1, 500, 1_000):
        files.state.inputs += entries(range(len(files.state.inputs), known))
        files.save()
        sizes.append((files.scratch / "checkpoint.json").stat().st_size)
    assert max(sizes) - min(sizes) < 10
    files.state.inputs += entries(range(1_000, 1_001))
    files.close()
    with (files.scratch / "inputs.jsonl").open("ab") as file:
        file.write(b'{"path": "/data/1000')
    resumed = TokenFiles([tmp_path / "x"], np.dtype("<u2"), "job")
    assert resumed.state.inputs == entries(range(1_000)), "what no checkpoint names is cut off"
    resumed.state.inputs += entries(range(1_000, 1_002))
    resumed.save()
    resumed.close()
    again = TokenFiles([tmp_path / "x"], np.dtype("<u2"), "job")
    assert again.state.inputs == entries(range(1_002))
    again.close()


def write_no_first_unit(settings: Any, unit: EncodeUnit, into: Path, write: Any = encode_in_worker.write_unit) -> None:
    assert unit.number >= 5, "it is done"
    write(settings, unit, into)


def test_a_document_at_fault_is_named_by_file_and_line(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode_on_engine, "UNIT_BYTES", 3_000)
    for engine in (None, LocalEngine(1)):
        for name, said in (
            ("a.jsonl", r"a\.jsonl, line 5: text is not"),
            ("b.parquet", r"b\.parquet, row 1: null text"),
        ):
            with pytest.raises(InputError, match=said):
                run(folder, tmp_path / "x", engine, [name], "error")
    late = (folder / "a.jsonl").read_text(encoding="utf-8").splitlines()
    late = [line for line in late if line.startswith("{") and ": 7" not in line] + ["{"]
    (tmp_path / "late.jsonl").write_text("\n".join(late) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"late\.jsonl, line {len(late)}: invalid JSON"):
        run(folder, tmp_path / "x", LocalEngine(1), [str(tmp_path / "late.jsonl")], "error")
    assert {path.name for path in tmp_path.iterdir()} == {"late.jsonl"}


def test_a_machine_that_sees_other_files_is_named(folder: Path, tmp_path: Path) -> None:
    class Elsewhere(LocalEngine):
        """Takes away a path while a unit runs, as if it ran where the path is not."""

        def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
            for item in items:
                away.rename(hidden)
                try:
                    yield function(item)
                finally:
                    hidden.rename(away)

    shutil.copytree(folder, tmp_path / "in")
    hidden = tmp_path / "hidden"
    for away in (
        tmp_path / "in" / "tok",
        tmp_path / "in" / "a.jsonl",
        tmp_path / "out" / ".x.draft" / "unfinished" / "units",
    ):
        (tmp_path / "out").mkdir(exist_ok=True)
        with pytest.raises(
            InputError, match=rf"{away}: the machine \S+ does not see it as .*; every node must see tokenizer, "
        ):
            run(tmp_path / "in", tmp_path / "out" / "x", Elsewhere(1), ["a.jsonl"])


def test_a_lost_unit_is_named(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Loses(LocalEngine):
        def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
            for item in items:
                if isinstance(item, EncodeUnit) and item.part and item.part.first_row > 8:
                    raise LostUnitError("lost")
                yield function(item)

    monkeypatch.setattr(encode_on_engine, "UNIT_BYTES", 3_000)
    with pytest.raises(LostUnitError, match=r"/b\.parquet, from row 15: lost"):
        run(folder, tmp_path / "x", Loses(1), ["b.parquet"])


def test_options_that_do_not_go_together(folder: Path, tmp_path: Path) -> None:
    encoding = ("encode", "--tokenizer", folder / "tok", "--output", tmp_path / "x", folder / "b.parquet")
    assert "--ray-address goes with --engine ray" in refused(folder, *encoding, "--ray-address", "127.0.0.1:9")
    assert "--workers is for the engine local" in refused(folder, *encoding, "--engine", "ray", "--workers", "2")
    blocks = ("--content-field", "content", "--vision", "vit_patches", "--engine", "ray")
    assert "--engine ray is for documents of text" in refused(folder, *encoding, *blocks)


def source(name: str, size: int) -> SourceFile:
    return SourceFile(name, Path(name), size, 0, 0)


def test_small_files_share_units_and_large_ones_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [source(f"{n}.jsonl", size) for n, size in enumerate([4, 5, 2, 30, 9, 1, 1, 1])] + [source("x.csv", 40)]
    assert [one.number for one in large_files(files, 10)] == [3]
    ranges = [RowRange(0, 14, 1, 14), RowRange(14, 30, 3, 16)]
    monkeypatch.setattr(encode_units, "UNIT_FILES", 3)
    units = make_units(files, 10, {3: ({"path": "3.jsonl"}, ranges)})
    found = [([file.name for file in unit.files], unit.part, unit.bytes) for unit in units]
    assert found == [
        (["0.jsonl", "1.jsonl"], None, 9),
        (["2.jsonl"], None, 2),
        (["3.jsonl"], ranges[0], 14),
        (["3.jsonl"], ranges[1], 16),
        (["4.jsonl", "5.jsonl"], None, 10),
        (["6.jsonl", "7.jsonl"], None, 2),
        (["x.csv"], None, 40),
    ]
    assert [unit.number for unit in units] == list(range(7))
    cut = [f"a.{ending}" for ending in ("jsonl", "json", "parquet")]
    assert [name for name in (*cut, "a.jsonl.gz", "a.csv", "a.txt", "a.arrow") if has_ranges(name)] == cut


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60).map(lambda data: data.replace(b"\x00", b"\n")), st.integers(1, 12), st.integers(1, 9))
def test_lines_are_cut_at_the_first_end_after_each_goal(data: bytes, goal: int, block: int) -> None:
    lines = LineRanges(goal)
    for start in range(0, len(data), block):
        lines.add(data[start : start + block])
    expected = []
    start = 0
    while start < len(data):
        stop = data.find(b"\n", start + goal - 1) + 1 or len(data)
        expected.append(RowRange(start, stop, data[:start].count(b"\n") + 1, stop - start))
        start = stop
    assert lines.finish() == expected


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.sampled_from(['{"text": "a"}', "", '{"text": "bb \\u00e9"}', "\ufeff" + '{"text": ""}', "[1]", "{"]),
        max_size=9,
    ),
    st.booleans(),
    st.integers(1, 40),
)
def test_ranges_hold_the_rows_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], ended: bool, goal: int
) -> None:
    lines.insert(0, '{"text": "no array"}')
    path = tmp_path_factory.mktemp("ranges") / "a.jsonl"
    path.write_text("\n".join(lines) + ("\n" if ended else ""), encoding="utf-8")
    cut = LineRanges(goal)
    cut.add(path.read_bytes())
    check_ranges(path, cut.finish())


def test_row_groups_hold_the_rows_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = [None if n % 9 == 3 else f"{n}" * n for n in range(50)]
    pq.write_table(pa.table({"text": texts}), path, row_group_size=4)
    for goal, count in ((1, 13), (10**9, 1)):
        ranges = row_group_ranges(path, goal)
        assert len(ranges) == count
        assert 0 <= path.stat().st_size - sum(one.bytes for one in ranges) < count
        check_ranges(path, ranges)
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    assert row_group_ranges(tmp_path / "b.parquet", 1) == []


def check_ranges(path: Path, ranges: list[RowRange]) -> None:
    options = ReadConfig.model_validate({"on_error": "skip"})
    together, whole = Problems(), Problems()

    def documents(problems: Problems, part: RowRange | None) -> list[tuple[int, str]]:
        batches = list(read_documents(path, "a", options, problems, part=part))
        return [(row["row"], row["text"]) for batch in batches for row in batch.to_pylist()]

    found = []
    for part in ranges:
        found += documents(problems := Problems(), part)
        together.merge(problems)
    assert found == documents(whole, None)
    assert together == whole
