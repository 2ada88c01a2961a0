"""Playing many matches, here or in several processes; the result does not depend on which."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Final

from services.cli.collector import collect_seldom
from services.cli.simulate_plan import Plan
from services.cli.simulate_play import play_numbered
from services.cli.simulate_tally import Tally

# So that a bar moves and Ctrl-C is heard soon, yet a process has work for a while.
_BATCH_MAX: Final = 20
_BATCHES_AHEAD: Final = 2

Progress = Callable[[int, int], None]
"""Told after each match or batch: matches and turns that were added."""


class Stopped(Exception):  # named for what happened
    """The simulation was interrupted; tally: what had been played by then."""

    def __init__(self, tally: Tally) -> None:
        super().__init__("interrupted")
        self.tally = tally


def simulate(
    plan: Plan, first: int, matches: int, *, jobs: int, keep_going: bool, progress: Progress
) -> Tally:
    """Play matches `first` to `first + matches - 1`; stops after a failed one unless told to go on.

    Raises Stopped on Ctrl-C.
    """
    numbers = range(first, first + matches)
    if jobs == 1:
        return _here(plan, numbers, keep_going, progress)
    return _in_processes(plan, numbers, jobs, keep_going, progress)


def _here(plan: Plan, numbers: range, keep_going: bool, progress: Progress) -> Tally:
    collect_seldom()
    tally = Tally()
    try:
        for number in numbers:
            turns = tally.turns
            tally.add(play_numbered(plan, number))
            progress(1, tally.turns - turns)
            if tally.failures and not keep_going:
                break
    except KeyboardInterrupt:
        raise Stopped(tally) from None
    return tally


def _play_batch(plan: Plan, numbers: range, keep_going: bool) -> Tally:
    tally = Tally()
    for number in numbers:
        tally.add(play_numbered(plan, number))
        if tally.failures and not keep_going:
            break
    return tally


def _batches(numbers: range, jobs: int) -> Iterator[range]:
    size = min(_BATCH_MAX, max(1, len(numbers) // (4 * jobs)))
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


def _in_processes(
    plan: Plan, numbers: range, jobs: int, keep_going: bool, progress: Progress
) -> Tally:
    # Batches are counted in their order, so a failure stops at the same match for any `jobs`.
    tally = Tally()
    batches = _batches(numbers, jobs)
    waiting: list[Future[Tally]] = []
    pool = ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_begin_process
    )
    try:
        while True:
            with _deaf():
                for batch in batches:
                    waiting.append(pool.submit(_play_batch, plan, batch, keep_going))
                    if len(waiting) >= _BATCHES_AHEAD * jobs:
                        break
            if not waiting:
                return tally
            done = waiting.pop(0).result()
            tally.merge(done)
            progress(done.matches + len(done.failures), done.turns)
            if tally.failures and not keep_going:
                return tally
    except KeyboardInterrupt:
        raise Stopped(tally) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that are started meanwhile do not hear Ctrl-C: only this one decides to stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, heard)


def _begin_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_seldom()
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    """Do not outlive the process that wants the results, however it ended."""
    wait([sentinel])
    os._exit(1)
