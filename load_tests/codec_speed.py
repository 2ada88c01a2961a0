"""Microseconds to build and to read one commit of the log, in the facts of a whole match.

    python -m load_tests.codec_speed

Prints medians of several rounds; nothing is compared, the figures are for profiles.
"""

import statistics
import timeit
from collections.abc import Callable

from engine import Fact, Seat, SeatTaken
from services.common.commits import Cause, How, ParsedCommit, Ruleset, make_commit, parse_commit

_FACTS: tuple[Fact, ...] = tuple(
    SeatTaken(seat=Seat(seat), player=f"player-{seat}", name=f"Player {seat}", entropy=b"e" * 32)
    for seat in range(1, 11)
)


def _commit() -> ParsedCommit:
    return make_commit(
        log_id="load",
        partition=0,
        writer="load",
        epoch=1,
        match_id="abcdefghijklmnopqrstuvwxyz",
        sequence=2,
        first_fact=3,
        facts=_FACTS,
        cause=Cause(request_id="r", digest=b"d" * 32, actor="load", how=How.HOST, command="join"),
        previous_hash=b"p" * 32,
        ruleset=Ruleset(game="king_of_tokyo", expansions=(), revision=1),
        deadline_ms=0,
        recorded_at_ms=0,
    )


def _micros(work: Callable[[], object], number: int = 500) -> float:
    return statistics.median(timeit.repeat(work, number=number, repeat=9)) / number * 1e6


def main() -> None:
    """Measure and print."""
    value = _commit().value
    print(f"a commit of {len(_FACTS)} facts, {len(value)} bytes; microseconds, medians")
    print(f"build        {_micros(_commit):7.1f}")
    print(f"read         {_micros(lambda: parse_commit(value)):7.1f}")
    print(f"read, decode {_micros(lambda: parse_commit(value).facts()):7.1f}")


if __name__ == "__main__":
    main()
