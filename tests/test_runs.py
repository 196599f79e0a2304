"""Runs: what a changed list does to the borders."""

from hypothesis import given
from hypothesis import strategies as st

from tokpack_core.stages.runs import cut_runs

Item = tuple[str, int]
items = st.dictionaries(st.text("abcdef", min_size=1, max_size=4), st.integers(0, 300), max_size=60).map(
    lambda sizes: sorted(sizes.items())
)


def cut(listed: list[Item], limit: int = 10**9) -> list[list[Item]]:
    return list(cut_runs(listed, lambda i: i[0], lambda i: i[1], target=500, longest=20, limit=limit))


@given(items)
def test_runs_are_the_list_in_order(listed: list[Item]) -> None:
    assert [item for run in cut(listed) for item in run] == listed


@given(items, st.integers(1, 600))
def test_only_a_single_item_exceeds_the_limit(listed: list[Item], limit: int) -> None:
    for run in cut(listed, limit):
        assert len(run) == 1 or sum(size for _, size in run) <= limit


@given(items, st.text("abcdef", min_size=1, max_size=4), st.integers(0, 300))
def test_an_added_item_changes_one_run_or_splits_it_in_two(listed: list[Item], name: str, size: int) -> None:
    if name in dict(listed):
        return
    before = {tuple(run) for run in cut(listed)}
    after = {tuple(run) for run in cut(sorted([*listed, (name, size)]))}
    assert len(before - after) <= 1
    assert len(after - before) <= 2


def test_many_small_items_make_tens_of_runs() -> None:
    listed = [(f"file-{i:05d}", 7) for i in range(20_000)]
    runs = list(cut_runs(listed, lambda i: i[0], lambda i: i[1], target=2**24, longest=512, limit=2**30))
    assert 20 < len(runs) < 80
