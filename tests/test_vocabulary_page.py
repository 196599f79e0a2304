"""The report page: safe with any token, self-contained, deterministic; and tokens made visible."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokpack_core.config import TokenizerChecks
from tokpack_core.tokenizers.protocol import VOCABULARY_SCHEMA
from tokpack_core.verdict import Verdict
from tokpack_core.vocabulary import svg_plots
from tokpack_core.vocabulary.counts import LANGUAGE_SCHEMA, TokenCounts
from tokpack_core.vocabulary.gates import evaluate
from tokpack_core.vocabulary.number_format import abbreviated, byte_size, decimal, percent
from tokpack_core.vocabulary.report import build_report
from tokpack_core.vocabulary.report_page import render_page
from tokpack_core.vocabulary.visible import visible

HOSTILE = [
    b"</script><script>alert(1)</script>",
    b"<!--<script>",
    b"]]>",
    b"\"'><img src=x onerror=alert(1)>",
    b"&lt;&amp;",
    b"${style}$$",
    b"https://example.org/x.js",
    b"\x00\x1b\x7f",
    "\u202e\u2066\u200b\ufeff\u2028\u0085".encode(),
    "\u0301\U000e0001\U0001f600".encode(),
    b"\xff\xfe",
    b"\xe4\xb8",
    b" \t\r\n",
    b"",
]
VOID = {"meta", "input", "wbr", "br"}


class Page(HTMLParser):
    """Checks that elements nest, and collects scripts, attributes and the text by element."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)


def hostile_report(languages: list[str], tested: bool = True) -> dict[str, Any]:
    size = len(HOSTILE)
    columns = [range(size), HOSTILE, [True] + [False] * (size - 1), [False] * size]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, VOCABULARY_SCHEMA, strict=True)]
    rows = [
        {"lang": lang, "documents": 1, "bytes": 400 + i, "characters": 300, "words": 50, "tokens": 100}
        for i, lang in enumerate(languages)
    ]
    counts = TokenCounts(np.arange(size), pa.Table.from_pylist(rows, LANGUAGE_SCHEMA))
    test = counts if tested else TokenCounts.zero(size)
    facts = {"family": "<b>bpe</b>", "special_tokens": {"eod": 0}, "absent": None}
    vocabulary = pa.table(arrays, VOCABULARY_SCHEMA)
    report = build_report("<i>\u202ename</i>", facts, vocabulary, counts, test)
    return report | {"passages": [{"title": "<u>title", "ids": list(range(size))}]}


REPORT = hostile_report(["en", "zh", "<s>&"])
PAGE = render_page(REPORT)


def test_page_is_well_formed_and_hostile_tokens_make_no_element() -> None:
    page = Page(PAGE)
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 2
    assert not {"img", "i", "u", "s", "link", "iframe", "object", "base"} & set(tags)
    names = {name for _, attributes in page.elements for name in attributes}
    assert not {name for name in names if name.startswith("on")}
    assert page.text["h1"] == ["<i>⟨U+202E⟩name</i>"]
    assert page.text["title"][0] == "<i>⟨U+202E⟩name</i> · vocabulary report"


def test_page_loads_nothing_from_elsewhere() -> None:
    page = Page(PAGE)
    for _, attributes in page.elements:
        assert not {"src", "href", "xlink:href", "srcset", "data", "action", "background", "style"} & set(attributes)
    style = "".join(page.text["style"])
    assert "url(" not in style
    assert "@import" not in style
    without_data = re.sub(r'<script type="application/json".*?</script>', "", PAGE, flags=re.DOTALL)
    # The only address is the hostile token itself, as text where entries are shown.
    addresses = re.findall(r"\w+://[^<\s]*", without_data)
    assert set(addresses) == {"https://example.org/x.js"}


