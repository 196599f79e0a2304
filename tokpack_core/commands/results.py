"""What a command has to say when it is done, on stdout: a JSON document for machines, lines for people."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_json(value: Any) -> None:
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY) + b"\n")
    sys.stdout.buffer.flush()


def show_run(manifest: dict[str, Any], json: bool) -> None:
    """A finished command: its manifest, or its outputs and counts."""
    if json:
        print_json(manifest)
        return
    outputs = {entry["path"]: f"{entry['size']:,} bytes" for entry in manifest["outputs"]}
    show_facts(outputs | manifest["counts"])


def show_facts(facts: Mapping[str, Any]) -> None:
    """One line a fact; nested ones are indented by their name."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in flat(facts):
        table.add_row(Text(name.replace("_", " "), "bold"), Text(shown(value)))
    Console(soft_wrap=True).print(table)


def flat(facts: Mapping[str, Any], under: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in facts.items():
        if isinstance(value, Mapping):
            rows += flat(value, f"{under}{name} ")
        elif value not in (None, [], ""):
            rows.append((f"{under}{name}", value))
    return rows


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4f}" if isinstance(value, float) else str(value)
