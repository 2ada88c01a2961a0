"""Time limits: prompts that nobody answers are answered by their defaults."""

import asyncio

from services.common.commits import How
from services.common.log.sqlite import SqliteLog
from tests.services.match.serving import LIMITS, FaultyLog, admitted, begin, process


async def test_a_match_that_nobody_plays(log: SqliteLog) -> None:
    """Every prompt gets its default when its time is over, and the match ends by itself."""
    async with process(log) as here:
        match = await begin(here, answer_timeout_seconds=1)
        updates = await match.players[0].updates(match.match_id, until=match.sequence + 2)
    (prompt,) = updates[match.sequence - 1].prompts
    commits = (await admitted(log))[match.match_id]
    assert prompt.deadline_ms == commits[match.sequence - 1].deadline_ms > 0
    for commit in commits[match.sequence : match.sequence + 2]:
        assert commit.cause is not None
        assert commit.cause.how is How.TIMEOUT
        assert (commit.cause.actor, commit.cause.command) == ("", "timeout")
        assert commit.cause.request_id == f"timeout:{commit.cause.prompt_id}"


async def test_who_answers_in_time(log: SqliteLog) -> None:
    """Only the prompts that are still open are expired, at their own time."""
    async with process(log) as here:
        match = await begin(here, answer_timeout_seconds=3)
        (prompt,) = await match.players[0].prompts(match.match_id)
        await match.players[0].answer(match.match_id, prompt.prompt_id, "keep")
        await match.players[1].updates(match.match_id, until=match.sequence + 2)
    commits = (await admitted(log))[match.match_id]
    start, answered, expired = commits[match.sequence - 1 : match.sequence + 2]
    assert answered.cause is not None and expired.cause is not None
    assert (answered.cause.how, expired.cause.how) == (How.ANSWER, How.TIMEOUT)
    # An answer that asks nothing new gives the others no more time.
    assert answered.deadline_ms == start.deadline_ms
    assert expired.deadline_ms > start.deadline_ms


async def test_who_answers_in_the_very_last_moment(log: SqliteLog) -> None:
    """A deadline that rings while the next questions are put is not theirs."""
    async with process(log) as here:
        match = await begin(here, answer_timeout_seconds=3600)
        (prompt,) = await match.players[0].prompts(match.match_id)
        for player in match.players:
            (asked,) = await player.prompts(match.match_id)
            await player.answer(match.match_id, asked.prompt_id, "keep")
        before = (await admitted(log))[match.match_id]
        assert before[-1].deadline_ms > prompt.deadline_ms
        owner = next(o for o in here.node._owners.values() if match.match_id in o._matches)
        owner._time_over(match.match_id, prompt.deadline_ms)
        await asyncio.wait(owner._tasks)
        assert len((await admitted(log))[match.match_id]) == len(before)
        owner._time_over(match.match_id, before[-1].deadline_ms)
        await asyncio.wait(owner._tasks)
        assert len((await admitted(log))[match.match_id]) > len(before)


async def test_no_limit_no_deadline(log: SqliteLog) -> None:
    """Without a time limit nothing is due."""
    async with process(log) as here:
        match = await begin(here)
        assert (await admitted(log))[match.match_id][-1].deadline_ms == 0


async def test_takeover_gives_time(log: SqliteLog) -> None:
    """After an outage nobody's time is over at once."""
    async with process(log) as here:
        match = await begin(here, answer_timeout_seconds=1)
    await asyncio.sleep(1.2)
    limits = LIMITS.__class__(takeover_grace_s=2.5)
    async with process(log, limits=limits) as here:
        await asyncio.sleep(0.2)
        assert len((await admitted(log))[match.match_id]) == match.sequence
        player = here.player("ann")
        (prompt,) = await player.prompts(match.match_id)
        await player.answer(match.match_id, prompt.prompt_id, "swap")
        # Nor does the answer of one end the time of the others.
        await asyncio.sleep(0.2)
        assert len((await admitted(log))[match.match_id]) == match.sequence + 1
        updates = await player.updates(match.match_id, until=match.sequence + 2)
        assert len(updates) == match.sequence + 2
    commits = (await admitted(log))[match.match_id]
    ways = [c.cause.how for c in commits[match.sequence : match.sequence + 2] if c.cause]
    assert ways == [How.ANSWER, How.TIMEOUT]


async def test_a_log_that_fails_at_the_deadline(log: SqliteLog) -> None:
    """What was due is done when it can be done."""
    faulty = FaultyLog(log)
    async with process(faulty) as here:
        match = await begin(here, answer_timeout_seconds=1)
        faulty.faults = ["refuse", "unknown", "late"]
        await match.players[0].updates(match.match_id, until=match.sequence + 2)
