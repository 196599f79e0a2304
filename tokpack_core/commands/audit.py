"""`tokpack audit`: encodes documents again and compares them with shards and dataset, token by token."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from tokpack_core.commands.progress import progress
from tokpack_core.commands.results import console, print_json, show_facts
from tokpack_core.commands.store_access import graph_of, named_store, store_that_knows
from tokpack_core.errors import TokpackError
from tokpack_core.stages.audit import audit_dataset
from tokpack_core.stages.audit_figures import Audit
from tokpack_core.stages.trace import open_dataset
from tokpack_core.store.lineage import find_object
from tokpack_core.store.store import Store

SHOWN = 3


def audit_and_show(name: str, documents: int | None, seed: int, json: bool) -> None:
    """`tokpack audit`.

    Raises:
        TokpackError: a document differs, `name` is no dataset, or what it was made from is gone.
    """
    store = store_that_knows(name)
    graph = graph_of(store)
    version = open_dataset(store, graph, find_object(store, graph, name))
    with progress("comparing", sum(block.tokens for block in version.blocks), "tokens", json) as on_done:
        audit = audit_dataset(version, graph, documents, seed, source_folders(store), on_done)
    facts = {
        "dataset": str(version.ref),
        "tokenizer": str(version.tokenizer),
        "documents": audit.documents,
        "checked": audit.checked,
        "coverage": audit.checked / max(audit.documents, 1),
        "from_source": audit.from_source,
        "from_normalized_text": audit.checked - audit.from_source,
        "tokens": audit.tokens,
        "differing": audit.differing,
        "dropped": audit.dropped,
        "upper_bound": audit.upper_bound,
        "conclusion": audit.conclusion(),
    }
    if json:
        sources = {"examples": audit.examples, "causes": audit.causes, "not_from_source": audit.not_from_source}
        print_json(facts | sources)
    else:
        show_facts(facts)
        for example in audit.examples:
            console().print(Text(f"  differs: {example}", "red"))
        for cause in audit.causes:
            console().print(Text(f"  cause: {cause}", "red"))
        for sentence in missing_sources(audit):
            print(f"note: {sentence}", file=sys.stderr)
    if audit.differing:
        raise TokpackError(f"{name}: {audit.conclusion()}; {remedy(audit)}")


def remedy(audit: Audit) -> str:
    return audit.causes[0] if audit.causes else f"run `tokpack verify {named_store()}`, and build the dataset again"


def missing_sources(audit: Audit) -> Iterator[str]:
    """Source files that were not read, by the reason."""
    by_reason: dict[str, list[str]] = {}
    for file, reason in audit.not_from_source.items():
        by_reason.setdefault(reason, []).append(file)
    for reason, files in by_reason.items():
        more = f" and {len(files) - SHOWN:,} more" if len(files) > SHOWN else ""
        yield (
            f"{', '.join(files[:SHOWN])}{more}: {reason}; their documents were compared from the normalized text in "
            "the store, so reading and normalization are not proven for them"
        )


def source_folders(store: Store) -> list[Path]:
    """Where names of source files may start: beside the configuration, else beside the store; content proves them."""
    configs = Path(os.environ.get("TOKPACK_CONFIGS") or "configs").absolute()
    return list(dict.fromkeys([configs.parent, store.root.parent]))
