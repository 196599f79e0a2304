"""`tokpack audit`: encodes documents again and compares them with shards and dataset, token by token."""

from __future__ import annotations

from rich.text import Text

from tokpack_core.commands.results import console, print_json, show_facts
from tokpack_core.commands.store_access import graph_of, store_that_knows
from tokpack_core.errors import TokpackError
from tokpack_core.stages.audit import audit_dataset
from tokpack_core.stages.trace import open_dataset
from tokpack_core.store.lineage import find_object


def audit_and_show(name: str, documents: int | None, seed: int, json: bool) -> None:
    """`tokpack audit`.

    Raises:
        TokpackError: a document differs, `name` is no dataset, or what it was made from is gone.
    """
    store = store_that_knows(name)
    graph = graph_of(store)
    version = open_dataset(store, graph, find_object(store, graph, name))
    audit = audit_dataset(version, graph, documents, seed)
    facts = {
        "dataset": str(version.ref),
        "tokenizer": str(version.tokenizer),
        "documents": audit.documents,
        "checked": audit.checked,
        "tokens": audit.tokens,
        "differing": audit.differing,
        "dropped": audit.dropped,
        "upper_bound": audit.upper_bound,
        "conclusion": audit.conclusion(),
    }
    if json:
        print_json(facts | {"examples": audit.examples})
    else:
        show_facts(facts)
        for example in audit.examples:
            console().print(Text(f"  differs: {example}", "red"))
    if audit.differing:
        raise TokpackError(f"{name}: {audit.conclusion()}; verify the store, and build the dataset again")
