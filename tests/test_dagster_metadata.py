"""What the UI shows of assets: figures, tables, pictures small enough to stand in place, links."""

import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import dagster as dg
import pyarrow.parquet as pq
import pytest

from tests.graph_in_process import GraphInProcess
from tests.small_project import write_small_project
from tokpack_assets.metadata import compression, spread
from tokpack_assets.pictures import LONGEST, bars, curve
from tokpack_core.stages.asset import read_json
from tokpack_core.store import history
from tokpack_core.store.store import open_store

MOST_PLOTS = 20
"""The UI shows no more."""
SEQUENCE_LENGTH = 512


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> GraphInProcess:
    graph = GraphInProcess(write_small_project(tmp_path_factory.mktemp("metadata")))
    graph.project.edit("    lang: code\n", "    lang: code\n    owners: [someone@example.org]\n")
    graph.project.edit(
        "    sample_bytes", '    owners: ["team:tokenizers"]\n    parallel: parallel.jsonl\n    sample_bytes'
    )
    sentence = '{"id": "1", "text": {"en": "the statement is executed", "zh": "语句被执行，然后返回一个值"}}\n'
    (graph.project.folder / "parallel.jsonl").write_text(sentence, encoding="utf-8")
    assert graph.materialize().success
    return graph


def rows(value: object) -> list[dict]:
    assert isinstance(value, dg.TableMetadataValue)
    return [dict(record.data) for record in value.records]


def test_every_asset_says_what_it_is(graph: GraphInProcess) -> None:
    store = open_store(graph.project.store)
    for key, digest in graph.versions().items():
        shown = graph.newest(key).metadata
        entry = history.require_latest(store, key)
        assert (shown["digest"].value, shown["version"].value) == (digest, entry.number)
        assert Path(str(shown["path"].value)).is_dir()
        assert int(str(shown["size_bytes"].value)) > 0
        assert float(str(shown["seconds"].value)) > 0
        assert (shown["units_run"].value, shown["units_reused"].value) >= (1, 0)
        assert sum(isinstance(v, dg.IntMetadataValue | dg.FloatMetadataValue) for v in shown.values()) <= MOST_PLOTS
        versions = {row["asset"]: row["version"] for row in rows(shown["made_from"])}
        prefix = "dagster/input_data_version/"
        recorded = {k.removeprefix(prefix): v for k, v in graph.newest(key).tags.items() if k.startswith(prefix)}
        assert {asset: version[:12] for asset, version in recorded.items()}.items() <= versions.items()


def test_definitions_are_described(graph: GraphInProcess) -> None:
    specs = {spec.key.to_user_string(): spec for spec in graph.definitions().resolve_all_asset_specs()}
    assert all(spec.description and spec.kinds and spec.group_name for spec in specs.values())
    owners = {key: list(spec.owners) for key, spec in specs.items() if spec.owners}
    code, tokenizer = "someone@example.org", "team:tokenizers"
    assert owners == {
        "source/code": [code],
        "corpus/code": [code],
        "normalized_corpus/code": [code],
        "tokenizer_model/bpe_600": [tokenizer],
        "vocabulary_report/bpe_600": [tokenizer],
        "tokenized_shards/bpe_600/code": [tokenizer, code],
        "tokenized_shards/bpe_600/docs": [tokenizer],
    }
    tags = specs["tokenized_shards/bpe_600/docs"].tags
    assert (tags["tokpack/tokenizer"], tags["tokpack/corpus"]) == ("bpe_600", "docs")
    checks = [spec for asset in graph.definitions().assets or [] for spec in getattr(asset, "check_specs", [])]
    assert checks
    assert all(spec.description for spec in checks)


def test_a_tokenizer_is_linked_by_name_and_version(graph: GraphInProcess) -> None:
    digest = graph.versions()["tokenizer_model/bpe_600"]
    event = graph.instance.get_latest_materialization_event(dg.AssetKey(["tokenizer_model", "bpe_600"]))
    assert event
    for key in graph.versions():
        shown = graph.newest(key).metadata
        if key.startswith(("vocabulary_report", "tokenized_shards", "packed_sequences", "megatron_dataset")):
            assert shown["tokenizer"] == dg.MetadataValue.asset(dg.AssetKey(["tokenizer_model", "bpe_600"]))
            assert shown["tokenizer_digest"].value == digest
            link = f"/assets/tokenizer_model/bpe_600?view=events&asOf={int(event.timestamp * 1000)}"
            assert shown["tokenizer_version"].value == f"[tokenizer_model/bpe_600 {digest[:12]}]({link})"
        else:
            assert "tokenizer" not in shown


