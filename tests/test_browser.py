"""What a user sees: the real webserver, daemon and browser, from an empty graph to a check that fails.

The pictures are kept in test-output/.
"""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser import CHROMIUM, browser_page, open_graph, picture
from tests.dagster_server import TOKPACK, DagsterServer, dagster_dev
from tests.small_project import SmallProject, write_small_project
from tokpack_core.store import history
from tokpack_core.store.store import open_store

ASSETS = """{ assetsOrError { ... on AssetConnection { nodes { key { path } definition { isMaterializable }
    assetMaterializations(limit: 1) { runId tags { key value } } } } } }"""
RUNS = "{ runsOrError(limit: 1) { ... on Runs { results { runId } } } }"
REPORT = "vocabulary_report/bpe_600"


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    return write_small_project(tmp_path)


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_from_an_empty_graph_to_a_failed_check(project: SmallProject) -> None:
    with dagster_dev(project, [*TOKPACK, "dev"]) as server, browser_page(3000, 1400) as page:
        open_graph(page, server.url)
        expect(page.get_by_text("Never materialized")).to_have_count(10)
        run = materialize_all(page, server)
        assert server.wait(run) == "SUCCESS", server.messages(run)
        see_green_graph(page, server, project)
        see_report(page, server)

        project.edit("max_rare_token_share: 0.5", "max_rare_token_share: 0.0")
        project.edit("rare_below: 2", "rare_below: 50")
        open_graph(page, server.url)
        page.get_by_role("button", name="Reload definitions").click()
        page.get_by_text("Definitions reloaded").first.wait_for()
        run = materialize_all(page, server)
        assert server.wait(run) == "FAILURE"
        see_failed_gate(page, server, run)


def materialize_all(page: Any, server: DagsterServer) -> str:
    """Presses the graph's button and gives the run that this launches."""
    page.get_by_role("button", name="Materialize all").first.click()
    page.get_by_text("Launched run").first.wait_for()
    return str(server.query(RUNS)["runsOrError"]["results"][0]["runId"])


def newest(server: DagsterServer) -> dict[str, Any]:
    nodes = server.query(ASSETS)["assetsOrError"]["nodes"]
    return {
        "/".join(node["key"]["path"]): node["assetMaterializations"][0]
        for node in nodes
        if node["definition"]["isMaterializable"]
    }


def see_green_graph(page: Any, server: DagsterServer, project: SmallProject) -> None:
    """All assets, with the versions that the store has."""
    expect(page.get_by_text("Materialized", exact=True)).to_have_count(12)
    picture(page, "graph")
    for sign in ("Failed", "Never materialized", "Unsynced"):
        assert page.get_by_text(sign).count() == 0
    store = open_store(project.store)
    tags = {key: {t["key"]: t["value"] for t in event["tags"]} for key, event in newest(server).items()}
    found = {key: of["dagster/data_version"] for key, of in tags.items()}
    assert found == {key: history.require_latest(store, key).object.digest for key in history.list_assets(store)}
    assert len(found) == 10


def see_report(page: Any, server: DagsterServer) -> None:
    """Its picture in place, its table, its checks, and the page that its link leads to."""
    page.set_viewport_size({"width": 1500, "height": 1150})
    page.goto(f"{server.url}/assets/{REPORT}?view=events")
    image = page.locator("img[src^='data:image/svg+xml']").first
    image.wait_for()
    assert image.evaluate("image => image.naturalWidth") == 240
    page.get_by_text("bytes_per_token_by_language").first.wait_for()
    picture(page, "asset")
    with page.context.expect_page() as opened:
        page.locator("a[href$='report.html']").first.click()
    opened.value.get_by_role("heading").first.wait_for()
    assert "bpe_600" in opened.value.content()
    assert opened.value.locator(".verdicts .passed").count() >= 4
    picture(opened.value, "report")
    opened.value.close()

    page.goto(f"{server.url}/assets/tokenized_shards/bpe_600/docs?view=events")
    page.locator("a", has_text="tokenizer_model/bpe_600").click()
    page.wait_for_url("**/assets/tokenizer_model/bpe_600?view=events&asOf=*")
    page.goto(f"{server.url}/assets/{REPORT}?view=checks")
    page.get_by_text("rare_token_share").first.click()
    page.get_by_text("Passed").first.wait_for()
    picture(page, "checks")


def see_failed_gate(page: Any, server: DagsterServer, run: str) -> None:
    """The check has failed and says why; nothing behind it ran."""
    page.set_viewport_size({"width": 1500, "height": 1150})
    page.goto(f"{server.url}/assets/{REPORT}?view=checks&checkDetail=rare_token_share")
    page.get_by_text("rare_token_share").first.click()
    page.get_by_text("Failed").first.wait_for()
    page.get_by_text("were seen fewer than 50 times").first.wait_for()
    picture(page, "failed_check")
    page.set_viewport_size({"width": 3000, "height": 1400})
    open_graph(page, server.url)
    expect(page.get_by_text("5 / 6 Passed")).to_have_count(1)
    picture(page, "failed_graph")
    ran = {key for key, event in newest(server).items() if event["runId"] == run}
    assert ran == {
        *(f"{stage}/{corpus}" for stage in ("corpus", "normalized_corpus") for corpus in ("docs", "code")),
        "tokenizer_model/bpe_600",
        REPORT,
    }
