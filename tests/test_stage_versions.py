"""A stage whose output for the same input changes must raise its number, or old objects would pass for new ones.

The digests below are what each stage makes of a fixed text. When one of them changes on purpose: raise VERSION of the
first stage that differs, and write the new digests here. They hold for the library versions that they were made with;
under others the comparison says nothing.
"""

from importlib.metadata import version
from pathlib import Path

import pytest

from tests.small_project import CONFIG, SmallProject
from tests.test_families_in_graph import LENIENT, STRICT
from tokpack_core.stages import corpus, export, normalize, pack, report, shards, tokenizer

LIBRARIES = {"pyarrow": "26.0.1", "tokenizers": "0.23.3", "sentencepiece": "0.2.3"}
VERSIONS = {
    "corpus": corpus.VERSION,
    "normalized_corpus": normalize.VERSION,
    "tokenizer_model": tokenizer.VERSION,
    "vocabulary_report": report.VERSION,
    "tokenized_shards": shards.VERSION,
    "packed_sequences": pack.VERSION,
    "megatron_dataset": export.VERSION,
}
OUTPUTS: dict[str, tuple[int, str]] = {
    "corpus/code": (1, "ab6b0daf7b0e18c2"),
    "normalized_corpus/code": (3, "c3d87902c31ebe7a"),
    "corpus/docs": (1, "15e5a6ac23486882"),
    "normalized_corpus/docs": (3, "b0a0bbeecfc5a786"),
    "tokenizer_model/bpe_600": (11, "6fa57141af34eb21"),
    "vocabulary_report/bpe_600": (14, "2eea995363da1a42"),
    "tokenized_shards/bpe_600/code": (1, "36b1978de8ce53df"),
    "tokenized_shards/bpe_600/docs": (1, "630aa512fc8635e9"),
    "packed_sequences/base": (3, "67fdd9e94a325643"),
    "megatron_dataset/base": (3, "b6f6959a64149766"),
}


def write_fixed_project(folder: Path) -> SmallProject:
    for name in ("configs", "data/docs", "data/code"):
        (folder / name).mkdir(parents=True)
    (folder / "configs" / "project.yaml").write_text(CONFIG.replace(STRICT, LENIENT))
    words = ["the", "quick", "brown", "fox", "jumps", "over", "lazy", "caf\u00e9s", "stay", "\u4e2d\u6587"]
    rows = []
    for number in range(120):
        text = " ".join(words[(number * k) % len(words)] for k in range(1, 30 + number % 50))
        rows.append(f'{{"id": "{number}", "text": "{text} {number}", "lang": "en"}}\n')
    (folder / "data" / "docs" / "a.jsonl").write_text("".join(rows), encoding="utf-8")
    for number in range(12):
        lines = [f"def f{number}_{k}(x):\n\treturn x * {k}\n" for k in range(20)]
        (folder / "data" / "code" / f"{number}.txt").write_text("".join(lines))
    return SmallProject(folder)


@pytest.mark.skipif({n: version(n) for n in LIBRARIES} != LIBRARIES, reason="digests are of other library versions")
def test_a_changed_output_has_a_changed_version(tmp_path: Path) -> None:
    project = write_fixed_project(tmp_path)
    found = {}
    for key, built in project.build().items():
        stage = built.entry.object.stage
        found[key] = (VERSIONS[stage], built.entry.object.digest[:16])
    assert found == OUTPUTS
