"""Watching and playing through failures: no gap, no duplicate, one commit for one answer."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from engine import Answer
from services.client import ApiError, ChainBroken, Client, MatchUpdate, RandomBot, take_part
from services.common.errors import refuse
from tests.services.client.fake_server import MATCH, FakeMatch, FakeServer

YES = Answer(picks=("yes",))
Servers = tuple[FakeServer, FakeServer]


async def _finish(client: Client, match: FakeMatch) -> None:
    while not match.is_finished:
        await client.answer(MATCH, f"p{match.asked}", YES)


async def test_a_watch_goes_on_after_cuts_without_gap_or_duplicate(
    client: Client, servers: Servers, match: FakeMatch
) -> None:
    for server in servers:
        server.cut_after, server.cuts = 2, 3
    finishing = asyncio.create_task(_finish(client, match))
    seen = [update async for update in client.watch(MATCH, fold=True)]
    await finishing
    assert [update.sequence for update in seen] == list(range(1, match.questions + 2))
    assert seen[-1].final
    assert seen[-1].state is not None
    assert seen[-1].state.status == "finished"
    assert [update.hash for update in seen] == [commit.hash for commit in match.commits]


async def test_a_watch_may_begin_in_the_middle(client: Client, match: FakeMatch) -> None:
    await _finish(client, match)
    seen = [update.sequence async for update in client.watch(MATCH, 4)]
    assert seen == [4, 5, 6]


async def test_a_watch_that_was_there_before_the_server_is_resumed(
    client: Client, servers: Servers, match: FakeMatch
) -> None:
    watch = client.watch(MATCH)
    assert (await _next(watch)).sequence == 1
    for server in servers:
        await server.stop()
    waiting = asyncio.create_task(_next(watch))
    await asyncio.sleep(0.1)
    await servers[1].start(int(servers[1].address.rpartition(":")[2]))
    await client.answer(MATCH, "p1", YES)
    assert (await waiting).sequence == 2
    await watch.aclose()  # type: ignore[attr-defined]  # an async generator


async def test_a_forged_commit_is_noticed(
    client: Client, servers: Servers, match: FakeMatch
) -> None:
    servers[0].forged = 3
    await _finish(client, match)
    with pytest.raises(ChainBroken) as raised:
        _ = [update async for update in client.watch(MATCH)]
    assert raised.value.sequence == 3


async def test_a_bot_plays_a_match_over_one_stream(client: Client, match: FakeMatch) -> None:
    async with client.play() as stream:
        record = await take_part(stream, MATCH, 1, RandomBot("seed"), hashes=True)
    assert [command.receipt.sequence for command in record.commands if command.receipt] == [
        2,
        3,
        4,
        5,
        6,
    ]
    assert sorted(record.state_hashes) == [1, 2, 3, 4, 5, 6]
    assert stream.connections == 1


async def test_a_lost_reply_is_answered_again_and_counts_once(
    client: Client, servers: Servers, match: FakeMatch
) -> None:
    for server in servers:
        server.lost_replies = 2
    async with client.play() as stream:
        record = await take_part(stream, MATCH, 1, RandomBot("seed"))
    assert len(match.commits) == match.questions + 1
    assert len(record.commands) == match.questions
    assert stream.connections > 1
    assert len(servers[0].submits) + len(servers[1].submits) > match.questions


async def test_a_reply_that_says_not_applied_is_followed_by_another_attempt(
    client: Client, servers: Servers, match: FakeMatch
) -> None:
    servers[0].refusals = [refuse("NOT_APPLIED"), refuse("NO_OWNER"), refuse("TOO_MANY_IN_FLIGHT")]
    async with client.play() as stream:
        receipt = await stream.submit(MATCH, "p1", YES, request_id="mine")
    assert receipt.sequence == 2
    assert servers[0].submits == ["mine"] * 4


async def test_a_silent_server_is_left_for_the_next_one(
    client: Client, servers: Servers, match: FakeMatch
) -> None:
    servers[0].silent = True
    async with client.play() as stream:
        receipt = await stream.submit(MATCH, "p1", YES)
    assert receipt.sequence == 2
    assert servers[1].submits


async def test_a_refusal_reaches_the_one_who_asked(client: Client, match: FakeMatch) -> None:
    async with client.play() as stream:
        with pytest.raises(ApiError) as raised:
            await stream.submit(MATCH, "p77", YES)
        assert raised.value.reason == "PROMPT_CLOSED"
        assert (await stream.submit(MATCH, "p1", YES)).sequence == 2


async def test_watches_of_a_stream_are_resumed_when_the_server_ends_them(
    client: Client, servers: Servers, match: FakeMatch
) -> None:
    servers[0].cut_after, servers[0].cuts = 1, 4
    async with client.play() as stream:
        finishing = asyncio.create_task(_finish(client, match))
        seen = [update.sequence async for update in stream.watch(MATCH)]
        await finishing
    assert seen == [1, 2, 3, 4, 5, 6]


async def test_a_slow_reader_is_parked_and_still_gets_everything(
    client: Client, servers: Servers, match: FakeMatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.client.play._INBOX_MAX", 3)
    monkeypatch.setattr("services.client.play._INBOX_LOW", 1)
    match.questions = 40
    await _finish(client, match)
    async with client.play() as stream:
        seen = []
        async for update in stream.watch(MATCH):
            seen.append(update.sequence)
            await asyncio.sleep(0.005)
    assert seen == list(range(1, 42))
    assert stream.connections == 1


async def test_leaving_a_watch_tells_the_server_and_the_stream_goes_on(
    client: Client, match: FakeMatch
) -> None:
    async with client.play() as stream:
        async for _ in stream.watch(MATCH):
            break
        await asyncio.sleep(0.05)
        assert (await _next(stream.watch(MATCH))).sequence == 1


async def _next(updates: AsyncIterator[MatchUpdate]) -> MatchUpdate:
    return await anext(updates)


async def test_calls_are_repeated_on_the_other_address(
    client: Client, servers: Servers, match: FakeMatch
) -> None:
    await servers[0].stop()
    created = await client.create("test_high_roll", 1)
    assert created.match_id == MATCH
    assert servers[1].calls == 1


async def test_one_answer_counts_once_although_its_reply_was_lost(
    client: Client, servers: Servers, match: FakeMatch
) -> None:
    servers[0].lost_replies = 1
    receipt = await client.answer(MATCH, "p1", YES, request_id="mine")
    assert receipt.sequence == 2
    assert len(match.commits) == 2
    assert servers[0].submits + servers[1].submits == ["mine", "mine"]


async def test_closing_the_stream_ends_who_still_waits(
    client: Client, servers: Servers, match: FakeMatch
) -> None:
    for server in servers:
        server.silent = True
    async with client.play() as stream:
        waiting = asyncio.create_task(stream.submit(MATCH, "p1", YES))
        await asyncio.sleep(0.05)
    with pytest.raises(ApiError) as raised:
        await waiting
    assert raised.value.reason == "CONNECTION_LOST"
