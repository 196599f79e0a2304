"""Units are shown as the version of an asset that was read, and never as one that came to list them later."""

from __future__ import annotations

import pytest

from tokpack_core.commands.lineage_steps import Step, steps_up
from tokpack_core.store.history import HistoryEntry
from tokpack_core.store.lineage import LineageGraph, link_downstream
from tokpack_core.store.objects import ObjectRef

OLD, SHARED, NEW = (ObjectRef("normalized_part", digit * 64) for digit in "123")
FIRST, SECOND = (ObjectRef("normalized_corpus", digit * 64) for digit in "45")
TOKENIZER = ObjectRef("tokenizer_model", "6" * 64)


def graph_of(recorded: dict[ObjectRef, str], first_is_there: bool) -> LineageGraph:
    """A corpus of two parts, of which one changed; the tokenizer was trained on the first two."""
    graph = LineageGraph()
    graph.upstream = {TOKENIZER: [OLD, SHARED], SECOND: [SHARED, NEW], OLD: [], SHARED: [], NEW: []}
    if first_is_there:
        graph.upstream[FIRST] = [OLD, SHARED]
    for ref, when in recorded.items():
        graph.versions[ref].append(HistoryEntry(ref.stage, 1, "key", ref, f"2026-01-0{when}T00:00:00Z", None))
    link_downstream(graph)
    return graph


def test_the_version_that_was_read_is_named() -> None:
    graph = graph_of({FIRST: "1", TOKENIZER: "2", SECOND: "3"}, first_is_there=True)
    assert steps_up(graph, TOKENIZER) == [Step(FIRST, 2)]


def test_a_later_version_does_not_stand_for_one_that_was_removed() -> None:
    graph = graph_of({TOKENIZER: "2", SECOND: "3"}, first_is_there=False)
    assert set(steps_up(graph, TOKENIZER)) == {Step(OLD, 1), Step(SHARED, 1)}
    # One that lists nothing but what was read tells no lie, whenever it was recorded.
    graph.upstream[SECOND] = [SHARED]
    assert set(steps_up(graph, TOKENIZER)) == {Step(OLD, 1), Step(SECOND, 1)}


@pytest.mark.parametrize("when", ["1", "2"])
def test_a_corpus_of_which_a_part_was_read_is_named(when: str) -> None:
    graph = graph_of({SECOND: when, TOKENIZER: "2"}, first_is_there=False)
    graph.upstream[TOKENIZER] = [SHARED]
    assert steps_up(graph, TOKENIZER) == [Step(SECOND, 1)]