def test_policy_allows_the_page_its_own_script_only() -> None:
    page = Page(PAGE)
    policy = next(a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a)
    script = page.text["script"][-1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def test_hostile_tokens_survive_in_the_token_data() -> None:
    source = Page(PAGE).text["script"][0]
    assert not set("<>&") & set(source)
    data = json.loads(source)
    assert data["tokens"] == [visible(token) for token in HOSTILE]
    assert data["tokens"][0] == "</script><script>alert(1)</script>"
    assert data["id"] == list(range(len(HOSTILE)))
    assert data["sample"] == data["test"] == list(range(len(HOSTILE)))
    assert data["scriptNames"][data["scripts"][2]] == "common"
    assert data["markNames"][0] == "unreachable"
    assert data["kinds"] == "40000000001100"


def test_page_source_has_no_hidden_or_reordering_characters() -> None:
    assert set(re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", PAGE)) == set()
    page = render_page({**REPORT, "name": "a\u200bb", "tokenizer": {"k": "\u2066\x00"}})
    assert "<h1>a⟨U+200B⟩b</h1>" in page
    assert "<dd>⟨U+2066⟩⟨U+0000⟩</dd>" in page


def test_page_is_deterministic_and_holds_no_verdict_unless_given() -> None:
    assert render_page(hostile_report(["en", "zh", "<s>&"])) == PAGE
    assert 'class="verdicts"' not in PAGE
    verdicts = evaluate(REPORT, TokenizerChecks(max_rare_token_share=0.05))
    judged = Page(render_page(REPORT, verdicts))
    classes = [a.get("class") for tag, a in judged.elements if tag == "li"]
    assert classes[:3] == ["failed", "passed", "passed"]
    assert verdicts[1].explanation in judged.text["bdi"]


def test_a_failed_check_that_does_not_block_is_a_warning_and_is_shown_safely() -> None:
    page = Page(
        render_page(REPORT, [Verdict("round_trip", False, 3.0, 0.0, "3 of 9: <b>␣the, \u202edoc", blocking=False)])
    )
    assert next(a.get("class") for tag, a in page.elements if tag == "li") == "warning"
    assert "3 of 9: <b>␣the, ⟨U+202E⟩doc" in page.text["bdi"]


def test_common_faults_are_shown() -> None:
    pits = [
        {"name": "digits", "passed": False, "explanation": "9 entries have <b>4</b> digits \u202e"},
        {"name": "indentation", "passed": True, "explanation": "it comes back"},
    ]
    page = render_page(REPORT | {"pits": pits})
    _, _, section = page.partition("<h2>Common faults</h2>")
    section, _, _ = section.partition("</section>")
    assert re.findall(r'<li class="(\w+)">.*?<b>(\w+)</b>', section) == [("bad", "digits"), ("good", "indentation")]
    assert "9 entries have <b>4</b> digits ⟨U+202E⟩" in Page(page).text["bdi"]
    assert "Common faults" not in PAGE


def test_rarest_entries_show_their_count_and_reasons() -> None:
    rarest = [text for text in Page(PAGE).text["span"] if "×, " in text]
    # Counts are 1..13; those of bytes 10 and 11. The sample has few characters of any script, so letters are of an
    # absent one; what has no letters is just seldom.
    letters, seldom, bytes_ = "absent script", "seldom", "byte fragment"
    reasons = [letters, seldom, letters, letters, letters, letters, seldom, seldom, seldom, bytes_, bytes_, seldom]
    assert rarest[:13] == [f"{n}×, {reason}" for n, reason in enumerate([*reasons, seldom], 1)]


def test_headline_figures_are_those_of_the_report() -> None:
    figures = Page(PAGE).text["p"]
    # All 13 entries (counts 1..13) are seen; those seen 1..4 times are rare.
    assert "100 %" in figures
    assert "30.77 %" in figures
    # 400 + 401 + 402 bytes in 300 tokens; 200 tokens in the 100 words of the two languages that write spaces.
    assert "4.01" in figures
    assert "2.00" in figures


@pytest.mark.parametrize("languages", [0, 1, 12, 13, 100, 300])
def test_every_language_has_a_bar_and_a_row(languages: int) -> None:
    codes = [f"l{number}" for number in range(languages)]
    page = Page(render_page(hostile_report(codes, tested=False)))
    bars = [a for tag, a in page.elements if tag == "rect" and a.get("class") == "bar"]
    rows = [text for text in page.text["bdi"] if re.fullmatch(r"l\d+", text)]
    assert len(bars) == languages
    assert rows == codes[::-1]


def test_a_report_without_tokens_renders() -> None:
    report = hostile_report([])
    empty = build_report("none", {}, pa.table(vocabulary_columns(report)), TokenCounts.zero(14), TokenCounts.zero(14))
    page = Page(render_page(empty))
    assert "0 %" in page.text["p"]
    assert "Neither text holds a token." in page.text["p"]
    assert not [a for tag, a in page.elements if tag == "polyline"]


def vocabulary_columns(report: dict[str, Any]) -> dict[str, Any]:
    flags = [kind == 4 for kind in report["tokens"]["kind"]]
    ids = pa.array(report["tokens"]["id"], pa.int32())
    return {"id": ids, "token": HOSTILE, "special": flags, "byte_fallback": [False] * len(flags)}


def test_visible_writes_out_what_does_not_show() -> None:
    assert visible(b" the\n\t\r") == "␣the⏎⇥␍"
    assert visible("中é") == "中é"
    assert visible(b"a\xe4\xb8\xffb") == "a⟨E4 B8 FF⟩b"
    assert visible("\u202e\x00\xa0") == "⟨U+202E⟩⟨U+0000⟩⟨U+00A0⟩"
    assert visible("␣⟨E4⟩") == "⟨U+2423⟩⟨U+27E8⟩E4⟨U+27E9⟩"


token_like = st.lists(st.sampled_from([*b" \n\xe4\xb8\xad\xffaE4+U", *"␣⟨⟩\u202e".encode()]), max_size=8).map(bytes)


@given(st.binary(max_size=12) | token_like, st.binary(max_size=12) | token_like)
def test_visible_is_printable_and_tells_tokens_apart(one: bytes, other: bytes) -> None:
    assert visible(one).isprintable()
    assert " " not in re.sub("⟨[^⟩]*⟩", "", visible(one))
    assert written_back(visible(one)) == one
    assert (visible(one) == visible(other)) == (one == other)


def written_back(shown: str) -> bytes:
    """The token, read from its visible form."""
    marks = {"␣": " ", "⏎": "\n", "␍": "\r", "⇥": "\t"}
    token = b""
    for mark, code, octets, character in re.findall(r"([␣⏎␍⇥])|⟨U\+([0-9A-F]+)⟩|⟨([0-9A-F ]+)⟩|(.)", shown):
        token += bytes.fromhex(octets) if octets else (marks.get(mark) or character or chr(int(code, 16))).encode()
    return token


def test_axes_place_values_where_they_belong() -> None:
    axis = svg_plots.decades("rank", 1000)
    assert [round(axis.at(value), 9) for value in (1, 10, 100, 1000)] == [0, round(1 / 3, 9), round(2 / 3, 9), 1]
    assert axis.ticks == [(1, "1"), (10, "10"), (100, "100"), (1000, "1k")]
    assert svg_plots.percentages("share").at(0.25) == 0.25


def test_curve_runs_through_its_points() -> None:
    flat = svg_plots.percentages("y")
    svg = svg_plots.curve([0.0, 1.0], [0.0, 1.0], flat, flat, str)
    corners = f"{svg_plots.LEFT:.1f},{svg_plots.HEIGHT - svg_plots.BOTTOM:.1f}", f"544.0,{svg_plots.TOP:.1f}"
    assert f'class="line" points="{corners[0]} {corners[1]}"' in svg


def test_bars_are_as_long_as_their_values() -> None:
    svg = svg_plots.bars([("a", 4.0, ""), ("b", 1.0, "")], maximum=4.0)
    widths = [float(width) for width in re.findall(r'class="bar" [^>]*?width="([\d.]+)"', svg)]
    assert widths[0] == svg_plots.BAR_WIDTH - svg_plots.BAR_LABEL - svg_plots.BAR_VALUE
    assert widths[1] == widths[0] / 4


def test_numbers_are_shown_as_people_read_them() -> None:
    assert [abbreviated(n) for n in (0, 999, 1000, 2_500_000)] == ["0", "999", "1k", "2.5M"]
    assert [byte_size(n) for n in (12, 112_400_000, 10**12)] == ["12 bytes", "112 MB", "1 TB"]
    assert [percent(share) for share in (0.1, 0.09996, 1.0)] == ["10 %", "9.996 %", "100 %"]
    assert [decimal(value) for value in (None, 1.005, 2.0)] == ["–", "1.00", "2.00"]
