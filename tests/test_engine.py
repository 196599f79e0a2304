"""The engine: order, errors, dead workers and interrupts, with real processes."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from tokpack_core.engine import LocalEngine, default_engine
from tokpack_core.errors import InputError, TokpackError


def square_slowly_at_first(number: int) -> int:
    time.sleep(0.3 if number == 0 else 0)
    return number * number


def refuse_three(number: int) -> int:
    if number == 3:
        raise InputError("file.jsonl, line 3: wrong; mend it")
    return number


def die_at_two(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def sleep_long(folder: Path, number: int) -> int:
    (folder / str(number)).write_text(str(os.getpid()))
    time.sleep(300)
    return number


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    assert list(LocalEngine(workers).map(square_slowly_at_first, range(9))) == [n * n for n in range(9)]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_keeps_its_kind_and_words(workers: int) -> None:
    with pytest.raises(InputError, match=r"file\.jsonl, line 3: wrong; mend it"):
        list(LocalEngine(workers).map(refuse_three, range(9)))


def test_a_dead_worker_is_one_sentence() -> None:
    with pytest.raises(TokpackError, match=r"a worker process died.*TOKPACK_WORKERS"):
        list(LocalEngine(2).map(die_at_two, range(9)))


def test_an_interrupt_ends_the_workers_at_once(tmp_path: Path) -> None:
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    begin = time.monotonic()
    try:
        signal.alarm(6)
        with pytest.raises(KeyboardInterrupt):
            list(LocalEngine(2).map(partial(sleep_long, tmp_path), range(9)))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    assert time.monotonic() - begin < 16
    workers = [int(path.read_text()) for path in tmp_path.iterdir()]
    assert workers
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)


def test_the_number_of_workers_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKPACK_WORKERS", "3")
    assert default_engine() == LocalEngine(3)
    monkeypatch.delenv("TOKPACK_WORKERS")
    assert default_engine() == LocalEngine(len(os.sched_getaffinity(0)))


@pytest.mark.parametrize("setting", ["0", "-1", "many", "²"])
def test_a_wrong_number_of_workers_is_one_sentence(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv("TOKPACK_WORKERS", setting)
    with pytest.raises(TokpackError, match="is not a number of processes"):
        default_engine()
