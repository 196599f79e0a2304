"""Pipelines in threads: order, errors, the bound on what is in flight, what an end or an interrupt leaves behind."""

import signal
import threading
import time
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.errors import InputError
from tokpack_core.threads import IN_FLIGHT, map_in_threads


def weightless(item: object) -> int:
    return 0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3)), st.integers(1, 4))
def test_results_come_in_the_order_of_the_items(naps: list[int], workers: int) -> None:
    def work(item: tuple[int, int]) -> int:
        time.sleep(item[1] / 1000)
        return item[0]

    assert list(map_in_threads(work, enumerate(naps), weightless, workers)) == list(range(len(naps)))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_an_item_or_of_the_function_comes_in_its_place(workers: int) -> None:
    def items() -> Iterator[int]:
        yield from range(5)
        raise InputError("file.jsonl, line 6: wrong; mend it")

    squares = map_in_threads(lambda item: item * item, items(), weightless, workers)
    assert [next(squares) for _ in range(5)] == [0, 1, 4, 9, 16]
    with pytest.raises(InputError, match="line 6"):
        next(squares)
    inverses = map_in_threads(lambda item: 12 // item, [4, 3, 0, 1], weightless, workers)
    assert [next(inverses), next(inverses)] == [3, 4]
    with pytest.raises(ZeroDivisionError):
        next(inverses)


@pytest.mark.parametrize(
    ("weight", "most"), [(0, 4 * 2), (IN_FLIGHT // 2, 4), (IN_FLIGHT, 2), (3 * IN_FLIGHT, 2), (IN_FLIGHT // 4, 8)]
)
def test_items_in_flight_are_bounded_by_number_and_weight(weight: int, most: int) -> None:
    """2 workers: 4 a worker, IN_FLIGHT a worker, or one heavier item a worker."""
    taken = count()
    last = 0

    def items() -> Iterator[int]:
        nonlocal last
        for _ in range(40):
            last = next(taken)
            yield last

    results = map_in_threads(lambda item: item, items(), lambda item: weight, 2)
    for used in range(40):
        assert next(results) == used
        time.sleep(0.005)
        # `most` are in flight behind the one in use, and one more waits in the hands of the thread that took it.
        assert last == min(used + most + 1, 39)


def test_items_are_taken_while_a_result_is_used() -> None:
    second_taken = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        second_taken.set()
        yield 2

    results = map_in_threads(lambda item: item, items(), weightless, 2)
    assert next(results) == 1
    assert second_taken.wait(10)
    assert list(results) == [2]


def test_whoever_stops_early_leaves_no_thread_and_closes_the_items() -> None:
    closed = threading.Event()
    before = threading.active_count()

    def items() -> Iterator[int]:
        try:
            yield from count()
        finally:
            closed.set()

    results = map_in_threads(lambda item: item, items(), weightless, 2)
    assert next(results) == 0
    results.close()
    assert closed.wait(10)
    assert threading.active_count() == before


def test_an_interrupt_does_not_wait_for_an_item_that_never_comes() -> None:
    never = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        never.wait(60)

    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    begin = time.monotonic()
    try:
        signal.alarm(1)
        with pytest.raises(KeyboardInterrupt):
            list(map_in_threads(lambda item: item, items(), weightless, 2))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
        never.set()
    assert time.monotonic() - begin < 20


def test_a_pipeline_within_one_that_ended_ends_at_its_next_item() -> None:
    begun, ended = threading.Barrier(3), threading.Semaphore(0)

    def unit(number: int) -> int:
        begun.wait(10)
        try:
            return sum(map_in_threads(lambda item: item, count(), weightless, 1 + number))
        finally:
            ended.release()

    def units() -> Iterator[int]:
        yield from (0, 1)
        begun.wait(10)
        raise InputError("the third unit is wrong")

    results = map_in_threads(unit, units(), weightless, 2)
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.alarm(1)
        with pytest.raises(KeyboardInterrupt):
            next(results)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    assert ended.acquire(timeout=10)
    assert ended.acquire(timeout=10)
