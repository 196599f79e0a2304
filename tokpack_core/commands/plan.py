"""`tokpack plan`: vocabulary sizes for a model, before anything is trained."""

from __future__ import annotations

from typing import Any

from tokpack_core.commands.results import console, print_json
from tokpack_core.vocabulary.planning import PlannedVocabulary, plan_vocabulary


def plan_and_show(params: float, d_model: int, json: bool) -> None:
    """Raises InputError for a model that the fits say nothing about."""
    plans = plan_vocabulary(params, d_model)
    if json:
        print_json({"params": params, "d_model": d_model, "approaches": [vars(plan) for plan in plans]})
    else:
        console().print(as_table(plans))


def as_table(plans: list[PlannedVocabulary]) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("approach", no_wrap=True)
    for column in ("vocab size", "vocabulary parameters", "share (tied)", "share (untied)"):
        table.add_column(column, justify="right", no_wrap=True)
    for plan in plans:
        shares = (f"{plan.share_tied:.1%}", f"{plan.share_untied:.1%}")
        table.add_row(plan.approach, f"{plan.vocab_size:,}", f"{plan.vocabulary_parameters:,}", *shares)
    return table
