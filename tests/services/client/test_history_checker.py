"""The checker of the fault tests finds what it is there to find: each anomaly is planted once."""

from dataclasses import replace

import pytest

from engine import MatchCreated, MatchStarted
from services.common.commits import Cause, Ruleset, build_claim, build_release, make_commit
from tests.support.history import RawRecord, Sent, check_history, counted_commits

MATCH = "m" * 26


class Log:
    """Partition 0 of a log, written by one owner after the other."""

    def __init__(self) -> None:
        self.records: list[RawRecord] = []
        self.epoch = 0
        self.sequence = 0
        self.facts = 0
        self.hash = b""

    def put(self, value: bytes) -> None:
        self.records.append(RawRecord(0, len(self.records), value))

    def claim(self, *, previous: int | None = None) -> None:
        before = self.epoch if previous is None else previous
        self.put(
            build_claim(log_id="log", partition=0, writer="w", address="h:1", previous_epoch=before)
        )
        if before == self.epoch:
            self.epoch = len(self.records)

    def release(self) -> None:
        self.put(build_release(log_id="log", partition=0, writer="w", epoch=self.epoch))

    def commit(self, request_id: str, *, epoch: int | None = None, keep: bool = True) -> None:
        created = MatchCreated(
            match_id=MATCH,
            game="g",
            revision=1,
            expansions=(),
            options=(),
            seats=2,
            host="host",
            commitment=b"c" * 32,
            key_id="k",
            answer_timeout_s=0,
        )
        commit = make_commit(
            log_id="log",
            partition=0,
            writer="w",
            epoch=self.epoch if epoch is None else epoch,
            match_id=MATCH,
            sequence=self.sequence + 1,
            first_fact=self.facts,
            facts=[MatchStarted() if self.sequence else created],
            cause=Cause(request_id=request_id, actor="ann"),
            previous_hash=self.hash,
            ruleset=Ruleset(game="g"),
        )
        self.put(commit.value)
        if keep:
            self.sequence, self.facts, self.hash = self.sequence + 1, self.facts + 1, commit.hash


def _sent(request_id: str, sequence: int | None, at: float, refusal: str = "") -> Sent:
    return Sent("ann", MATCH, request_id, at, at + 0.5, sequence, refusal)


@pytest.fixture
def log() -> Log:
    """A claim and three commits, a zombie's record among them."""
    log = Log()
    log.claim()
    log.commit("r1")
    zombie = log.epoch
    log.claim()
    log.commit("late", epoch=zombie, keep=False)
    log.commit("r2")
    log.commit("r3")
    return log


HISTORY = [_sent("r1", 1, 1.0), _sent("r2", 2, 2.0), _sent("r3", 3, 3.0)]


def test_a_right_history_has_no_problems(log: Log) -> None:
    assert check_history(log.records, HISTORY) == []
    assert [commit.header.sequence for commit in counted_commits(log.records)] == [1, 2, 3]


def test_a_command_of_unknown_outcome_may_be_there_or_not(log: Log) -> None:
    unknown = _sent("r3", None, 3.0)
    assert check_history(log.records, [*HISTORY[:2], unknown]) == []
    assert check_history(log.records, [*HISTORY, _sent("r4", None, 4.0)]) == []


@pytest.mark.parametrize(
    ("history", "found"),
    [
        ([*HISTORY, _sent("lost", 4, 4.0)], "A1"),
        ([*HISTORY, _sent("late", 2, 4.0)], "A1"),
        ([*HISTORY[:2], _sent("r3", 2, 3.0)], "A1"),
        (HISTORY[:2], "A5"),
        ([*HISTORY[:2], _sent("r3", None, 3.0, "PROMPT_CLOSED")], "A9"),
        ([replace(HISTORY[0], issued_s=9.0, ended_s=9.5), *HISTORY[1:]], "A4"),
    ],
)
def test_what_the_clients_were_told_is_compared_with_the_log(
    log: Log, history: list[Sent], found: str
) -> None:
    problems = check_history(log.records, history)
    assert problems
    assert problems[0].startswith(found)


def test_commands_at_the_same_time_may_come_in_any_order(log: Log) -> None:
    together = [replace(each, issued_s=1.0, ended_s=9.0) for each in HISTORY]
    assert check_history(log.records, together[::-1]) == []


def test_what_is_void_does_not_count(log: Log) -> None:
    log.commit("r2", keep=False)
    log.put(log.records[1].value)
    damaged = bytearray(log.records[-3].value)
    damaged[-1] ^= 1
    log.put(bytes(damaged))
    log.claim(previous=1)
    log.release()
    log.commit("after the release", keep=False)
    assert check_history(log.records, HISTORY) == []
    log.claim()
    log.commit("r4")
    assert check_history(log.records, [*HISTORY, _sent("r4", 4, 4.0)]) == []
