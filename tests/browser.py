"""Debian's Chromium, headless, driven as a user would; it looks nothing up on the network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
GROUPS = ("corpora", "tokenizers", "datasets")
PICTURES = Path("test-output")
PATIENCE = 120_000
"""Milliseconds that the page may take for what is waited for."""
expect.set_options(timeout=PATIENCE)


@contextmanager
def browser_page(width: int = 2400, height: int = 1300) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(PATIENCE)
        yield page
        browser.close()


def open_graph(page: Page, url: str) -> None:
    """The global graph with all groups opened, as far as it fits into the window."""
    opened = "%2C".join(f"global%40global%3A{group}" for group in GROUPS)
    page.goto(f"{url}/asset-groups/?expanded={opened}")
    for group in GROUPS:
        page.locator(f"foreignObject >> text={group}").first.wait_for()


def picture(page: Page, name: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png")
