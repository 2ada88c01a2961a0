"""PartitionTail: verdicts in order, waiting, outages, and what makes it stop."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec
import pytest

from services.common import tail as tail_module
from services.common.admission import Admitted, UnreadableRecord, Void, VoidReason
from services.common.commits import ParsedCommit, parse_commit
from services.common.log import (
    Log,
    LogCorrupt,
    LogReplaced,
    LogTruncated,
    LogUnavailable,
    Record,
    partition_of,
)
from services.common.tail import Entry, PartitionTail
from tests.services.log.conftest import World
from tests.services.log.makers import LOG_ID, claim, facts

Script = Sequence[bytes | Exception | int]


class ScriptedLog:
    """A log whose tails do what a script says: a value is a record, an exception is raised, a
    number skips so many offsets. Each new tail goes on in the script; at its end it waits."""

    partitions = 1
    log_id = LOG_ID

    def __init__(self, script: Script) -> None:
        self.script = list(script)
        self.offset = 0
        self.begun_at: list[int] = []
        self.closed = 0

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def append(self, partition: int, key: bytes, value: bytes) -> int:
        self.script.append(value)
        return self.offset + len(self.script) - 1

    async def tail(self, partition: int, from_offset: int) -> AsyncGenerator[Record, None]:
        self.begun_at.append(from_offset)
        try:
            while True:
                if not self.script:
                    await asyncio.sleep(0.005)
                    continue
                step = self.script.pop(0)
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, int):
                    self.offset += step
                    continue
                self.offset += 1
                yield Record(partition, self.offset - 1, b"", step, 0)
        finally:
            self.closed += 1

    async def read(
        self, partition: int, from_offset: int, to_offset: int
    ) -> AsyncGenerator[Record, None]:
        raise LogUnavailable("not in the script")
        yield Record(partition, 0, b"", b"", 0)

    async def end_offset(self, partition: int) -> int:
        return self.offset + len(self.script)


def chain(epoch: int, count: int, match_id: str = "m") -> list[ParsedCommit]:
    """The first `count` commits of a match."""
    commits: list[ParsedCommit] = []
    for _ in range(count):
        commits.append(facts(match_id, epoch=epoch, after=commits[-1] if commits else None))
    return commits


async def take(tail: PartitionTail, count: int) -> list[Entry]:
    """The first `count` entries; the last one is then handled too."""
    entries = []
    async with asyncio.timeout(10), aclosing(aiter(tail)) as iterator:
        async for entry in iterator:
            entries.append(entry)
            if len(entries) == count:
                break
    return entries


async def test_every_record_comes_with_its_verdict() -> None:
    first, second = chain(1, 2)
    voids = []
    log = ScriptedLog([claim(0).value, first.value, first.value, b"junk", second.value])
    tail = PartitionTail(log, 0, on_void=lambda *what: voids.append(what))
    entries = await take(tail, 5)
    assert [entry.offset for entry in entries] == [0, 1, 2, 3, 4]
    assert [entry.verdict for entry in entries] == [
        Admitted(1),
        Admitted(1),
        Void(VoidReason.WRONG_SEQUENCE),
        Void(VoidReason.MALFORMED),
        Admitted(1),
    ]
    assert entries[3].commit is None
    assert entries[4].commit is not None and entries[4].commit.hash == second.hash
    assert voids == [(0, 2, VoidReason.WRONG_SEQUENCE), (0, 3, VoidReason.MALFORMED)]
    assert tail.voids == {VoidReason.WRONG_SEQUENCE: 1, VoidReason.MALFORMED: 1}
    head = tail.admission.head("m")
    assert head is not None and head.sequence == 2


async def test_the_position_moves_when_the_handling_is_finished() -> None:
    tail = PartitionTail(ScriptedLog([claim(0).value, b"junk", b"junk"]), 0)
    assert tail.position == -1
    positions = []
    async for entry in tail:
        positions.append((entry.offset, tail.position))
        if entry.offset == 2:
            break
    assert positions == [(0, -1), (1, 0), (2, 1)]


async def test_waiting_for_an_offset_and_for_all_that_is_there() -> None:
    log = ScriptedLog([claim(0).value, b"junk"])
    tail = PartitionTail(log, 0)
    waiting = [asyncio.ensure_future(tail.wait_for(offset)) for offset in (2, 0, 1)]
    caught_up = asyncio.ensure_future(tail.catch_up())
    await asyncio.sleep(0)
    reading = asyncio.ensure_future(take(tail, 4))
    assert await caught_up == 1
    await asyncio.wait_for(asyncio.gather(waiting[1], waiting[2]), 5)
    await asyncio.sleep(0.02)
    assert not waiting[0].done()
    await log.append(0, b"", b"junk")
    await asyncio.wait_for(waiting[0], 5)
    await tail.wait_for(0)
    await log.append(0, b"", b"junk")
    await reading


async def test_a_cancelled_wait_disturbs_nobody() -> None:
    log = ScriptedLog([])
    tail = PartitionTail(log, 0)
    reading = asyncio.ensure_future(take(tail, 3))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(tail.wait_for(0), 0.02)
    other = asyncio.ensure_future(tail.wait_for(1))
    for _ in range(3):
        await log.append(0, b"", b"junk")
    await asyncio.wait_for(other, 5)
    await reading


async def test_an_outage_is_waited_out_and_nothing_is_skipped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tail_module, "_BACKOFF_FIRST_S", 0.001)
    away = LogUnavailable("cannot reach it")
    log = ScriptedLog([claim(0).value, away, b"junk", away, away, away, b"junk"])
    tail = PartitionTail(log, 0)
    assert [entry.offset for entry in await take(tail, 3)] == [0, 1, 2]
    assert log.begun_at == [0, 1, 2, 2, 2]
    assert log.closed == 5
    # One warning for each outage, not for each attempt.
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


@pytest.mark.parametrize(
    "error", [LogTruncated("gone"), LogReplaced("another"), LogCorrupt("damaged")]
)
async def test_what_must_not_be_passed_stops_the_tail(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    tail = PartitionTail(ScriptedLog([claim(0).value, error, b"junk"]), 0)
    waiting = asyncio.ensure_future(tail.wait_for(1))
    await asyncio.sleep(0)
    with pytest.raises(type(error), match=str(error)):
        await take(tail, 2)
    with pytest.raises(type(error)):
        await waiting
    with pytest.raises(type(error)):
        await tail.wait_for(1)
    assert tail.position == 0
    await tail.wait_for(0)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


async def test_a_record_of_newer_software_stops_the_tail_before_it() -> None:
    newer = bytearray(facts("m", epoch=1).value)
    assert newer[:2] == b"\x08\x01"  # format 1
    newer[1] = 2
    tail = PartitionTail(ScriptedLog([claim(0).value, bytes(newer)]), 0)
    with pytest.raises(UnreadableRecord, match="written by newer software"):
        await take(tail, 2)
    assert (tail.position, tail.admission.next_offset) == (0, 1)


async def test_a_gap_in_the_offsets_stops_the_tail() -> None:
    tail = PartitionTail(ScriptedLog([claim(0).value, 3, b"junk"]), 0)
    with pytest.raises(LogTruncated, match="offsets 1 to 3 of partition 0 are gone"):
        await take(tail, 2)


async def test_waiting_ends_when_nobody_reads_any_more() -> None:
    tail = PartitionTail(ScriptedLog([b"junk"]), 0)
    reading = asyncio.ensure_future(take(tail, 2))
    waiting = asyncio.ensure_future(tail.wait_for(5))
    await asyncio.sleep(0.02)
    reading.cancel()
    with pytest.raises(LogUnavailable, match="no longer read"):
        await asyncio.wait_for(waiting, 5)


async def test_an_announced_commit_is_not_parsed_again_and_decided_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = chain(1, 2)
    parsed: list[bytes] = []

    def counting(value: bytes | None) -> ParsedCommit:
        parsed.append(value or b"")
        return parse_commit(value)

    monkeypatch.setattr("services.common.admission.parse_commit", counting)
    opening = claim(0)
    tail = PartitionTail(ScriptedLog([opening.value, first.value, first.value, second.value]), 0)
    tail.expect(first)
    tail.expect(second)
    entries = await take(tail, 4)
    assert parsed == [opening.value, first.value]
    assert entries[1].commit is first and entries[3].commit is second
    assert [isinstance(entry.verdict, Admitted) for entry in entries] == [True, True, False, True]


async def test_announced_commits_that_never_come_are_forgotten() -> None:
    tail = PartitionTail(ScriptedLog([]), 0)
    commit = facts("m", epoch=1)
    for number in range(5000):
        tail.expect(msgspec.structs.replace(commit, value=b"%d" % number))
    assert len(tail._expected) == 4096


async def test_a_long_backlog_leaves_the_event_loop_its_turns() -> None:
    tail = PartitionTail(ScriptedLog([b"junk"] * 2000), 0)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.ensure_future(other())
    await take(tail, 2000)
    task.cancel()
    assert turns >= 25


async def test_two_owners_on_a_real_log_agree_on_who_owns(world: World) -> None:
    """A zombie that writes on and its successor: every reader admits the same commits."""
    log: Log = await world.open()
    match_id = "m"
    partition = next(p for p in range(log.partitions) if _is_home(match_id, p, log.partitions))
    where = {"log_id": log.log_id, "partition": partition}

    def fact(epoch: int, after: ParsedCommit | None, request_id: str) -> ParsedCommit:
        return facts(
            match_id,
            epoch=epoch,
            after=after,
            request_id=request_id,
            log_id=log.log_id,
            partition=partition,
        )

    async def write(commit: ParsedCommit) -> int:
        return await log.append(partition, match_id.encode(), commit.value)

    tails = [PartitionTail(log, partition) for _ in range(3)]
    reading = [asyncio.ensure_future(take(tail, 6)) for tail in tails]
    old_epoch = 1 + await write(claim(0, writer="old", **where))  # type: ignore[arg-type]  # str and int
    first = fact(old_epoch, None, "one")
    await write(first)
    new_epoch = 1 + await write(claim(old_epoch, writer="new", **where))  # type: ignore[arg-type]  # str and int
    await write(fact(old_epoch, first, "zombie"))
    await write(fact(new_epoch, first, "two"))
    await write(claim(old_epoch, writer="late", **where))  # type: ignore[arg-type]  # str and int
    results = await asyncio.gather(*reading)
    expected = [
        Admitted(old_epoch),
        Admitted(old_epoch),
        Admitted(new_epoch),
        Void(VoidReason.STALE_EPOCH),
        Admitted(new_epoch),
        Void(VoidReason.WRONG_PREVIOUS_EPOCH),
    ]
    for entries in results:
        assert [entry.verdict for entry in entries] == expected
    assert {tail.admission.owner for tail in tails} == {"new:1"}


def _is_home(match_id: str, partition: int, partitions: int) -> bool:
    return partition_of(match_id, partitions) == partition