def test_bytes_per_token_by_language(graph: GraphInProcess) -> None:
    shown = graph.newest("vocabulary_report/bpe_600").metadata
    found = {row["lang"]: row for row in rows(shown["bytes_per_token_by_language"])}
    report = read_json(Path(str(shown["report_file"].value)).with_name("report.json"))
    assert len(found) == len(report["test"]["languages"]) > 1
    for row in report["test"]["languages"]:
        assert found[row["lang"]]["bytes_per_token"] == pytest.approx(row["bytes"] / row["tokens"], abs=1e-6)
        assert len(found[row["lang"]]["bar"]) <= 20
    told = dict(part.split(" ", 1) for part in str(shown["compression"].value).split(", "))
    by_test = {row["lang"]: f"{row['bytes'] / row['tokens']:.2f}" for row in report["test"]["languages"]}
    assert {lang: told.pop(lang) for lang in by_test} == by_test
    assert all(ratio.endswith(("(training sample)", "more in the report")) for ratio in told.values())
    assert str(shown["report"].value).endswith(f"/{graph.versions()['vocabulary_report/bpe_600']}/report.html")


def test_a_language_without_a_test_document_is_told_of_the_sample() -> None:
    sample = [{"lang": "zh", "bytes_per_token": 3.4}, {"lang": "en", "bytes_per_token": 4.0}]
    test = [{"lang": "en", "bytes_per_token": 4.25}, {"lang": "zh", "bytes_per_token": None}]
    assert compression(test, sample) == "en 4.25, zh 3.40 (training sample)"
    assert compression([], sample) == "en 4.00, zh 3.40"
    many = [{"lang": f"l{number}", "bytes_per_token": 2.0} for number in range(10)]
    assert compression(test, many).endswith("l7 2.00 (training sample), 2 more in the report")


def test_figures_of_the_vocabulary_report(graph: GraphInProcess) -> None:
    shown = graph.newest("vocabulary_report/bpe_600").metadata
    report = read_json(Path(str(shown["report_file"].value)).with_name("report.json"))
    assert shown["unreachable_entries"].value == report["structure"]["unreachable"]["entries"]
    assert shown["residue_entries"].value == report["structure"]["residues"]["entries"]
    assert [row["title"] for row in rows(shown["findings"])] == [row["title"] for row in report["findings"]]
    used = {row["lang"]: row for row in rows(shown["utilization_by_language"])}
    for language in report["sample"]["languages"]:
        row = used.pop(language["lang"])
        assert (row["tokens"], row["utilization"]) == (
            pytest.approx(language["tokens"], rel=0.01),  # tokens of the curve are those of entries alone
            pytest.approx(language["utilization"], abs=1e-6),
        )
    assert used == {}
    fair = report["fairness"]
    assert fair["reference"] == "en"
    premiums = [fair["languages"][0]["premium"], 1.0]
    assert premiums[0] > 1
    assert [row["premium"] for row in rows(shown["premium_by_language"])] == pytest.approx(premiums, abs=1e-6)
    assert [len(row["bar"]) for row in rows(shown["premium_by_language"])] == [20, round(20 / premiums[0])]
    assert shown["worst_premium"].value == pytest.approx(premiums[0], abs=1e-6)
    assert shown["gini"].value == pytest.approx(fair["gini"], abs=1e-6)
    assert shown["worst_language"].value == "zh"


def test_files_of_a_corpus(graph: GraphInProcess) -> None:
    """Of the source as it is watched, and of the inventory: a picture of all sizes, and the largest by name."""
    sizes = {f"data/docs/{p.name}": p.stat().st_size for p in (graph.project.folder / "data" / "docs").iterdir()}
    for key in ("source/docs", "corpus/docs"):
        shown = graph.newest(key).metadata
        assert (shown["files"].value, shown["bytes"].value) == (3, sum(sizes.values()))
    listed = [(row["file"], row["bytes"]) for row in rows(shown["largest_files"])]
    assert dict(listed) == sizes
    assert [size for _, size in listed] == sorted(sizes.values(), reverse=True)
    assert drawn(str(shown["sizes"].value))[0].get("d", "").count("M") == 3
    assert spread(list(range(1_000))) == list(range(0, 1_000, 25))
    assert spread([3, 2]) == [3, 2]
    assert len(bars([10**12 - number for number in range(40)], "files by size, the largest first")) <= LONGEST


