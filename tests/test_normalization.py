"""Normalization against `unicodedata`, against plain Python, and by hand; and the report of what it changed."""

import re
import unicodedata
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.config import NormalizeConfig
from tokpack_core.corpus.canonical_order import LONG
from tokpack_core.corpus.normalization import KINDS, NormalizationChanges, NormalizationReport, normalize
from tokpack_core.corpus.normalization_report import MAX_REPLACED
from tokpack_core.corpus.normalization_table import class_table

KEEP = {"byte_order_marks": "keep"}
CLEAN = {"line_ends": "lf", "control_characters": "remove", "trailing_whitespace": "remove"}
SCALARS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ASSIGNED = st.characters(exclude_categories=("Cs", "Cn"))
COMPOSING = [chr(c) for c in np.flatnonzero(class_table("nfkc") >= 1) if unicodedata.category(chr(c)) != "Cn"]
JOINING = [c for c in COMPOSING if class_table("nfkc")[ord(c)] >= 2]
TRICKY = "\ufeff\r\n\t \x00\x1b\x7f\x85\xa0\u2003\u202f\u205f\u3000\u0301\u0345e\u1100\u1161\u11a8ﬁ，"
TEXTS = st.lists(
    st.text(st.one_of(ASSIGNED, st.sampled_from(COMPOSING), st.sampled_from(TRICKY)), max_size=12), max_size=4
)
CONFIGS = st.builds(
    NormalizeConfig,
    byte_order_marks=st.sampled_from(["strip", "keep"]),
    line_ends=st.sampled_from(["keep", "lf"]),
    control_characters=st.sampled_from(["keep", "remove"]),
    trailing_whitespace=st.sampled_from(["keep", "remove"]),
    unicode=st.sampled_from(["nfc", "nfkc", "none"]),
)


def run(text: str, **options: Any) -> tuple[str, dict[str, int]]:
    """The normalized text, and the characters affected by kind."""
    result, changes = normalize(pa.array([text]), NormalizeConfig(**options))
    counts = zip(KINDS, changes.characters[0].tolist(), strict=True)
    return result[0].as_py(), {kind: count for kind, count in counts if count}


def plain(text: str, config: NormalizeConfig) -> str:
    """What `normalize` does, by regular expressions and `unicodedata`."""
    if config.line_ends == "lf":
        text = re.sub("\r\n?", "\n", text)
    if config.control_characters == "remove":
        text = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", "", text)
    if config.byte_order_marks == "strip":
        text = text.lstrip("\ufeff")
    if config.trailing_whitespace == "remove":
        spaces = " \t\xa0\u2000-\u200a\u202f\u205f\u3000" if config.unicode == "nfkc" else " \t"
        text = re.sub(f"[{spaces}]+(?=[\r\n]|\\Z)", "", text)
    return text if config.unicode == "none" else unicodedata.normalize(config.unicode.upper(), text)


@settings(deadline=None, max_examples=400)
@given(TEXTS, CONFIGS)
def test_equals_plain_python_and_is_idempotent(texts: list[str], config: NormalizeConfig) -> None:
    result, changes = normalize(pa.array(texts, pa.string()), config)
    assert result.to_pylist() == [plain(text, config) for text in texts]
    assert (
        changes.characters.any(axis=1) == [old != new for old, new in zip(texts, result.to_pylist(), strict=True)]
    ).all()
    again, nothing = normalize(result, config)
    assert again is result
    assert not nothing.characters.any()
    assert not nothing.replaced


@pytest.mark.parametrize("form", ["nfc", "nfkc"])
def test_every_assigned_code_point_has_the_form_that_unicodedata_gives(form: str) -> None:
    result, _ = normalize(pa.array(SCALARS), NormalizeConfig(unicode=form, **KEEP))
    differing = [
        f"U+{ord(old):04X}"
        for old, new in zip(SCALARS, result.to_pylist(), strict=True)
        if unicodedata.normalize(form.upper(), old) != new and unicodedata.category(old) != "Cn"
    ]
    assert differing == []


@pytest.mark.parametrize("form", ["nfc", "nfkc"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("e", "\u0301"),
        ("\u0345", "\u0334"),
        ("\u1100", "\u11a8"),
        ("\uac00", "\u0323"),
        ("\u09c7", "\u1161"),
        ("\U00016d63", "\U00016d67"),
    ],
)
def test_every_code_point_between_others_has_the_form_of_the_whole_text(form: str, before: str, after: str) -> None:
    """Also for code points newer than Python's Unicode, where pyarrow on the whole text is the peer."""
    texts = pc.binary_join_element_wise(before, pa.array(SCALARS), after, "")
    result, _ = normalize(texts, NormalizeConfig(unicode=form, **KEEP))
    assert result.equals(pc.utf8_normalize(texts, form.upper()))


