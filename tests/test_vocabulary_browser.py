"""The report page in a real browser: plots, a search in many entries, both colour schemes, no complaint."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.tokenizers.protocol import VOCABULARY_SCHEMA
from tokpack_core.tokenizers.registry import train
from tokpack_core.vocabulary.counting import text_counter
from tokpack_core.vocabulary.counts import LANGUAGE_SCHEMA, TokenCounts
from tokpack_core.vocabulary.parallel_text import ParallelText
from tokpack_core.vocabulary.report import build_report
from tokpack_core.vocabulary.report_page import render_page

playwright_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
SIZE = 256_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


def opened(browser: Any, path: Path, page: str, scheme: str = "light") -> tuple[Any, list[str]]:
    path.write_text(page, encoding="utf-8")
    tab = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    complaints: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: complaints.extend([request.url] if request.url != path.as_uri() else []))
    tab.goto(path.as_uri())
    return tab, complaints


def trained_page() -> str:
    texts = pa.array(["the cat sat on the mat 1234", "die Katze saß auf der Matte", "貓坐在墊子上"] * 9)
    config = TrainConfig(family="byte_bpe", vocab_size=300, special_tokens=SpecialTokens(eod="<|eod|>"))
    tokenizer = train(config, iter([texts]), "nfc")
    counter = text_counter(tokenizer)
    counter.add(texts, pa.array(["en", "de", "zh"] * 9))
    parallel = ParallelText(2, {"de": pa.array(["Katze", "Matte"]), "en": pa.array(["cat", "mat"])})
    zero = TokenCounts.zero(tokenizer.vocab_size)
    vocabulary = tokenizer.vocabulary()
    return render_page(build_report("t", {}, vocabulary, counter.total(), zero, tokenizer, None, parallel))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_whole_page_shows_without_complaint(browser: Any, tmp_path: Path, scheme: str) -> None:
    tab, complaints = opened(browser, tmp_path / "report.html", trained_page(), scheme)
    assert complaints == []
    assert tab.locator(".finding").count() == 5
    assert tab.locator("figure svg").count() >= 9
    for place in (".findings", ".heat", ".tests", "#token-rows"):
        assert tab.locator(place).is_visible()
    light = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light == {"light": "rgb(247, 247, 244)", "dark": "rgb(18, 20, 23)"}[scheme]
    for width in (1280, 420):
        tab.set_viewport_size({"width": width, "height": 900})
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert len(tab.screenshot(path=tmp_path / "page.png", full_page=True)) > 50_000


def many_entries() -> str:
    tokens = [b"w%d" % number for number in range(SIZE)]
    columns = [np.arange(SIZE, dtype=np.int32), tokens, np.zeros(SIZE, bool), np.zeros(SIZE, bool)]
    counts = TokenCounts(np.arange(SIZE)[::-1].copy(), LANGUAGE_SCHEMA.empty_table())
    return render_page(build_report("many", {}, pa.table(columns, VOCABULARY_SCHEMA), counts, TokenCounts.zero(SIZE)))


def test_a_table_of_256_thousand_entries_is_searched_sorted_and_scrolled(browser: Any, tmp_path: Path) -> None:
    tab, complaints = opened(browser, tmp_path / "many.html", many_entries())
    rows, found = tab.locator(".grid-row"), tab.locator("#token-found")
    assert found.inner_text() == "256,000 found"
    assert rows.count() < 100
    tab.evaluate("(place => { place.scrollTop = place.scrollHeight; })(document.getElementById('token-rows'))")
    playwright_api.expect(rows.last.locator("span").first).to_have_text("255999")
    tab.fill("#token-search", "W2559")
    # w2559, w25590 to w25599, and w255900 to w255999.
    assert found.inner_text() == "111 found"
    assert rows.first.locator("span").first.inner_text() == "2559"
    tab.click("button[data-key=sample]")
    assert rows.first.locator("span").first.inner_text() == "2559"
    tab.click("button[data-key=sample]")
    assert rows.first.locator("span").first.inner_text() == "255999"
    tab.fill("#token-search", "#77")
    assert rows.all_inner_texts()[0].startswith("77")
    tab.fill("#token-search", "")
    tab.check("#token-unseen")
    assert found.inner_text() == "1 found"
    tab.uncheck("#token-unseen")
    tab.select_option("#token-mark", "2")
    # Glitch candidates: whole characters that occur once at most.
    assert found.inner_text() == "2 found"
    assert complaints == []
