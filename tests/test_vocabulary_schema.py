"""Every key of report.json stands in docs/report.md; curves by language and round trips are right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import regex

from tests.command_line import EOD
from tokpack_core.commands.opened_tokenizer import open_tokenizer
from tokpack_core.commands.reading import open_reading
from tokpack_core.commands.report import Options, report
from tokpack_core.config import ReadConfig, SpecialTokens, TrainConfig
from tokpack_core.tokenizers.agreement.round_trip import difference
from tokpack_core.tokenizers.registry import train
from tokpack_core.vocabulary.counts import LANGUAGE_SCHEMA, TOKEN_SCHEMA, TokenCounts
from tokpack_core.vocabulary.language_curves import language_curves, utilization_by_rank

DOCUMENTATION = Path(__file__).parents[1] / "docs" / "report.md"
ENGLISH = ["the cat sat on the mat and the dog sat by the cat 1234567"] * 30
FRENCH = ["le chat était assis, le chien aussi"] * 20 + ["rare\u200bment  deux"] * 3


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("reports")
    rows = [{"id": f"{lang}{k}", "lang": lang, "text": text} for lang, texts in
            (("en", ENGLISH), ("fr", FRENCH)) for k, text in enumerate(texts)]  # fmt: skip
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "p.jsonl").write_text('{"id": "1", "text": {"en": "the cat", "fr": "le chat"}}\n', encoding="utf-8")
    made = {}
    for family, size in (("byte_bpe", 300), ("wordpiece", 120)):
        config = TrainConfig(
            family=family, vocab_size=size, special_tokens=SpecialTokens(eod=EOD, unk="[UNK]", pad="[PAD]", bos="[BOS]")
        )
        (folder / family).mkdir()
        train(config, iter([pa.array([row["text"] for row in rows])]), "nfc").save(folder / family)
        reading = open_reading([str(folder / "a.jsonl")], ReadConfig(lang_field="lang", id_field="id"), None)
        report(open_tokenizer(folder / family), reading, Options(folder / "p.jsonl"), folder / f"r_{family}", True)
        made[family] = json.loads((folder / f"r_{family}" / "report.json").read_bytes())
    return made


def keys(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield f"{path}.{key}"
            yield from keys(part, f"{path}.{key}")
    elif isinstance(value, list):
        for part in value:
            yield from keys(part, path)


def test_every_key_is_documented(reports: dict[str, Any]) -> None:
    found = {key for made in reports.values() for key in keys(made)}
    assert len(found) > 200
    documented = set(regex.findall(r"\w+", " ".join(regex.findall("`([^`]*)`", DOCUMENTATION.read_text("utf-8")))))
    assert sorted(key for key in found if key.rpartition(".")[2] not in documented) == []


def test_round_trips_tell_documents_and_bytes(reports: dict[str, Any]) -> None:
    trips = reports["wordpiece"]["round_trip"]
    assert (trips["documents"], trips["failures"]) == (53, 23)
    # WordPiece puts a space before the comma, at byte 20: é is two.
    lost = {"byte": 20, "text": ", le chien aussi", "became": " , le chien aussi"}
    assert trips["examples"] == [{"document": f"fr{k}"} | lost for k in range(10)]
    assert reports["byte_bpe"]["round_trip"] == {"documents": 53, "failures": 0, "examples": []}


def test_the_byte_where_texts_differ() -> None:
    assert difference("añb", "añc") == {"byte": 3, "text": "b", "became": "c"}
    # ñ is c3 b1, ò is c3 b2: the second byte differs, and the whole character is shown.
    assert difference("añb", "aòb") == {"byte": 2, "text": "ñb", "became": "òb"}
    assert difference("ab", "ab ") == {"byte": 2, "text": "", "became": " "}


def test_curves_of_a_language_are_of_its_own_text() -> None:
    # Entries 1 to 4; en has 1 four times and 2 once; no language has 3 ten times; id 0 is special.
    rows = [("en", 0, 7), ("en", 1, 4), ("en", 2, 1), (None, 3, 10)]
    table = pa.table([pa.array(column) for column in zip(*rows, strict=True)], schema=TOKEN_SCHEMA)
    counts = TokenCounts.of(table, LANGUAGE_SCHEMA.empty_table(), 5)
    vocabulary = pa.table({"id": pa.array(range(5), pa.int32()), "special": [True] + [False] * 4})
    first, second = language_curves(counts, vocabulary)
    assert (first["lang"], first["growth"]["tokens"][-1], first["growth"]["utilization"][-1]) == ("und", 10, 0.25)
    assert (second["lang"], second["growth"]["tokens"][-1], second["growth"]["utilization"][-1]) == ("en", 5, 0.5)
    assert second["growth"]["chance_of_new"] == 1 / 5
    assert (first["utilization_by_rank"], second["utilization_by_rank"]) == ([0, 0, 1, 0], [1, 1, 0, 0])
    # Half of a language's text would show 1 - (1 - p)^count of each entry.
    share = next(k for k, tokens in enumerate(second["growth"]["tokens"]) if tokens > 2)
    p = float(np.geomspace(2**-14, 1, 40)[share])
    assert second["growth"]["utilization"][share] == pytest.approx((1 - (1 - p) ** 4 + p) / 4)


def test_utilization_by_rank_is_of_forty_runs() -> None:
    seen = utilization_by_rank(np.concatenate([np.ones(100, np.int64), np.zeros(300, np.int64)]))
    assert seen == [1.0] * 10 + [0.0] * 30
