"""Sections of the report page on findings, structure, robustness and what a vocabulary costs models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from tokpack_core.vocabulary import svg_plots
from tokpack_core.vocabulary.number_format import abbreviated, decimal, percent
from tokpack_core.vocabulary.report import Report
from tokpack_core.vocabulary.report_plots import size_plot
from tokpack_core.vocabulary.visible import printable, visible

MOST_SCRIPTS = 14
SIGNS = {"bad": "✕", "warn": "!", "note": "i", "good": "✓"}


def findings_section(found: Sequence[Mapping[str, str]]) -> str:
    items = "".join(
        f'<li class="finding {row["severity"]}"><h3><span class="sign">{SIGNS[row["severity"]]}</span>'
        f"<bdi>{escape(printable(row['title']))}</bdi></h3><p><bdi>{escape(printable(row['evidence']))}</bdi></p>"
        f'<p class="action">→ <bdi>{escape(printable(row["action"]))}</bdi></p></li>'
        for row in found
    )
    return f'<ol class="findings" aria-label="Findings">{items}</ol>' if items else ""


def structure_section(report: Report, by_id: Mapping[int, str]) -> str:
    found = report["structure"]
    articles = [
        unreachable_article(found["unreachable"], by_id),
        residue_article(found["residues"], by_id),
        article(
            "Glitch candidates",
            f"{found['glitch_candidates']['entries']:,}",
            "whole-character entries that text could give and the sample gives at most once",
            chips(found["glitch_candidates"]["examples"], by_id),
        ),
        duplicate_article(found["near_duplicates"], by_id),
        whitespace_article(found["whitespace"], by_id),
        digit_article(found["digits"]),
    ]
    return (
        f'<div class="audit">{"".join(articles)}</div>'
        f"<figure><figcaption><b>Longest entries</b></figcaption>{chips(found['longest'], by_id, 8, 90)}</figure>"
        '<div class="plots">'
        f"<figure><figcaption><b>Entries by script</b> Full colour: seen in the sample.</figcaption>"
        f"{script_bars(found['scripts'])}</figure>"
        f"<figure><figcaption><b>Entries by length</b> In bytes; the last bar holds all longer ones.</figcaption>"
        f"{svg_plots.columns([(str(row['bytes']), row['entries']) for row in found['lengths']])}</figure></div>"
    )


def article(title: str, figure: str, detail: str, more: str = "") -> str:
    return (
        f'<article class="card"><h3>{escape(title)}</h3><p class="figure">{escape(figure)}</p>'
        f'<p class="detail">{escape(detail)}</p>{more}</article>'
    )


def chips(ids: Iterable[int], by_id: Mapping[int, str], most: int = 12, longest_shown: int = 40) -> str:
    def shown(text: str) -> str:
        return text if len(text) <= longest_shown else f"{text[:longest_shown]}…"

    items = "".join(
        f'<li title="id {number}"><bdi>{escape(shown(by_id[number]))}</bdi></li>' for number in list(ids)[:most]
    )
    return f'<ul class="chips">{items}</ul>' if items else ""


def unreachable_article(found: Mapping[str, Any], by_id: Mapping[int, str]) -> str:
    items = "".join(
        f'<li title="id {row["id"]}"><bdi>{escape(by_id[row["id"]])}</bdi> gives '
        f"<bdi>{escape(' · '.join(by_id[number] for number in row['gives']))}</bdi></li>"
        for row in found["examples"][:6]
    )
    detail = "entries that come out of no text"
    if found["undecided"]:
        detail += f"; {found['undecided']:,} parts of characters cannot be judged"
    return article(
        "Unreachable", f"{found['entries']:,}", detail, f'<ul class="chips wide">{items}</ul>' if items else ""
    )


def residue_article(found: Mapping[str, Any] | None, by_id: Mapping[int, str]) -> str:
    if found is None:
        return article("Residues of merges", "–", "this family's merges cannot be watched")
    items = "".join(
        f'<li title="id {row["id"]}: final {row["final"]:,}, consumed {row["consumed"]:,}">'
        f"<bdi>{escape(by_id[row['id']])}</bdi></li>"
        for row in found["examples"][:12]
    )
    detail = (
        f"entries ({percent(found['share'])}; {percent(found['share_of_met'] or 0.0)} of the {found['met']:,} that the "
        "sample forms often enough to tell) that merges nearly always consume on the way to few longer ones"
    )
    return article("Residues of merges", f"{found['entries']:,}", detail, f'<ul class="chips">{items}</ul>')


def duplicate_article(found: Mapping[str, Any], by_id: Mapping[int, str]) -> str:
    items = "".join(
        f"<li><bdi>{escape(' · '.join(by_id[number] for number in group[:8]))}</bdi></li>"
        for group in found["examples"][:4]
    )
    detail = (
        f"entries in {found['groups']:,} groups that differ in case or a leading space ({found['by_case']:,} by case, "
        f"{found['by_space']:,} by space alone)"
    )
    return article("Near-duplicates", f"{found['entries']:,}", detail, f'<ul class="chips wide">{items}</ul>')


def whitespace_article(found: Mapping[str, Any], by_id: Mapping[int, str]) -> str:
    runs = found["space_runs"]
    detail = (
        f"entries of white space alone; {found['with_newline']:,} with a line end, {found['tabs']:,} of tabs, "
        f"runs of up to {max(runs, default=0)} spaces; {found['leading_space']:,} entries begin with a space"
    )
    return article("White space", f"{found['entries']:,}", detail)


def digit_article(found: Mapping[str, Any]) -> str:
    items = "".join(
        f"<li><bdi>{escape('·'.join(visible(piece) for piece in row['pieces']))}</bdi></li>" for row in found["probes"]
    )
    detail = f"entries of digits alone; numbers are cut: {found['policy'] or 'not tried'}"
    return article("Digits", f"{found['entries']:,}", detail, f'<ul class="chips">{items}</ul>')


def script_bars(scripts: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (
            row["script"].replace("_", " "),
            [row["seen"], row["entries"] - row["seen"]],
            f"{row['entries']:,}",
            [
                f"{row['seen']:,} entries seen, {row['occurrences']:,} times",
                f"{row['entries'] - row['seen']:,} never seen",
            ],
        )
        for row in scripts[:MOST_SCRIPTS]
    ]
    return svg_plots.stacked_bars(rows, max((row["entries"] for row in scripts), default=0), slim=True)


def robustness_section(robust: Mapping[str, Any] | None, trip: Mapping[str, Any] | None) -> str:
    if robust is None:
        return ""
    space, cuts, forms = robust["leading_space"][0], robust["concatenation"], robust["forms"]
    pairs = len(forms["pairs"])
    tests = [
        *([trip_item(trip)] if trip else []),
        strings_item("Hard strings", robust["hostile"]),
        strings_item("Indentation and line ends", robust["layout"]),
        (
            not robust["injection"]["matched"],
            "Special tokens in text",
            f"{robust['injection']['special_tokens']:,} tried, {len(robust['injection']['matched'])} give their id: "
            + (", ".join(visible(row["text"]) for row in robust["injection"]["matched"][:5]) or "none"),
        ),
        (
            forms["same"] == pairs,
            "NFC and NFD",
            f"{forms['same']} of {pairs} characters get the same tokens in both forms; "
            + ", ".join(f"{row['text']} {row['nfc_tokens']}/{row['nfd_tokens']}" for row in forms["pairs"][:5]),
        ),
        (
            None,
            "A space before a word",
            f"tokens of “Hello”: {len(space['ids'])}, of “ Hello”: {len(space['with_space'])}, shared at the end: "
            f"{space['shared_end']}",
        ),
        (
            None,
            "Cutting a text in two",
            f"tokens of the parts are those of the whole at {percent(cuts['stable'] or 0.0)} of all cuts: before a "
            f"space {shown_share(cuts['before_space'])}, after one {shown_share(cuts['after_space'])}, within a word "
            f"{shown_share(cuts['within_word'])}",
        ),
    ]
    items = "".join(robust_item(*test) for test in tests)
    return f'<section><h2>Robustness</h2><ul class="tests">{items}</ul></section>'


def shown_share(share: float | None) -> str:
    return "–" if share is None else percent(round(share, 3))


def trip_item(trip: Mapping[str, Any]) -> tuple[bool, str, str]:
    text = f"{trip['documents'] - trip['failures']:,} of {trip['documents']:,} come back from encode and decode"
    if trip.get("examples"):
        text += "; lost: " + ", ".join(
            f"{printable(row['document'])} at byte {row['byte']:,} ({visible(row['text'][:12])} becomes "
            f"{visible(row['became'][:12])})"
            for row in trip["examples"]
        )
    return trip["failures"] == 0, "Documents", text


def strings_item(title: str, found: Mapping[str, Any]) -> tuple[bool, str, str]:
    failed = found["failures"]
    text = f"{found['strings'] - len(failed)} of {found['strings']} come back from encode and decode"
    if failed:
        text += "; lost: " + ", ".join(f"{row['name']} ({visible(row['gives'][:24])})" for row in failed[:6])
    return not failed, title, text


def robust_item(passed: bool | None, title: str, text: str) -> str:
    name = "note" if passed is None else "good" if passed else "bad"
    return (
        f'<li class="{name}"><span class="sign">{SIGNS[name]}</span><b>{escape(title)}</b>'
        f"<bdi>{escape(printable(text))}</bdi></li>"
    )


def pits_section(found: Sequence[Mapping[str, Any]] | None) -> str:
    if not found:
        return ""
    items = "".join(robust_item(row["passed"], row["name"].replace("_", " "), row["explanation"]) for row in found)
    return f'<section><h2>Common faults</h2><ul class="tests pits">{items}</ul></section>'


def size_figure(report: Report) -> str:
    """Utilization and bytes per token by vocabulary size, where they are known."""
    if report["sizes"] is None:
        return ""
    rows = report["sizes"]["rows"]
    cells = "".join(
        f'<tr><td class="number">{row["entries"]:,}</td><td class="number">{percent(round(row["utilization"], 5))}</td>'
        f'<td class="number">{percent(round(row["rare_share"], 5))}</td>'
        f'<td class="number">{decimal(row["bytes_per_token"])}</td></tr>'
        for row in rows
    )
    return (
        "<figure><figcaption><b>Utilization by vocabulary size</b> The same text by smaller vocabularies of the same "
        f"training: {escape(report['sizes']['method'])}.</figcaption>{size_plot(rows)}"
        '<table class="small"><thead><tr><th class="number">entries</th><th class="number">used</th><th class="number">'
        f'rare, &lt; 5</th><th class="number">bytes / token</th></tr></thead><tbody>{cells}</tbody></table></figure>'
    )


def model_section(report: Report) -> str:
    sizes = report["sizes"]["rows"] if report["sizes"] else []
    heads = ["parameters", "d_model", "embedding", "share", "untied", "softmax FLOPs", "advised entries"]
    head = "".join(f'<th class="number">{text}</th>' for text in heads)
    costs = "".join(f'<th class="number">{abbreviated(row["entries"])}</th>' for row in sizes)
    rows = "".join(model_row(row) for row in report["models"])
    remark = (
        f" The last {len(sizes)} columns: training cost on the same text with so many entries, over that with all."
        if sizes
        else ""
    )
    return (
        '<section><h2>What it costs a model</h2><div class="scroll"><table><thead><tr><th>model</th>'
        f"{head}{costs}</tr></thead><tbody>{rows}</tbody></table></div>"
        '<p class="remark">Share of the embeddings in all parameters, input and output tied, or apart (untied). '
        f"Advised: approach 2 of the vocabulary scaling laws (arXiv 2407.13623) at this d_model.{remark}</p></section>"
    )


def model_row(row: Mapping[str, Any]) -> str:
    cells = [abbreviated(round(row["parameters"])), f"{row['d_model']:,}", abbreviated(row["embedding_parameters"])]
    cells += [percent(round(row[name], 4)) for name in ("embedding_share", "untied_share", "softmax_share")]
    cells += [f"{row['optimal_vocabulary']:,}", *(f"{cost:.2f} ×" for cost in row["relative_cost"] or [])]
    numbers = "".join(f'<td class="number">{text}</td>' for text in cells)
    return f"<tr><td>{escape(row['model'])}</td>{numbers}</tr>"