def test_only_these_characters_become_a_trailing_space_under_nfkc_and_none_a_line_end_or_control() -> None:
    forms = {c: unicodedata.normalize("NFKC", c) for c in SCALARS}
    assert re.fullmatch("[ \xa0\u2000-\u200a\u202f\u205f\u3000]+", "".join(c for c in forms if forms[c].endswith(" ")))
    assert not [c for c in forms if forms[c] != c and re.search("[\x00-\x1f\x7f-\x9f\ufeff]", forms[c])]


def test_cafe_keeps_its_accent_and_chinese_commas_do_not_survive_nfkc() -> None:
    assert run("cafe\u0301", unicode="nfc") == ("café", {"nfc": 2})
    assert run("café", unicode="nfkc") == ("café", {})
    assert run("你好，世界？", unicode="nfc") == ("你好，世界？", {})
    assert run("你好，世界？", unicode="nfkc") == ("你好,世界?", {"nfkc": 2})
    assert run("cafe\u0301，", unicode="none") == ("cafe\u0301，", {})


def test_indentation_and_inner_lines_are_kept_unless_told() -> None:
    code = "\tif x:  \r\n\r\n        y = 1\x0c\n\n\n"
    assert run(code) == (code, {})
    assert run(code, unicode="nfkc") == (code, {})
    assert run(code, **CLEAN) == (
        "\tif x:\n\n        y = 1\n\n\n",
        {"line_end": 2, "control_character": 1, "trailing_whitespace": 2},
    )


def test_byte_order_marks_only_at_the_start() -> None:
    assert run("\ufeff\ufeffa\ufeffb") == ("a\ufeffb", {"byte_order_mark": 2})
    assert run("\ufeffa", **KEEP) == ("\ufeffa", {})
    assert run("\ufeff") == ("", {"byte_order_mark": 1})
    assert run("\x00\ufeffa", control_characters="remove") == ("a", {"byte_order_mark": 1, "control_character": 1})


def test_line_ends() -> None:
    assert run("a\r\nb\rc\n\r\r\n", line_ends="lf") == ("a\nb\nc\n\n\n", {"line_end": 4})


def test_control_characters_but_tab_and_line_ends() -> None:
    assert run("a\tb\x00\x1b[0m\x7f\x85\x9f\xa0\r\n", control_characters="remove") == (
        "a\tb[0m\xa0\r\n",
        {"control_character": 5},
    )
    # What a control held apart is composed afterwards.
    assert run("e\x00\u0301", control_characters="remove") == ("é", {"control_character": 1, "nfc": 2})


def test_trailing_whitespace() -> None:
    assert run("  a \t\r\n \n b\xa0 ", trailing_whitespace="remove") == ("  a\r\n\n b\xa0", {"trailing_whitespace": 4})
    assert run("a\u3000\xa0\n", trailing_whitespace="remove", unicode="nfkc") == ("a\n", {"trailing_whitespace": 2})


def test_changes_by_document_and_what_was_replaced() -> None:
    texts = pa.array(["unseen ﬁ", "ﬁnﬁ", "", "plain", "，e\u0301\xa0"])[1:]
    result, changes = normalize(texts, NormalizeConfig(unicode="nfkc"))
    assert result.to_pylist() == ["finfi", "", "plain", ",é "]
    assert changes.characters[:, KINDS.index("nfkc")].tolist() == [2, 0, 0, 4]
    assert changes.characters.sum() == 6
    assert changes.replaced == {"ﬁ→fi": 2, "，→,": 1, "e\u0301→é": 1, "U+00A0→U+0020": 1}


def test_many_distinct_segments_and_forms_that_grow() -> None:
    syllables = [unicodedata.normalize("NFD", chr(c)) for c in range(0xAC00, 0xD7A4)]
    result, changes = normalize(pa.array(["".join(syllables), "".join(reversed(syllables))]), NormalizeConfig())
    assert result[0].as_py() == "".join(map(chr, range(0xAC00, 0xD7A4)))
    assert result[1].as_py() == result[0].as_py()[::-1]
    assert set(changes.replaced.values()) == {2}
    assert len(changes.replaced) == 11_172
    grown, _ = normalize(pa.array(["\ufdfa" * 1000]), NormalizeConfig(unicode="nfkc"))
    assert grown[0].as_py() == "صلى الله عليه وسلم" * 1000


