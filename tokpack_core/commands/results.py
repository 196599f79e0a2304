"""What a command has to say when it is done, on stdout: a JSON document for machines, lines for people."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH_ELSEWHERE = 1_000
TROUBLES = ("skipped", "replaced_documents", "replaced_characters")
"""What reading counts and people should see only if there was any."""


def print_json(value: Any) -> None:
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY) + b"\n")
    sys.stdout.buffer.flush()


def console() -> Console:
    """For stdout: as wide as the terminal, and never wrapped where there is none."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_ELSEWHERE)


def show_run(manifest: dict[str, Any], json: bool) -> None:
    """A finished command: its manifest, or its outputs and counts."""
    if json:
        print_json(manifest)
        return
    rows = [(entry["path"], f"{entry['size']:,} bytes") for entry in manifest["outputs"]]
    counts = dict(manifest["counts"])
    reading = counts.pop("reading", {})
    allocation = counts.pop("allocation", {})
    troubles = {name: reading[name] for name in TROUBLES if reading.get(name)}
    show_rows(rows + flat(counts) + allocated(allocation) + flat(troubles))
    for warning in [*counts.get("encoder_warnings", []), *reading.get("warnings", [])]:
        console().print(Text(f"  warning: {warning}", "yellow"))
    show_compression((counts.get("vision") or {}).get("compression", []))
    for of in (counts, *counts.get("fields", {}).values()):
        if of.get("documents_by_whole"):
            told = f"note: {of['documents_by_whole']:,} of {of['documents']:,} documents are in no language of "
            console().print(Text(told + "the tokenizer and have ids of its whole vocabulary", "yellow"))
    if counts.get("entries_missing"):
        told = (
            f"note: the text gives {counts['vocab_size']:,} entries and no more: nothing else in it occurs often enough"
        )
        console().print(Text(told, "yellow"))
    if counts.get("special_tokens_in_text"):
        told = f"note: the text holds {counts['special_tokens_in_text']:,} strings that are special tokens: "
        console().print(Text(told + "they are ordinary text, in training and when text is encoded", "yellow"))
    for warning in (counts.get("vision") or {}).get("warnings", []):
        console().print(Text(f"note: {warning}", "yellow"))
    for place in counts.get("round_trip", {}).get("examples", []):
        console().print(Text(f"  lost: {place}", "yellow"))
    for example in reading.get("examples", []):
        console().print(Text(f"  {example['file']}, {example['row']}: {example['reason']}", "yellow"))


def show_compression(options: list[dict[str, Any]]) -> None:
    """What the images would take under other settings of their scheme, a line each."""
    if not options:
        return
    table = Table("images under", "image tokens", "of all", "packs, at least", box=None, padding=(0, 2, 0, 0))
    for row in options:
        figures = f"{row['image_tokens']:,}", f"{row['vision_share']:.1%}", f"{row['packs_at_least']:,}"
        table.add_row(row["setting"], *figures, style="bold" if row["configured"] else "")
    console().print(table)


def allocated(allocation: dict[str, Any]) -> list[tuple[str, str]]:
    """A line a domain: what it asked for and got."""
    rows = []
    for domain, got in allocation.items():
        if isinstance(got, int):
            rows.append((f"allocation {domain}", f"{got:,} special tokens"))
            continue
        line = f"{got['entries']:,} of {got['quota']:,} entries, {got['share']:.1%} of all; "
        line += f"{got['shared']:,} more of its own came from other domains; "
        line += f"{got['documents']:,} documents, {got['bytes']:,} bytes"
        rows.append((f"allocation {domain}", line))
    return rows


def show_facts(facts: Mapping[str, Any]) -> None:
    show_rows(flat(facts))


def show_rows(rows: list[tuple[str, Any]]) -> None:
    """One line a row."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name, "bold"), Text(shown(value)))
    console().print(table)


def flat(facts: Mapping[str, Any], under: str = "") -> list[tuple[str, Any]]:
    """Names in words with their values, nested ones after the name above them; no lists, no nulls."""
    rows: list[tuple[str, Any]] = []
    for name, value in facts.items():
        if isinstance(value, Mapping):
            rows += flat(value, f"{under}{name} ")
        elif value is not None and not isinstance(value, list):
            rows.append((f"{under}{name}".replace("_", " "), value))
    return rows


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4f}" if isinstance(value, float) else str(value)


def counted(number: int, what: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number:,} {what}{'s' * (number != 1)}"