def test_splits_and_changes_of_a_normalized_corpus(graph: GraphInProcess) -> None:
    shown = graph.newest("normalized_corpus/docs").metadata
    splits = {row["split"]: row["bytes"] for row in rows(shown["splits"])}
    assert splits == {split: shown[f"{split}_bytes"].value for split in ("train", "valid", "test")}
    assert sum(splits.values()) == shown["bytes"].value
    assert sum(row["share"] for row in rows(shown["splits"])) == pytest.approx(1, abs=1e-5)
    assert rows(shown["changed_by_language"]) == [{"lang": "fr", "what": "nfc", "documents": 1, "characters": 6}]


def test_prefixes_of_a_dataset(graph: GraphInProcess) -> None:
    """Tokens are those of documents, without padding; what Megatron's blend leaves out is told."""
    packed, shown = (graph.newest(f"{stage}/base").metadata for stage in ("packed_sequences", "megatron_dataset"))
    assert [shown[name].value for name in ("packs", "tokens", "padding")] == [
        packed[name].value for name in ("packs", "tokens", "padding")
    ]
    prefixes = rows(shown["prefixes"])
    assert all(row["tokens"] + row["padding"] == row["packs"] * SEQUENCE_LENGTH for row in prefixes)
    assert {row["packs"] >= 2: row["in_blend"] for row in prefixes}.items() <= {
        True: "yes",
        False: "no, too few packs",
    }.items()
    assert shown["left_out_of_blend"].value == sum(row["in_blend"] != "yes" for row in prefixes)


def test_settings_that_shape_an_asset(graph: GraphInProcess) -> None:
    """Of the definition as configured now, of a version as it was made with."""
    specs = {spec.key.to_user_string(): spec for spec in graph.definitions().resolve_all_asset_specs()}
    for key in graph.versions():
        assert graph.newest(key).metadata["made_with"] == specs[key].metadata["configured"]
    trained_with = graph.newest("tokenizer_model/bpe_600").metadata["made_with"].value
    assert isinstance(trained_with, dict)
    assert (trained_with["vocab_size"], trained_with["train_on"]) == (600, {"docs": 0.7, "code": 0.3})
    assert graph.newest("tokenized_shards/bpe_600/docs").metadata["made_with"].value == {"bos": False}
    training = graph.newest("tokenizer_model/bpe_600").metadata["training"].value
    assert isinstance(training, dict)
    assert training["documents"] > 0


def test_packs_by_fill(graph: GraphInProcess) -> None:
    """Against the published plans, pack by pack."""
    shown = graph.newest("packed_sequences/base").metadata
    by_tenth: Counter[str] = Counter()
    for path in open_store(graph.project.store).objects.glob("packing_block/*/plan.parquet"):
        for pack in pq.read_table(path).group_by("pack").aggregate([("length", "sum")]).to_pylist():
            tenth = pack["length_sum"] * 10 // SEQUENCE_LENGTH
            by_tenth["full" if tenth == 10 else f"{10 * tenth} to {10 * (tenth + 1)} %"] += 1
    found = {row["filled"]: row["packs"] for row in rows(shown["packs_by_fill"]) if row["packs"]}
    assert found == dict(by_tenth)
    assert len(found) > 1
    assert sum(found.values()) == shown["packs"].value


def test_pictures_stand_in_place(graph: GraphInProcess) -> None:
    report = "vocabulary_report/bpe_600"
    for key, name in ((report, "coverage"), (report, "growth"), ("packed_sequences/base", "fill")):
        assert drawn(str(graph.newest(key).metadata[name].value)).tag.endswith("svg")


def drawn(markdown: str) -> ElementTree.Element:
    """The picture of a line of markdown which the UI shows in place."""
    assert len(markdown) <= LONGEST
    found = re.fullmatch(r"!\[[^\]]*\]\(data:image/svg\+xml,([^() ]*)\)", markdown)
    assert found
    return ElementTree.fromstring(unquote(found[1]))


def test_bars() -> None:
    (path,) = drawn(bars([0, 1, 2], "three"))
    assert path.get("d") == "M80,48v-24h78v24M160,48v-48h78v48"
    assert len(drawn(bars([0, 0], "none"))) == 1
    assert drawn(bars(list(range(11)), "eleven")).get("width") == "240"


def test_a_curve() -> None:
    (line,) = drawn(curve([1, 10, 100], [0.0, 0.5, 1.0], "a line"))
    assert line.get("points") == "0,48,120,24,240,0"
    many = [float(x) for x in range(1, 5_000)]
    assert drawn(curve(many, [x / 5_000 for x in many], "many points")).get("height") == "48"
    assert len(drawn(curve([], [], "none"))) == 0