def test_a_long_run_of_marks_takes_linear_time() -> None:
    """400,000 marks in a row: by insertion, as libraries sort them, this test would take a minute."""
    count = 200_000
    assert run("e" + "\u0323\u0301" * count) == (
        "\u1eb9" + "\u0323" * (count - 1) + "\u0301" * count,
        {"nfc": 2 * count + 1},
    )
    voiced = run("\u304b" + "\uff9e\u0301" * count, unicode="nfkc")
    assert voiced == ("\u304c" + "\u3099" * (count - 1) + "\u0301" * count, {"nfkc": 2 * count + 1})


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(JOINING), min_size=LONG, max_size=LONG + 20), st.sampled_from(["nfc", "nfkc"]))
def test_long_segments_have_the_form_that_unicodedata_gives(characters: list[str], form: str) -> None:
    text = "".join(characters)
    assert run(text, unicode=form, **KEEP)[0] == unicodedata.normalize(form.upper(), text)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_the_type_is_kept_and_text_in_order_is_not_copied(kind: pa.DataType) -> None:
    texts = pa.array(["已经", "e\u0301", "normalized"], kind)
    assert normalize(texts[2:], NormalizeConfig())[0].to_pylist() == ["normalized"]
    assert normalize(texts, NormalizeConfig())[0].equals(pa.array(["已经", "é", "normalized"], kind))
    untouched = texts[:1]
    assert normalize(untouched, NormalizeConfig(**CLEAN))[0] is untouched
    empty = pa.array([], kind)
    assert normalize(empty, NormalizeConfig(**CLEAN))[0] is empty


def test_null_is_refused() -> None:
    with pytest.raises(ValueError, match="1 of 2 entries are null"):
        normalize(pa.array(["a", None]), NormalizeConfig())


def report_of(texts: list[str], langs: list[str | None]) -> NormalizationReport:
    report = NormalizationReport()
    _, changes = normalize(pa.array(texts, pa.string()), NormalizeConfig(unicode="nfkc", **CLEAN))
    report.add(pa.array(langs, pa.string()), changes)
    return report


def test_report_by_language_and_kind() -> None:
    report = report_of(["，，", "，\r\n", "ﬁ \n", "plain", "\ufeffa"], ["zh", "zh", "en", "en", None])
    expected = {
        "en": {"trailing_whitespace": {"documents": 1, "characters": 1}, "nfkc": {"documents": 1, "characters": 1}},
        "und": {"byte_order_mark": {"documents": 1, "characters": 1}},
        "zh": {"line_end": {"documents": 1, "characters": 1}, "nfkc": {"documents": 2, "characters": 3}},
        "replaced": {"，→,": 3, "ﬁ→fi": 1},
    }
    assert report.to_json() == expected
    assert list(report.to_json(top=1)["replaced"].items()) == [("，→,", 3)]
    assert report_of(["plain"], ["en"]).to_json() == {"en": {}, "replaced": {}}


def test_a_language_called_replaced_does_not_get_lost() -> None:
    report = report_of(["，", "\ufeff"], ["zh", "replaced"])
    assert NormalizationReport.from_json(report.to_json(top=None)).to_json() == report.to_json()
    assert report.to_json()["replaced"] == {"byte_order_mark": {"documents": 1, "characters": 1}, "，→,": 1}


@settings(deadline=None, max_examples=50)
@given(st.lists(TEXTS, min_size=3, max_size=3), st.permutations(range(3)))
def test_reports_merge_in_any_order(batches: list[list[str]], order: list[int]) -> None:
    parts = [report_of(texts, [f"l{len(text) % 3}" for text in texts]) for texts in batches]
    whole = report_of([text for texts in batches for text in texts], [f"l{len(t) % 3}" for ts in batches for t in ts])
    left = NormalizationReport()
    for k in order:
        left.merge(NormalizationReport.from_json(parts[k].to_json(top=None)))
    right = parts[order[2]]
    right.merge(parts[order[0]])
    parts[order[1]].merge(right)
    assert left.to_json(top=None) == parts[order[1]].to_json(top=None) == whole.to_json(top=None)


def test_what_a_bounded_report_keeps_is_exact_in_any_order() -> None:
    """Three units, each with more replacements than are kept, overlapping; the peer is a sum over all."""
    units = [{f"{k:05d}→": k % 7 + 1 for k in range(start, start + MAX_REPLACED + 5000)} for start in (0, 3000, 9000)]
    total = {label: sum(unit.get(label, 0) for unit in units) for unit in units for label in unit}
    expected = {label: total[label] for label in sorted(total)[:MAX_REPLACED]}
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        report = NormalizationReport()
        for k in order:
            report.add(pa.array([], pa.string()), NormalizationChanges(np.zeros((0, len(KINDS)), np.int64), units[k]))
        assert report.replaced == expected
