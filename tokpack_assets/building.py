"""Shows a build while it runs and what it did when it is done."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tokpack_assets.environment import configs_folder, engine_of, store_folder
from tokpack_assets.run import BuildOutcome, run_build
from tokpack_core.config import Project
from tokpack_core.engine import Engine
from tokpack_core.errors import TokpackError
from tokpack_core.stages.schedules import load_with_schedules
from tokpack_core.stages.unit import OnProgress
from tokpack_core.stages.unit import Progress as UnitProgress


def build_and_show(
    names: list[str], retrain: bool, json: bool, workers: int | None, engine: str | None, ray_address: str | None
) -> None:
    """`tokpack build`.

    Raises:
        TokpackError: an asset failed; says which and why.
    """
    project = load_with_schedules(configs_folder())
    where = engine_of(project, engine, workers, ray_address)
    outcome = build_with_bar(project, store_folder(), names, retrain, where, json)
    if json:
        sys.stdout.buffer.write(orjson.dumps(as_json(outcome), option=orjson.OPT_INDENT_2, default=str) + b"\n")
    else:
        show_outcome(outcome, Console())
    raise_failures(outcome)


def build_with_bar(
    project: Project, store: Path, names: list[str], retrain: bool, engine: Engine, quiet: bool
) -> BuildOutcome:
    # Stdout is for what the build did: Ray, for one, prints there that a node was lost.
    with progress_bar(quiet) as on_progress, redirect_stdout(sys.stderr):
        return run_build(project, store, engine, names, on_progress, retrain)


def raise_failures(outcome: BuildOutcome) -> None:
    if outcome.failures:
        raise TokpackError("\n".join(outcome.failures))


@contextmanager
def progress_bar(quiet: bool) -> Iterator[OnProgress]:
    """A bar with rate and time left on a terminal, lines elsewhere, nothing if quiet."""
    console = Console(stderr=True)
    if quiet:
        yield lambda now: None
    elif not console.is_terminal:
        yield lambda now: console.print(now.describe(), highlight=False)
    else:
        columns = [
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        ]
        with Progress(*columns, console=console, transient=True) as bars:
            tasks: dict[str, TaskID] = {}

            def show(now: UnitProgress) -> None:
                if now.stage not in tasks or now.done <= 1:
                    tasks[now.stage] = bars.add_task(now.stage, rate="")
                rate = f"{now.done}/{now.total} units, {now.weight_done / 1e6 / max(now.seconds, 1e-9):,.1f} MB/s"
                bars.update(tasks[now.stage], total=now.weight_total, completed=now.weight_done, rate=rate)

            yield show


def text_changes(shown: dict[str, Any]) -> Iterator[str]:
    """What reading left out or replaced, and what normalization changed, by kind."""
    problems = shown.get("problems", {})
    for reason, count in problems.get("skipped", {}).items():
        yield f"{count:,} documents skipped: {reason}"
    if problems.get("replaced_documents"):
        yield f"{problems['replaced_characters']:,} replaced characters in {problems['replaced_documents']:,} documents"
    languages = shown.get("normalization", {})
    kinds: Counter[str] = Counter()
    for lang, changes in languages.items():
        if lang != "replaced":
            kinds.update({kind: change["documents"] for kind, change in changes.items()})
    for kind, documents in sorted(kinds.items()):
        examples = list(languages["replaced"])[:3] if kind in ("nfc", "nfkc") else []
        yield f"{kind} changed {documents:,} documents" + (f" ({', '.join(examples)}, …)" if examples else "")


def as_json(outcome: BuildOutcome) -> dict[str, object]:
    return {"assets": outcome.assets, "failures": outcome.failures, "warnings": outcome.warnings}


def show_outcome(outcome: BuildOutcome, console: Console) -> None:
    table = Table("asset", "digest", "units run", "reused", "MB", box=None, header_style="bold")
    for key, shown in outcome.assets.items():
        size = f"{shown['size_bytes'] / 1e6:,.1f}"
        table.add_row(key, shown["digest"][:12], str(shown["units_run"]), str(shown["units_reused"]), size)
    console.print(table)
    for title, colour, said in remarks(outcome):
        console.print(Text.assemble((title, colour), f"  {said}"), soft_wrap=True)
    run, reused = outcome.total("units_run"), outcome.total("units_reused")
    console.print(f"{run} units run, {reused} reused.", highlight=False)


def remarks(outcome: BuildOutcome) -> Iterator[tuple[str, str, str]]:
    """Title, colour and sentence of what a user should know of a build; sentences may hold any text of the corpora."""
    for key, shown in outcome.assets.items():
        if "stale" in shown:
            yield "stale", "yellow", f"{key}: {shown['stale']}"
        if "encoder_warnings" in shown:
            yield "encoder", "yellow", f"{key}: {shown['encoder_warnings']}"
        if "reading_warnings" in shown:
            yield "reading", "yellow", f"{key}: {shown['reading_warnings']}"
        if shown.get("allocation"):
            yield "entries", "cyan", f"{key}: {shown['allocation']}"
        if shown.get("compression"):
            yield "bytes per token", "cyan", f"{key}: {shown['compression']}"
        for line in text_changes(shown):
            yield "text", "cyan", f"{key}: {line}"
    for warning in outcome.warnings:
        yield "warning", "yellow", warning
