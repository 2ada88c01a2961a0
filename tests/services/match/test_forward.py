"""Calls that reach a process which does not own the match's partition."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import grpc.aio
import pytest

from services.common.errors import ApiError, parse_error
from services.common.log.sqlite import SqliteLog
from services.match.forward import HOPS_KEY
from tests.services.match.serving import (
    LIMITS,
    Process,
    Shares,
    admitted,
    begin,
    play_out,
    process,
    refused,
)
from tests.services.match.test_play import Stream


@dataclass
class Pair:
    """Two processes; the first owns everything."""

    owner: Process
    other: Process
    hints: dict[int, str]


@pytest.fixture
async def pair(log: SqliteLog) -> AsyncIterator[Pair]:
    """Two processes on one log."""
    hints: dict[int, str] = {}
    limits = LIMITS.__class__(takeover_wait_s=0.1)
    async with (
        process(log, ownership=Shares(range(log.partitions), hints), limits=limits) as owner,
        process(log, ownership=Shares((), hints), limits=limits) as other,
    ):
        yield Pair(owner, other, hints)


async def test_a_match_through_the_wrong_process(log: SqliteLog, pair: Pair) -> None:
    """Commands and watches are passed on with the caller's own token."""
    match = await begin(pair.other)
    last = await play_out(match)
    commits = (await admitted(log))[match.match_id]
    assert commits[-1].final and len(commits) == last
    here = await pair.owner.player("ann").updates(match.match_id)
    assert await pair.other.player("ann").updates(match.match_id) == here


async def test_the_same_request_through_both(log: SqliteLog, pair: Pair) -> None:
    """One commit, the same reply, whichever process is asked."""
    players = [pair.owner.player("ann"), pair.other.player("ann")] * 5
    created = await asyncio.gather(*(p.create(request_id="c") for p in players))
    assert all(reply == created[0] for reply in created)
    joined = await asyncio.gather(*(p.join(created[0].match_id, request_id="j") for p in players))
    assert all(reply == joined[0] for reply in joined)
    assert len((await admitted(log))[created[0].match_id]) == 2


async def test_refusals_come_through(pair: Pair) -> None:
    """Reason, field and metadata are the owner's, in the caller's language."""
    match = await begin(pair.other)
    ann = match.players[0]
    ann.metadata += (("accept-language", "zh"),)
    (prompt,) = await ann.prompts(match.match_id)
    errors = []
    for where in (pair.owner, pair.other):
        player = where.player("ann")
        player.metadata = ann.metadata
        with pytest.raises(ApiError) as error:
            await player.answer(match.match_id, prompt.prompt_id, "fold")
        caught = error.value
        errors.append((caught.code, caught.reason, caught.field, caught.metadata, caught.message))
    assert errors[0] == errors[1]
    assert "不合法" in errors[0][4]


async def test_play_through_the_wrong_process(pair: Pair) -> None:
    """A stream serves matches of other processes too."""
    match = await begin(pair.other)
    stream = Stream(match.players[0])
    await stream.watch(match.match_id)
    updates = await stream.updates(match.sequence)
    (prompt,) = updates[-1].prompts
    await stream.submit(match.match_id, prompt.prompt_id, "fold", request_id="bad")
    assert (await stream.read()).reply.error.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    await stream.submit(match.match_id, prompt.prompt_id, "keep", request_id="good")
    kinds = {(await stream.read()).WhichOneof("response") for _ in range(2)}
    assert kinds == {"reply", "update"}
    await stream.unwatch(match.match_id)
    assert (await stream.read()).watch_ended.next_sequence == match.sequence + 2
    await stream.call.done_writing()
    assert await stream.ended()


async def test_nobody_owns_it(pair: Pair) -> None:
    """Without an owner, or with one that is not there, the answer is UNAVAILABLE."""
    created = await pair.other.player("ann").create()
    for hints in ({}, {0: "127.0.0.1:9", 1: "127.0.0.1:9"}, {0: pair.other.address}):
        pair.hints.clear()
        pair.hints.update(hints)
        with pytest.raises(ApiError) as error:
            await pair.other.player("ann").join(created.match_id)
        assert refused(error) == "NO_OWNER"
        assert error.value.retryable
        with pytest.raises(ApiError) as error:
            await pair.other.player("ann").updates(created.match_id)
        assert refused(error) == "NO_OWNER"


async def test_hints_that_go_in_circles(log: SqliteLog) -> None:
    """Processes that each believe in the other do not pass a call to and fro for ever."""
    first, second = Shares(), Shares()
    limits = LIMITS.__class__(takeover_wait_s=0.1)
    async with (
        process(log, ownership=first, limits=limits) as one,
        process(log, ownership=second, limits=limits) as two,
    ):
        first.hints.update(dict.fromkeys(range(log.partitions), two.address))
        second.hints.update(dict.fromkeys(range(log.partitions), one.address))
        with pytest.raises(ApiError) as error:
            await one.player("ann").create()
        assert refused(error) == "NO_OWNER"
        call = one.player("ann").watch("a" * 26)
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await call.read()
        assert parse_error(failure.value).reason == "NO_OWNER"


async def test_hops_are_a_number(pair: Pair) -> None:
    """A caller who writes nonsense into the hop count is only not passed on."""
    for nonsense in ("many", "9" * 5000, "-1", ""):
        ann = pair.other.player("ann")
        ann.metadata += ((HOPS_KEY, nonsense),)
        with pytest.raises(ApiError) as error:
            await ann.create()
        assert refused(error) == "NO_OWNER"
    direct = pair.owner.player("ann")
    direct.metadata = ann.metadata
    await direct.create()


async def test_the_owner_goes(pair: Pair) -> None:
    """A watch that was passed on ends as resumable when the owner lets go."""
    match = await begin(pair.other)
    watching = asyncio.create_task(match.players[0].updates(match.match_id))
    await asyncio.sleep(0.1)
    await pair.owner.ownership.take({0, 1})
    with pytest.raises(ApiError) as error:
        await watching
    assert refused(error) == "NO_OWNER"
